"""Reads of partitions that get other leaders, in a cluster of scripted brokers."""

from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa
import pytest

from pyspark_kafka.adapters.confluent.client import CLIENT as CONFLUENT
from pyspark_kafka.adapters.kafka_format.compression import Codec, Compressor
from pyspark_kafka.adapters.kafka_format.producer_columns import ProducerColumns
from pyspark_kafka.adapters.kafka_format.record_encoder import RecordEncoder
from pyspark_kafka.adapters.kafka_python.client import CLIENT as KAFKA_PYTHON
from pyspark_kafka.domain.continuous.settings import ContinuousSettings
from pyspark_kafka.domain.options.source import SourceOptions
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.reading.ranges import OffsetRange
from pyspark_kafka.domain.reading.records import ALL_COLUMNS
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.domain.writing.batch import ProducerIdAndEpoch
from pyspark_kafka.ports.continuous import StreamClient
from pyspark_kafka.testing import await_until

from ..servers import honest_cluster
from ..servers.honest_cluster import at_offset, encoded_batch
from ..servers.hostile_broker import Lie, Line, framed
from ..servers.hostile_cluster import HostileCluster, hostile_cluster
from ..unit.adapters.options import source_of

CLIENTS: Final = {"kafka-python": KAFKA_PYTHON, "confluent": CONFLUENT}
FIRST, SECOND = (TopicPartition("t", number) for number in (0, 1))

BATCH_RECORDS: Final = 10_000
BATCHES: Final = 24
LEASE_S: Final = 0.2
RESPONSE_BYTES: Final = 160_000
"""About six of the batches below: more records than one Arrow batch has."""


def compressed_batch(number: int) -> bytes:
    values = [b"%d" % value for value in range(BATCH_RECORDS)]
    batch = pa.RecordBatch.from_pydict({"value": pa.array(values, pa.binary())})
    columns = ProducerColumns.of(batch, 1_700_000_000_000)
    encoder = RecordEncoder(Compressor(Codec.GZIP))
    rows = np.arange(len(values), dtype=np.int64)
    return at_offset(
        bytes(encoder.encode(columns, rows, ProducerIdAndEpoch(), -1)), number * BATCH_RECORDS
    )


def offsets_of(records: pa.RecordBatch) -> list[int]:
    return cast("list[int]", records.column("offset").to_pylist())


@dataclass
class Progress:
    """The offsets that were delivered by a client, whose function is slow."""

    client: StreamClient
    delivered: dict[TopicPartition, list[int]] = field(default_factory=dict)
    acknowledged: Counter[TopicPartition] = field(default_factory=Counter)

    def poll(self) -> None:
        for polled in self.client.poll(0.2):
            offsets = self.delivered.setdefault(polled.partition, [])
            if polled.records is not None:
                offsets += offsets_of(polled.records)
            self.client.write(polled, ())
            for partition, offset in self.client.acknowledged().items():
                # Progress never goes back, and never passes a record that was not delivered.
                assert self.acknowledged[partition] <= offset <= len(self.delivered[partition])
                self.acknowledged[partition] = offset

    def read(self, partition: TopicPartition, count: int) -> None:
        def is_read() -> bool:
            self.poll()
            return len(self.delivered.get(partition, ())) >= count

        await_until(is_read)
        assert self.delivered[partition] == list(range(count))


def options_of(cluster: HostileCluster, client: str, **settings: str) -> SourceOptions:
    kafka = {f"kafka.{name.replace('_', '.')}": value for name, value in settings.items()}
    return source_of(client, {"kafka.bootstrap.servers": cluster.bootstrap_servers, **kafka})


@contextmanager
def reading(
    cluster: HostileCluster, client: str, *partitions: TopicPartition, **settings: str
) -> Iterator[Progress]:
    make = CLIENTS[client].stream_client
    assert make is not None
    made = make(options_of(cluster, client, **settings), None, ContinuousSettings("group"))
    with closing(made):
        made.assign(PartitionOffsets(dict.fromkeys(partitions, 0)))
        yield Progress(made)


@pytest.fixture
def backlog(monkeypatch):
    """Return a cluster of two brokers with many records in one partition."""
    monkeypatch.setattr(honest_cluster, "MAX_FETCH_BYTES", RESPONSE_BYTES)
    with hostile_cluster() as cluster:
        for number in range(BATCHES):
            cluster.append_batch(FIRST, compressed_batch(number))
        yield cluster


def dies_after(responses: int, cluster: HostileCluster, node: int = 0) -> None:
    """Let a broker die, and another lead, with its last large response in the client's sockets."""
    broker = cluster.brokers[node]
    sent = count(1)

    def send(line: Line, frame: bytes) -> None:
        line.send(framed(frame))
        if len(frame) > RESPONSE_BYTES // 2 and next(sent) == responses:
            cluster.elect(FIRST, 1)
            broker.end()
            raise ConnectionResetError

    broker.lies = (*broker.lies, Lie("Fetch", send=send))


@pytest.mark.parametrize("responses", [1, 2, 3])
@pytest.mark.parametrize("client", CLIENTS)
def test_records_that_a_dead_leader_sent_come_before_those_of_the_next(client, responses, backlog):
    """Its last response may not be decoded yet when the next leader answers."""
    dies_after(responses, backlog)
    with reading(backlog, client, FIRST) as progress:
        progress.read(FIRST, BATCHES * BATCH_RECORDS)
    assert backlog.brokers[0].is_ended


@pytest.mark.parametrize("responses", [1, 2, 3])
@pytest.mark.parametrize("client", CLIENTS)
def test_a_range_is_read_in_order_across_the_death_of_its_leader(client, responses, backlog):
    dies_after(responses, backlog)
    until = BATCHES * BATCH_RECORDS
    with closing(CLIENTS[client].record_reader(options_of(backlog, client))) as reader:
        batches = reader.read(OffsetRange(FIRST, 0, until), ALL_COLUMNS)
        assert [each for batch in batches for each in offsets_of(batch)] == list(range(until))
    assert backlog.brokers[0].is_ended


@pytest.mark.parametrize("client", CLIENTS)
def test_records_of_a_near_replica_come_before_those_of_the_leader_that_is_asked_again(
    client, backlog
):
    """The replica's lease ends while its last response is not decoded yet (KIP-392)."""
    replica, leader = backlog.brokers
    backlog.elect(FIRST, 1)
    named = count()

    def name_the_replica(_: Any, response: Any) -> None:
        for one in partitions_of(response):
            if next(named) == 0:
                one.preferred_read_replica, one.records = 0, b""

    def send_late(line: Line, frame: bytes) -> None:
        if len(frame) > RESPONSE_BYTES // 2:
            line.closing.wait(2 * LEASE_S)
        line.send(framed(frame))

    leader.lies = (Lie("Fetch", answer=name_the_replica),)
    replica.lies = (Lie("Fetch", send=send_late, times=3),)
    replica.cluster.is_replica = True
    lease_ms = str(round(1_000 * LEASE_S))
    with reading(
        backlog, client, FIRST, client_rack="near", metadata_max_age_ms=lease_ms
    ) as progress:
        progress.read(FIRST, BATCHES * BATCH_RECORDS)
    assert replica.answered["Fetch"]
    # librdkafka's lease does not depend on a setting.
    assert client == "confluent" or leader.answered["Fetch"] > 1


def partitions_of(response: Any) -> Iterator[Any]:
    return (one for topic in response.responses for one in topic.partitions)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_leader_that_was_cut_off_is_left_for_its_successor(client):
    """It answers for ever that there are no new records; the metadata's age is bounded."""
    with hostile_cluster(2, 2) as cluster:
        cluster.elect(SECOND, 1)
        for partition in (FIRST, SECOND):
            cluster.append_batch(partition, encoded_batch([b"x"] * 5))
        with reading(cluster, client, FIRST, SECOND, metadata_max_age_ms="500") as progress:
            for partition in (FIRST, SECOND):
                progress.read(partition, 5)
            cluster.elect(FIRST, 1, unknown_to=0)
            cluster.brokers[1].cluster.logs[FIRST].append(encoded_batch([b"y"] * 5, 5))
            progress.read(FIRST, 10)


def test_a_range_is_not_read_from_a_leader_that_was_cut_off():
    """It has nothing of the range, whose end another broker named when it was planned."""
    with hostile_cluster(2, 2) as cluster:
        cluster.append_batch(FIRST, encoded_batch([b"x"] * 5))
        with closing(KAFKA_PYTHON.record_reader(options_of(cluster, "kafka-python"))) as reader:

            def read(start: int, end: int) -> list[int]:
                batches = reader.read(OffsetRange(FIRST, start, end), ALL_COLUMNS)
                return [each for batch in batches for each in offsets_of(batch)]

            assert read(0, 5) == list(range(5))
            cluster.elect(FIRST, 1, unknown_to=0)
            cluster.brokers[1].cluster.logs[FIRST].append(encoded_batch([b"y"] * 5, 5))
            assert read(5, 10) == list(range(5, 10))
