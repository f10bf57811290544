"""A new leader, as that of a recreated topic, may refuse a batch and accept later ones."""

from __future__ import annotations

import threading
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Final, final
from uuid import uuid4

import pyarrow as pa
import pytest

from pyspark_kafka.bootstrap.container import closing_clients, container_for, sink_container_for
from pyspark_kafka.domain.continuous.settings import ContinuousSettings
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.sink import parse_sink_options
from pyspark_kafka.domain.options.source import parse_source_options
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.domain.writing.errors import RecordDeliveryError
from pyspark_kafka.testing import await_until
from tests.servers.hostile_broker import HostileBroker, Lie, Line, framed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark_kafka.ports.continuous import PolledRecords, StreamClient

INPUT: Final = TopicPartition("t", 0)
OUTPUT: Final = TopicPartition("out", 1)
VALUES: Final = [b"%0100d" % number for number in range(2_000)]

IN_BATCHES: Final = {
    "kafka.batch.size": "4000",
    "kafka.delivery.timeout.ms": "20000",
    "kafka.request.timeout.ms": "10000",
}


@final
class Refusing:
    """A leader that refuses the first batch, once all records are in the producer's queue."""

    def __init__(self) -> None:
        self._are_queued = threading.Event()
        self.broker = HostileBroker(("t", "out"), lies=[Lie("Produce", send=self._send)])
        self.broker.cluster.refused = 1
        servers = self.broker.bootstrap_servers
        self.options = {"client": "confluent", "kafka.bootstrap.servers": servers, **IN_BATCHES}

    def await_first(self) -> None:
        """Wait until the first batch was received."""
        await_until(lambda: self.broker.answered["Produce"] > 0)

    def answer(self, *, is_recreated: bool = False) -> None:
        """Let the first batch be refused, by the leader of another topic of this name or not."""
        if is_recreated:
            self.broker.cluster.topic_ids[OUTPUT.topic] = uuid4()
        self._are_queued.set()

    def close(self) -> None:
        self.answer()
        self.broker.close()

    def written(self) -> set[bytes]:
        return set(self.broker.cluster.values(OUTPUT))

    def _send(self, line: Line, frame: bytes) -> None:
        self._are_queued.wait()
        line.send(framed(frame))


@pytest.fixture
def leader():
    with closing(Refusing()) as leader:
        yield leader


def outputs(values: list[bytes]) -> pa.RecordBatch:
    partitions = pa.array([OUTPUT.partition] * len(values), pa.int32())
    return pa.RecordBatch.from_pydict({"value": values, "partition": partitions})


def write_batch(leader: Refusing, *, is_recreated: bool) -> None:
    given = parse_sink_options({**leader.options, "topic": OUTPUT.topic}, QueryKind.BATCH)
    with closing_clients(sink_container_for(given)) as container:
        writer = container.record_writer()
        writer.write(outputs(VALUES[:1]), OUTPUT.topic)
        leader.await_first()
        writer.write(outputs(VALUES[1:]), OUTPUT.topic)
        leader.answer(is_recreated=is_recreated)
        writer.flush()


@contextmanager
def _streaming(leader: Refusing) -> Iterator[StreamClient]:
    source = parse_source_options({**leader.options, "subscribe": INPUT.topic}, QueryKind.STREAM)
    given = {**leader.options, "topic": OUTPUT.topic}
    with (
        closing_clients(container_for(source)) as container,
        closing(
            container.stream_client(
                parse_sink_options(given, QueryKind.STREAM), ContinuousSettings("group")
            )
        ) as client,
    ):
        client.assign(PartitionOffsets({INPUT: 0}))
        yield client


def _polled(leader: Refusing, client: StreamClient) -> PolledRecords:
    """Return the next record of the input, which is made for it."""
    leader.broker.cluster.append(INPUT, [b"x"], 1)
    found: list[PolledRecords] = []

    def is_found() -> bool:
        found.extend(client.poll(0.1))
        return bool(found)

    await_until(is_found)
    return found[0]


def _settle(client: StreamClient, offset: int) -> None:
    await_until(lambda: not client.poll(0.1) and client.acknowledged().get(INPUT) == offset)


def write_continuously(leader: Refusing, *, is_recreated: bool) -> None:
    with _streaming(leader) as client:
        client.write(_polled(leader, client), [outputs(VALUES[:1])])
        leader.await_first()
        client.write(_polled(leader, client), [outputs(VALUES[1:])])
        leader.answer(is_recreated=is_recreated)
        _settle(client, 2)


@pytest.mark.parametrize("is_recreated", [True, False])
@pytest.mark.parametrize("write", [write_batch, write_continuously])
def test_a_record_that_is_reported_without_an_offset_was_not_delivered(leader, write, is_recreated):
    """Librdkafka takes a refused batch for a duplicate if a later one succeeds.

    A leader that does not know the producer takes it: of a new topic, or a newly elected one. The
    refused batch is sent again where the later ones were not on their way yet.
    """
    failure = ""
    try:
        write(leader, is_recreated=is_recreated)
    except RecordDeliveryError as error:
        failure = str(error)
    assert not failure or "acknowledged without an offset" in failure
    assert (VALUES[0] in leader.written()) is (not failure)
