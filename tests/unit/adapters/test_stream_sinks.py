"""The rule of exactly-once delivery, which is the same for every client."""

from collections.abc import Collection, Mapping, Sequence

import pyarrow as pa
import pytest

from pyspark_kafka.adapters.stream_sinks import NoSink, TransactionalSink
from pyspark_kafka.domain.continuous.settings import ContinuousSettings
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.ports.continuous import PolledRecords

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


class Writer:
    """A writer that commits when it is told to."""

    def __init__(self) -> None:
        self.pending: int | None = None
        self.committed: int | None = None
        self.is_closed = False

    @property
    def is_settled(self) -> bool:
        return self.pending is None and self.committed is None

    is_over = is_settled

    def commit(self, next_offset: int) -> None:
        self.pending = next_offset

    def take_committed(self) -> int | None:
        committed, self.committed = self.committed, None
        return committed

    def finish(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        self.is_closed = True

    def end(self) -> None:
        self.committed, self.pending = self.pending, None


class Sink(TransactionalSink[Writer]):
    """A sink that notes in which order partitions are begun, and the group is read."""

    def __init__(self, committed: Mapping[TopicPartition, int]) -> None:
        super().__init__(ContinuousSettings("group"))
        self.committed = committed
        self.calls: list[tuple[str, set[TopicPartition]]] = []

    def write(self, polled: PolledRecords, outputs: Sequence[pa.RecordBatch]) -> None:  # noqa: ARG002
        writer = self._track(polled)
        if writer is not None:
            writer.commit(polled.next_offset)

    def send(self) -> float:
        self._take_committed()
        return 0.0

    def writer(self, partition: TopicPartition) -> Writer:
        return self._writers[partition]

    def _await_end(self, partitions: Collection[TopicPartition]) -> None:
        self.calls.append(("end", set(partitions)))

    def _begin(
        self, partitions: Collection[TopicPartition], new: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, int]:
        self.calls.append(("begin", set(new)))
        self._writers.update({each: Writer() for each in partitions})
        return {each: self.committed[each] for each in new if each in self.committed}


def written(sink: Sink, next_offset: int) -> None:
    sink.write(PolledRecords(T0, None, next_offset), [])


@pytest.fixture
def sink():
    """Return a sink whose group has an offset of one partition."""
    return Sink({T0: 5})


def test_a_partition_begins_at_the_greater_offset(sink):
    assert sink.assign(PartitionOffsets({T0: 2, T1: 3})) == {T0: 5, T1: 3}
    assert sink.calls == [("end", {T0, T1}), ("begin", {T0, T1})]


def test_a_partition_that_is_assigned_again_keeps_the_given_offset(sink):
    """The group's may be of a deleted topic of the same name."""
    sink.assign(PartitionOffsets({T0: 7}))
    before = sink.writer(T0)
    assert sink.assign(PartitionOffsets({T0: 2, T1: 0})) == {T0: 2, T1: 0}
    assert before.is_closed
    assert sink.writer(T0).pending == 2
    assert sink.calls[-2:] == [("end", {T0, T1}), ("begin", {T1})]


def test_a_revoked_partition_begins_at_the_groups_offset(sink):
    """Another task may have read it meanwhile."""
    sink.assign(PartitionOffsets({T0: 7}))
    sink.revoke([T0, T1])
    assert sink.assign(PartitionOffsets({T0: 2})) == {T0: 5}
    assert sink.writer(T0).pending is None


def test_the_commit_of_an_assigned_offset_acknowledges_nothing(sink):
    sink.assign(PartitionOffsets({T0: 7}))
    sink.assign(PartitionOffsets({T0: 7}))
    assert not sink.is_settled
    sink.writer(T0).end()
    sink.send()
    assert sink.is_settled
    assert not sink.has_acknowledged
    written(sink, 8)
    sink.writer(T0).end()
    assert not sink.is_settled
    sink.send()
    assert sink.take_acknowledged() == {T0: 8}


def test_what_is_not_committed_is_not_acknowledged(sink):
    sink.assign(PartitionOffsets({T0: 7}))
    written(sink, 8)
    sink.writer(T0).end()
    written(sink, 9)
    sink.send()
    assert sink.take_acknowledged() == {T0: 8}
    assert not sink.is_settled


def test_a_revoked_partition_is_delivered_and_takes_no_more(sink):
    """Another task may read it already."""
    sink.assign(PartitionOffsets({T0: 7}))
    written(sink, 8)
    sink.revoke([T0])
    written(sink, 9)
    writer = sink.writer(T0)
    assert writer.pending == 8
    writer.end()
    sink.send()
    assert sink.take_acknowledged() == {T0: 8}
    assert writer.is_closed
    assert sink.is_settled
    written(sink, 10)
    assert sink.is_settled


def test_what_has_no_sink_is_acknowledged_and_may_have_no_outputs():
    sink = NoSink()
    assert sink.assign(PartitionOffsets({T0: 7})) == {T0: 7}
    sink.write(PolledRecords(T0, None, 8), [])
    assert sink.take_acknowledged() == {T0: 8}
    with pytest.raises(ValueError, match="no sink"):
        sink.write(PolledRecords(T0, None, 9), [pa.record_batch({"value": [b"x"]})])
