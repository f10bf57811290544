"""The rule of exactly-once delivery: which writers there are, and what they acknowledge."""

import math
from collections.abc import Collection, Mapping
from contextlib import closing
from typing import Any

import pytest

from pyspark_kafka.adapters.kafka_python.stream_sinks import ExactlyOnceSink
from pyspark_kafka.domain.continuous.settings import ContinuousSettings
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.ports.continuous import PolledRecords

from ..options import EXACTLY_ONCE, sink_of

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


class Cycle:
    """The transactions of a writer."""

    waiting_bytes = 0

    def __init__(self) -> None:
        self.offset: int | None = None
        self.committed: int | None = None

    def append(self, _batches: object, next_offset: int) -> None:
        self.offset = next_offset

    def take_committed(self) -> int | None:
        committed, self.committed = self.committed, None
        return committed


class Writer:
    """A writer that commits on demand."""

    transactional_id = "id"

    def __init__(self) -> None:
        self.cycle = Cycle()
        self.is_closed = False

    @property
    def pending(self) -> int | None:
        return self.cycle.offset

    @property
    def is_settled(self) -> bool:
        return self.pending is None and self.cycle.committed is None

    def send(self) -> float:
        return math.inf

    def close(self) -> None:
        self.is_closed = True

    def end(self) -> None:
        self.cycle.committed, self.cycle.offset = self.pending, None


def written(sink: Any, next_offset: int) -> None:
    sink.write(PolledRecords(T0, None, next_offset), [])


@pytest.fixture
def sink(monkeypatch):
    """Return a sink whose group has an offset of one partition, and whose calls are noted."""
    made: Any = ExactlyOnceSink(sink_of("kafka-python", EXACTLY_ONCE), ContinuousSettings("group"))
    made.calls = []

    def begin(
        partitions: Collection[TopicPartition], new: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, int]:
        made.calls.append(("begin", set(new)))
        made._writers.update({each: Writer() for each in partitions})
        return {each: 5 for each in new if each == T0}

    monkeypatch.setattr(made, "_begin", begin)
    monkeypatch.setattr(made, "_await_end", lambda some: made.calls.append(("end", set(some))))
    with closing(made):
        yield made


def test_a_partition_begins_at_the_greater_offset(sink):
    assert sink.assign(PartitionOffsets({T0: 2, T1: 3})) == {T0: 5, T1: 3}
    assert sink.calls == [("end", {T0, T1}), ("begin", {T0, T1})]


def test_a_partition_that_is_assigned_again_keeps_the_given_offset(sink):
    """The group's may be of a deleted topic of the same name."""
    sink.assign(PartitionOffsets({T0: 7}))
    before = sink._writers[T0]
    assert sink.assign(PartitionOffsets({T0: 2, T1: 0})) == {T0: 2, T1: 0}
    assert before.is_closed
    assert sink._writers[T0].pending == 2
    assert sink.calls[-2:] == [("end", {T0, T1}), ("begin", {T1})]


def test_a_revoked_partition_begins_at_the_groups_offset(sink):
    """Another task may have read it meanwhile."""
    sink.assign(PartitionOffsets({T0: 7}))
    sink.revoke([T0, T1])
    assert sink.assign(PartitionOffsets({T0: 2})) == {T0: 5}
    assert sink._writers[T0].pending is None


def test_the_commit_of_an_assigned_offset_acknowledges_nothing(sink):
    sink.assign(PartitionOffsets({T0: 7}))
    sink.assign(PartitionOffsets({T0: 7}))
    assert not sink.is_settled
    sink._writers[T0].end()
    sink.send()
    assert sink.is_settled
    assert not sink.has_acknowledged
    written(sink, 8)
    sink._writers[T0].end()
    assert not sink.is_settled
    sink.send()
    assert sink.take_acknowledged() == {T0: 8}


def test_what_is_not_committed_is_not_acknowledged(sink):
    sink.assign(PartitionOffsets({T0: 7}))
    written(sink, 8)
    sink._writers[T0].end()
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
    writer = sink._writers[T0]
    assert writer.pending == 8
    writer.end()
    sink.send()
    assert sink.take_acknowledged() == {T0: 8}
    assert writer.is_closed
    assert sink.is_settled
    written(sink, 10)
    assert sink.is_settled
