"""A log that an unclean election truncates while it is read (KIP-320), the JVM connector too."""

import logging
import os
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

import pyarrow as pa
import pytest
from pyspark import InheritableThread
from pyspark.sql import Row, SparkSession

from pyspark_kafka.brokers import KafkaCluster
from pyspark_kafka.brokers.admin import known_leaders
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.reading.errors import DataLossError, LogTruncatedError
from pyspark_kafka.domain.reading.ranges import OffsetRange
from pyspark_kafka.domain.reading.records import Projection
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.ports.clock import Deadline
from pyspark_kafka.testing import KafkaWorld, Record, await_until
from tests.slowness import bound_s

from ..spark.queries import PEER, read

CLIENTS: Final = ("confluent", "kafka-python")
FLAGS: Final = ("true", "false")

SAME: Final = 500
"""How many records both leaders have."""

READ: Final = 1_500
END: Final = 2_000
ELECTION_S: Final = bound_s(60)

TRUNCATED: Final = f"t-0 was truncated to offset {SAME} after it was read up to offset {READ}."

COLUMNS: Final = Projection(("offset", "value"))
PARTITION: Final = TopicPartition("t", 0)

CONFIG: Final = {
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    # The records are old.
    "log.retention.ms": "-1",
}


class Reading:
    """A read of a range, and the offsets and values that came."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self.rows: list[tuple[int, bytes]] = []

    def read_to(self, offset: int) -> None:
        while not self.rows or self.rows[-1][0] < offset - 1:
            batch = next(self._batches)
            self.rows += zip(*(column.to_pylist() for column in batch.columns), strict=True)

    def finish(self) -> list[tuple[int, bytes]]:
        self.rows.clear()
        self.read_to(END)
        assert next(self._batches, None) is None
        return self.rows


class Stream:
    def __init__(self, world: KafkaWorld) -> None:
        self._client = world.stream_client(None)
        self._client.assign(PartitionOffsets({PARTITION: 0}))
        self.position = 0

    def read_to(self, offset: int) -> None:
        deadline = Deadline.after(ELECTION_S)
        while self.position < offset and not deadline.has_passed:
            for polled in self._client.poll(0.1):
                self.position = polled.next_offset


class PeerBatch:
    """A batch query of the JVM connector, whose task stops at the last record of the old leader."""

    def __init__(self, spark: SparkSession, cluster: KafkaCluster, flag: str, gate: Path) -> None:
        os.mkfifo(gate)
        self._gate = gate
        # It reads a file of properties, and a pipe until it is closed.
        wait = f"java_method('org.apache.kafka.common.utils.Utils', 'loadProps', '{gate}')"
        offsets = {"startingOffsets": '{"t":{"0":0}}', "endingOffsets": f'{{"t":{{"0":{END}}}}}'}
        table = read(spark, cluster, PEER, subscribe="t", failOnDataLoss=flag, **offsets)
        self._table = table.selectExpr("offset", "value", f"if(offset = {READ - 1}, {wait}, '')")
        self._rows: Future[list[Row]] = Future()
        # Unlike others, it closes its connection to Spark.
        InheritableThread(target=self._collect, daemon=True).start()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Wait until the task has read the record, and let it continue after the block."""
        pipe: list[int] = []

        def is_there() -> bool:
            with suppress(OSError):
                # Opening fails until the task reads the pipe.
                pipe.append(os.open(self._gate, os.O_WRONLY | os.O_NONBLOCK))
            return bool(pipe)

        await_until(is_there, ELECTION_S)
        try:
            yield
        finally:
            os.close(*pipe)

    def finish(self) -> list[tuple[int, bytes]]:
        return [(row.offset, bytes(row.value)) for row in self._rows.result(ELECTION_S)]

    def _collect(self) -> None:
        try:
            self._rows.set_result(self._table.collect())
        except Exception as error:  # noqa: BLE001  # the test raises it
            self._rows.set_exception(error)


class Truncation:
    """Reads that were under way when another leader was elected, by client."""

    def __init__(self, worlds: dict[str, KafkaWorld], peers: dict[str, PeerBatch]) -> None:
        self.peers = peers
        self.ranges = {
            (client, flag): Reading(
                world.container(failOnDataLoss=flag, kafkaConsumer__pollTimeoutMs="60000")
                .range_read()
                .read(OffsetRange(PARTITION, 0, END), COLUMNS)
            )
            for client, world in worlds.items()
            for flag in FLAGS
        }
        self.streams = {client: Stream(world) for client, world in worlds.items()}
        self.readers = {
            client: world.container().record_reader() for client, world in worlds.items()
        }
        self.in_turns = {
            client: Reading(reader.read(OffsetRange(PARTITION, 0, END), COLUMNS))
            for client, reader in self.readers.items()
        }

    def read(self) -> None:
        for reading in (*self.ranges.values(), *self.in_turns.values()):
            reading.read_to(READ)
        for stream in self.streams.values():
            stream.read_to(READ)
        for reader in self.readers.values():
            # A reader fetches one range at a time: the first one begins again.
            assert sum(
                batch.num_rows for batch in reader.read(OffsetRange(PARTITION, 0, 9), COLUMNS)
            )


@pytest.fixture(scope="module")
def truncation(spark, tmp_path_factory):
    """Read what one broker alone took, then lose it, and write other records."""
    with KafkaCluster(3, config=CONFIG) as cluster, ExitStack() as closing:
        worlds = {client: KafkaWorld(client, lambda: "t", cluster) for client in CLIENTS}
        for world in worlds.values():
            closing.callback(world.close)
        writer = worlds["confluent"]
        writer.topic(min__insync__replicas="1")
        cluster.reassign_partition("t", 0, [1, 2])
        cluster.elect_leader("t", 0)
        writer.produce(PARTITION, [Record(b"both")] * SAME)
        cluster.kill_broker(2)
        writer.produce(PARTITION, [Record(b"lost")] * (READ - SAME))
        gates = tmp_path_factory.mktemp("gates")
        peers = {flag: PeerBatch(spark, cluster, flag, gates / flag) for flag in FLAGS}
        made = Truncation(worlds, peers)
        with ExitStack() as holding:
            for peer in peers.values():
                holding.enter_context(peer.held())
            made.read()
            cluster.kill_broker(1)
            cluster.start_broker(2)
            elect_uncleanly(cluster)
            writer.produce(PARTITION, [Record(b"new")] * (END - SAME))
        yield made


def elect_uncleanly(cluster: KafkaCluster) -> None:
    def elect() -> bool:
        cluster.elect_leader("t", 0, unclean=True)
        port = int(cluster.bootstrap_servers.rpartition(":")[2])
        return (known_leaders(port, "t") or {}).get(0) == 2

    assert Deadline.after(ELECTION_S).poll(elect, 0.2)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_query_that_may_not_lose_data_fails(truncation, client):
    with pytest.raises(DataLossError, match=TRUNCATED) as caught:
        truncation.ranges[client, "true"].finish()
    assert caught.value.sub_condition == "LOG_TRUNCATED"
    assert isinstance(caught.value.__cause__, LogTruncatedError)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_query_that_may_lose_data_reads_every_record_that_is_there(truncation, client, caplog):
    with caplog.at_level(logging.WARNING):
        rest = truncation.ranges[client, "false"].finish()
    assert rest == [(offset, b"new") for offset in range(SAME, END)]
    assert [one for one in caplog.messages if TRUNCATED in one]


@pytest.mark.parametrize("client", CLIENTS)
def test_a_range_that_is_read_in_turns_with_another(truncation, client):
    """A fetch that begins again knows the epoch of what was read before."""
    with pytest.raises(LogTruncatedError) as caught:
        truncation.in_turns[client].finish()
    assert (caught.value.offset, caught.value.diverges_at) == (READ, SAME)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_continuous_query(truncation, client):
    with pytest.raises(LogTruncatedError) as caught:
        truncation.streams[client].read_to(END)
    assert (caught.value.partition, caught.value.offset) == (PARTITION, READ)
    assert caught.value.diverges_at == SAME


@pytest.mark.parametrize("flag", FLAGS)
def test_the_jvm_connector_returns_records_of_both_logs(truncation, flag):
    values = [b"both"] * SAME + [b"lost"] * (READ - SAME) + [b"new"] * (END - READ)
    assert truncation.peers[flag].finish() == list(enumerate(values))
