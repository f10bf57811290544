"""The contract suite of ``StreamClient``."""

from __future__ import annotations

import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Event
from typing import Any, Final

import pytest

from ..domain.reading.data_loss import DataLoss
from ..domain.reading.errors import OffsetOutOfRangeError, OversizedRecordError, TopicRecreatedError
from ..domain.reading.records import ALL_COLUMNS, WITHOUT_HEADERS, Projection
from ..domain.topic_partition import TopicPartition
from ..ports.record_schema import record_schema
from .reading_contract import VALUES, Reading, ReadingContract
from .stream_task import LONG_S, SOON_S, StreamTask
from .stream_transactions_contract import StreamTransactionsContract
from .stream_writing_contract import StreamWritingContract
from .world import COMMITTED, Capability, Record, World, numbered

_SHORT_S: Final = 0.2


def _values(start: int, end: int) -> list[bytes]:
    return [b"v%d" % number for number in range(start, end)]


def _read_first(world: World, task: StreamTask, partition: TopicPartition, count: int) -> None:
    """Produce the first records of a partition, and read them."""
    world.produce(partition, numbered(0, count))
    task.assign({partition: 0})
    task.read_to({partition: count})


class _StreamReading(Reading):
    """Reads on from the start of a range until its end has been passed."""

    def __init__(self, task: StreamTask) -> None:
        super().__init__()
        self._task = task

    def read(self, partition: TopicPartition, start: int, end: int) -> list[dict[str, Any]]:
        self._task.read.pop(partition, None)
        self._task.assign({partition: start})
        try:
            self._task.run_until(lambda: self._task.written.get(partition, start) >= end)
        finally:
            self.rows = [row for row in self._task.read[partition] if row["offset"] < end]
        return self.rows

    def take_skipped(self) -> Iterable[DataLoss]:
        return self._task.client.take_skipped()


class StreamReadingContract(ReadingContract):
    """Reading with a ``StreamClient``, without a sink."""

    def reading(self, world: World, projection: Projection = VALUES, /, **options: str) -> Reading:
        """Return a way to read with a new client that has further options."""
        world.require(Capability.CONTINUOUS)
        included = {
            "includeHeaders": str("headers" in projection),
            "includeTimestamp": str("timestamp" in projection),
        }
        return _StreamReading(StreamTask(world.stream_client(None, **included, **options)))

    @pytest.fixture
    def partition(self, world: World) -> TopicPartition:
        """Return the second of two partitions, so that mixing them up fails."""
        world.require(Capability.CONTINUOUS)
        return TopicPartition(world.topic(2), 1)

    @pytest.fixture
    def task(self, world: World) -> StreamTask:
        """Return a task without a sink."""
        world.require(Capability.CONTINUOUS)
        return StreamTask(world.stream_client(None))

    @pytest.mark.parametrize("projection", [ALL_COLUMNS, WITHOUT_HEADERS])
    def test_records_have_the_schema_of_the_projection(
        self, world: World, partition: TopicPartition, projection: Projection
    ) -> None:
        """There is a column of headers only if they are included."""
        world.produce(partition, numbered(0, 1))
        client = world.stream_client(None, includeHeaders=str("headers" in projection))
        task = StreamTask(client)
        task.assign({partition: 0})
        [polled] = task.poll()
        assert polled.records is not None
        assert polled.records.schema == record_schema(projection)

    def test_reading_starts_at_the_assigned_offset(
        self, world: World, task: StreamTask, partition: TopicPartition
    ) -> None:
        """Earlier records, perhaps of the same batch in the log, are not returned."""
        world.produce(partition, numbered(0, 100))
        task.assign({partition: 37})
        task.read_to({partition: 100})
        assert task.values(partition) == _values(37, 100)

    def test_records_belong_to_the_caller(
        self, world: World, task: StreamTask, partition: TopicPartition
    ) -> None:
        """Polled records do not change when further ones are polled."""
        task.assign({partition: 0})
        kept = []
        for start in range(0, 50, 10):
            world.produce(partition, numbered(start, start + 10))
            polled = task.poll()
            task.write(polled)
            kept += [each.records for each in polled]
        task.read_to({partition: 50})
        rows = [row for records in kept if records is not None for row in records.to_pylist()]
        assert [row["value"] for row in rows] == _values(0, 50)[: len(rows)]

    def test_a_record_that_arrives_ends_a_poll(
        self, world: World, task: StreamTask, partition: TopicPartition
    ) -> None:
        """A poll returns when a record is produced, long before its time-out."""
        _read_first(world, task, partition, 1)
        polling = Event()

        def produce() -> None:
            assert polling.wait(LONG_S)
            world.produce(partition, numbered(1, 2))

        with ThreadPoolExecutor(1) as pool:
            produced = pool.submit(produce)
            started = time.monotonic()
            polling.set()
            [polled] = task.client.poll(LONG_S)
            assert time.monotonic() - started < SOON_S
            produced.result()
        task.write([polled])
        assert task.values(partition) == _values(0, 2)

    def test_a_poll_without_records_ends_in_time(
        self, world: World, task: StreamTask, partition: TopicPartition
    ) -> None:
        """At the end of the log, a poll waits for its time-out, and returns nothing."""
        world.produce(partition, numbered(0, 1))
        task.assign({partition: 0})
        task.process_to({partition: 1})
        started = time.monotonic()
        assert not task.client.poll(_SHORT_S)
        # Timers of some systems are early by a tick.
        assert 0.9 * _SHORT_S < time.monotonic() - started < SOON_S

    def test_a_poll_without_partitions_ends_in_time(self, task: StreamTask) -> None:
        """A task without partitions waits until it gets one."""
        started = time.monotonic()
        assert not task.client.poll(_SHORT_S)
        assert 0.9 * _SHORT_S < time.monotonic() - started < SOON_S

    def test_several_partitions_are_read(self, world: World, task: StreamTask) -> None:
        """A client reads partitions of several topics, each in order."""
        topics = world.topic(3), world.topic(3)
        partitions = [TopicPartition(topic, number) for topic in topics for number in range(3)]
        for count, partition in enumerate(partitions, 1):
            world.produce(partition, numbered(0, 1_000 * count))
        task.assign(dict.fromkeys(partitions, 0))
        task.read_to({partition: 1_000 * n for n, partition in enumerate(partitions, 1)})
        for count, partition in enumerate(partitions, 1):
            assert task.values(partition) == _values(0, 1_000 * count)

    def test_partitions_are_assigned_while_others_are_read(
        self, world: World, task: StreamTask
    ) -> None:
        """A further partition does not disturb those that are read already."""
        one, other = (TopicPartition(world.topic(), 0) for _ in range(2))
        world.produce(other, numbered(0, 10))
        _read_first(world, task, one, 10)
        assert task.assign({other: 4}) == {other: 4}
        world.produce(one, numbered(10, 20))
        task.read_to({one: 20, other: 10})
        assert task.values(one) == _values(0, 20)
        assert task.values(other) == _values(4, 10)

    @pytest.mark.parametrize("offset", [0, 3, 15])
    def test_an_assigned_partition_is_moved(
        self, world: World, task: StreamTask, partition: TopicPartition, offset: int
    ) -> None:
        """Assigning a partition again reads it from another offset, backwards or forwards."""
        _read_first(world, task, partition, 10)
        world.produce(partition, numbered(10, 20))
        assert task.assign({partition: offset}) == {partition: offset}
        task.read_to({partition: 20})
        assert task.values(partition) == _values(0, 10) + _values(offset, 20)

    def test_revoked_partitions_are_not_read(self, world: World, task: StreamTask) -> None:
        """After a revocation only the other partitions are read; unknown ones are ignored."""
        kept, revoked, unknown = (TopicPartition(world.topic(), 0) for _ in range(3))
        task.assign({kept: 0, revoked: 0})
        world.produce(revoked, numbered(0, 10))
        task.read_to({revoked: 10})
        task.client.revoke([revoked, unknown])
        world.produce(revoked, numbered(10, 20))
        world.produce(kept, numbered(0, 10))
        task.read_to({kept: 10})
        assert not task.client.poll(_SHORT_S)
        assert task.values(revoked) == _values(0, 10)

    def test_a_revoked_partition_can_be_assigned_again(
        self, world: World, task: StreamTask, partition: TopicPartition
    ) -> None:
        """The partition is read from the offset that is assigned."""
        _read_first(world, task, partition, 20)
        task.client.revoke([partition])
        task.assign({partition: 15})
        task.read_to({partition: 20})
        assert task.values(partition) == _values(0, 20) + _values(15, 20)

    def test_offsets_without_visible_records_are_passed(
        self, world: World, partition: TopicPartition
    ) -> None:
        """Where all records were aborted, only the next offset is returned."""
        world.require(Capability.TRANSACTIONS)
        with world.transaction(commit=False) as write:
            write(partition, numbered(0, 3))
        task = StreamTask(world.stream_client(None, **COMMITTED))
        task.assign({partition: 0})
        task.process_to({partition: 4})
        assert task.values(partition) == []
        assert task.acknowledged == {partition: 4}

    def test_open_transactions_are_waited_for(
        self, world: World, partition: TopicPartition
    ) -> None:
        """Under read_committed, records are returned once their transaction is committed."""
        world.require(Capability.TRANSACTIONS)
        task = StreamTask(world.stream_client(None, **COMMITTED))
        task.assign({partition: 0})
        with world.transaction(commit=True) as write:
            write(partition, numbered(0, 3))
            world.produce(partition, numbered(3, 4))
            assert not task.client.poll(_SHORT_S)
        task.read_to({partition: 5})
        assert task.values(partition) == _values(0, 4)

    def test_the_end_is_in_range(
        self, world: World, task: StreamTask, partition: TopicPartition
    ) -> None:
        """A read from the end waits for the next record."""
        world.produce(partition, numbered(0, 10))
        task.assign({partition: 10})
        assert not task.client.poll(_SHORT_S)
        world.produce(partition, numbered(10, 11))
        task.read_to({partition: 11})
        assert task.values(partition) == _values(10, 11)

    def test_an_error_loses_no_records_of_other_partitions(
        self, world: World, task: StreamTask
    ) -> None:
        """Records that come with another partition's error are returned later, each once."""
        one, other = (TopicPartition(world.topic(), 0) for _ in range(2))
        world.produce(one, numbered(0, 5_000))
        world.produce(other, numbered(0, 10))
        task.assign({one: 0, other: 15})
        with pytest.raises(OffsetOutOfRangeError):
            task.read_to({other: 16})
        task.assign({other: 0})
        task.read_to({one: 5_000, other: 10})
        assert task.values(one) == _values(0, 5_000)

    def test_an_error_of_a_revoked_partition_is_not_raised(self, world: World) -> None:
        """Another task may read the partition now: its error must not end this one."""
        revoked, kept = (TopicPartition(world.topic(), 0) for _ in range(2))
        world.produce(kept, numbered(0, 25_000))
        world.produce(revoked, [*numbered(0, 3), Record(b"v" * 2_000)])
        task = StreamTask(world.stream_client(None, maxRecordBytes="1000"))
        task.assign({kept: 0, revoked: 0})
        with suppress(OversizedRecordError):
            task.read_to({revoked: 3})
            task.write(task.poll())
        task.client.revoke([revoked])
        task.read_to({kept: 25_000})
        assert task.values(kept) == _values(0, 25_000)

    def test_a_recreated_topic_is_an_error(self, world: World, task: StreamTask) -> None:
        """A new topic's records are not taken for the old topic's, until it is assigned."""
        world.require(Capability.DELETE_TOPICS, Capability.RECREATED_STREAMS)
        partition = TopicPartition(world.topic(), 0)
        _read_first(world, task, partition, 3)
        world.delete_topic(partition.topic)
        world.create(partition.topic)
        world.produce(partition, numbered(0, 10))
        with pytest.raises(TopicRecreatedError) as caught:
            task.poll()
        assert (caught.value.partition, caught.value.offset) == (partition, 3)
        assert caught.value.earliest == 0
        task.assign({partition: 0})
        task.read_to({partition: 10})
        assert task.values(partition) == _values(0, 3) + _values(0, 10)

    def test_a_recreated_topic_that_is_shorter_is_an_error(
        self, world: World, task: StreamTask
    ) -> None:
        """The next offset of the old topic is out of the new one's range, too."""
        world.require(Capability.DELETE_TOPICS, Capability.RECREATED_STREAMS)
        partition = TopicPartition(world.topic(), 0)
        _read_first(world, task, partition, 10)
        world.delete_topic(partition.topic)
        world.create(partition.topic)
        world.produce(partition, numbered(0, 3))
        with pytest.raises((TopicRecreatedError, OffsetOutOfRangeError)):
            task.poll()

    def test_a_deleted_topic_returns_nothing(self, world: World, task: StreamTask) -> None:
        """Other partitions are still read."""
        world.require(Capability.DELETE_TOPICS)
        kept, deleted = (TopicPartition(world.topic(), 0) for _ in range(2))
        world.produce(deleted, numbered(0, 3))
        task.assign({kept: 0, deleted: 0})
        task.read_to({deleted: 3})
        world.delete_topic(deleted.topic)
        world.produce(kept, numbered(0, 3))
        task.read_to({kept: 3})
        assert not task.client.poll(_SHORT_S)
        world.produce(kept, numbered(3, 6))
        task.read_to({kept: 6})
        assert task.values(kept) == _values(0, 6)

    def test_a_partition_may_be_added_later(self, world: World, task: StreamTask) -> None:
        """A partition that does not exist returns nothing until it does."""
        world.require(Capability.ADD_PARTITIONS)
        first = TopicPartition(world.topic(), 0)
        added = TopicPartition(first.topic, 1)
        task.assign({first: 0, added: 0})
        assert not task.client.poll(_SHORT_S)
        world.add_partitions(first.topic, 2)
        world.produce(added, numbered(0, 3))
        world.produce(first, numbered(0, 3))
        task.read_to({first: 3, added: 3})
        assert task.values(added) == _values(0, 3)

    def test_closing_twice_is_allowed(
        self, world: World, task: StreamTask, partition: TopicPartition
    ) -> None:
        """A second call of close has no effect, whether the client has connected or not."""
        for _ in range(2):
            task.client.close()
        other = world.stream_client(None)
        StreamTask(other).assign({partition: 0})
        other.poll(0)
        for _ in range(2):
            other.close()

    def test_nothing_is_read_after_close(
        self, world: World, task: StreamTask, partition: TopicPartition
    ) -> None:
        """A closed client returns nothing, at once or in time."""
        _read_first(world, task, partition, 1)
        task.client.close()
        world.produce(partition, numbered(1, 2))
        assert not task.client.poll(_SHORT_S)


class StreamClientContract(
    StreamReadingContract, StreamWritingContract, StreamTransactionsContract
):
    """The contract of ``StreamClient``; a subclass overrides the fixture ``world``."""
