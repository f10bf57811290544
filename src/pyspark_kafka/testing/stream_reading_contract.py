"""The part of ``StreamClient``'s contract suite that reads."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Event
from typing import Final

import pytest

from ..domain.errors import (
    CorruptBatchError,
    MalformedTimestampError,
    OffsetOutOfRangeError,
    OversizedRecordError,
    TopicRecreatedError,
)
from ..domain.reading.records import ALL_COLUMNS, WITHOUT_HEADERS
from ..domain.topic_partition import TopicPartition
from ..ports.reading import record_schema
from .stream_task import LONG_S, SOON_S, StreamTask
from .world import COMMITTED, Capability, Record, World, WorldContract, numbered

_SHORT_S: Final = 0.2


def _values(start: int, end: int) -> list[bytes]:
    return [b"v%d" % number for number in range(start, end)]


class StreamReadingContract(WorldContract):
    """Reading with a ``StreamClient``, without a sink."""

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

    def test_records_come_in_order_and_once(
        self, world: World, task: StreamTask, partition: TopicPartition
    ) -> None:
        """What is in the log, and what is added, is read in order, each record once."""
        world.produce(partition, numbered(0, 25_000))
        assert task.assign({partition: 0}) == {partition: 0}
        task.read_to({partition: 25_000})
        world.produce(partition, numbered(25_000, 25_010))
        task.read_to({partition: 25_010})
        assert task.values(partition) == _values(0, 25_010)
        assert [row["offset"] for row in task.read[partition]] == list(range(25_010))

    @pytest.mark.parametrize("with_headers", [True, False])
    def test_records_have_the_schema_of_the_projection(
        self, world: World, partition: TopicPartition, *, with_headers: bool
    ) -> None:
        """Each column has the produced value; headers only if they are included."""
        world.require(Capability.HEADERS, Capability.TIMESTAMPS)
        record = Record(b"value", b"key", (("a", b"1"), ("b", None)), 1_700_000_000_123)
        world.produce(partition, [record])
        task = StreamTask(world.stream_client(None, includeHeaders=str(with_headers)))
        task.assign({partition: 0})
        [polled] = task.poll()
        assert polled.records is not None
        projection = ALL_COLUMNS if with_headers else WITHOUT_HEADERS
        assert polled.records.schema == record_schema(projection)
        [row] = polled.records.to_pylist()
        headers = row.pop("headers", None)
        assert headers == (
            [{"key": "a", "value": b"1"}, {"key": "b", "value": None}] if with_headers else None
        )
        assert int(row.pop("timestamp").timestamp() * 1_000) == record.timestamp
        assert row == {
            "key": b"key",
            "value": b"value",
            "topic": partition.topic,
            "partition": partition.partition,
            "offset": 0,
            "timestampType": 0,
        }

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
        world.produce(partition, numbered(0, 1))
        task.assign({partition: 0})
        task.read_to({partition: 1})
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
        task.read_to({partition: 1})
        task.settle()
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
        world.produce(one, numbered(0, 10))
        world.produce(other, numbered(0, 10))
        task.assign({one: 0})
        task.read_to({one: 10})
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
        world.produce(partition, numbered(0, 10))
        task.assign({partition: 0})
        task.read_to({partition: 10})
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
        """It is read from the offset that is assigned."""
        world.produce(partition, numbered(0, 20))
        task.assign({partition: 0})
        task.read_to({partition: 20})
        task.client.revoke([partition])
        task.assign({partition: 15})
        task.read_to({partition: 20})
        assert task.values(partition) == _values(0, 20) + _values(15, 20)

    def test_aborted_and_control_records_are_passed(
        self, world: World, partition: TopicPartition
    ) -> None:
        """Under read_committed, neither is returned, and the next offset is after both."""
        world.require(Capability.TRANSACTIONS)
        world.produce(partition, numbered(0, 2))
        with world.transaction(commit=False) as write:
            write(partition, numbered(2, 5))
        with world.transaction(commit=True) as write:
            write(partition, numbered(6, 9))
        task = StreamTask(world.stream_client(None, **COMMITTED))
        task.assign({partition: 0})
        task.read_to({partition: 10})
        assert [row["offset"] for row in task.read[partition]] == [0, 1, 6, 7, 8]

    def test_offsets_without_visible_records_are_passed(
        self, world: World, partition: TopicPartition
    ) -> None:
        """Where all records were aborted, only the next offset is returned."""
        world.require(Capability.TRANSACTIONS)
        with world.transaction(commit=False) as write:
            write(partition, numbered(0, 3))
        task = StreamTask(world.stream_client(None, **COMMITTED))
        task.assign({partition: 0})
        task.read_to({partition: 4})
        task.settle()
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

    def test_a_deleted_offset_is_out_of_range(
        self, world: World, task: StreamTask, partition: TopicPartition
    ) -> None:
        """The error has the offsets that the broker holds, and a further assignment resumes."""
        world.require(Capability.DELETE_RECORDS)
        world.produce(partition, numbered(0, 10))
        world.delete_records(partition, 4)
        task.assign({partition: 2})
        with pytest.raises(OffsetOutOfRangeError) as caught:
            task.poll()
        assert (caught.value.partition, caught.value.offset) == (partition, 2)
        assert (caught.value.earliest, caught.value.latest) == (4, 10)
        task.assign({partition: 4})
        task.read_to({partition: 10})
        assert task.values(partition) == _values(4, 10)

    def test_an_offset_after_the_end_is_out_of_range(
        self, world: World, task: StreamTask, partition: TopicPartition
    ) -> None:
        """The end itself is in range: its record is waited for."""
        world.produce(partition, numbered(0, 10))
        task.assign({partition: 15})
        with pytest.raises(OffsetOutOfRangeError) as caught:
            task.poll()
        assert (caught.value.offset, caught.value.latest) == (15, 10)
        task.assign({partition: 10})
        assert not task.client.poll(_SHORT_S)
        world.produce(partition, numbered(10, 11))
        task.read_to({partition: 11})

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
        world.produce(partition, numbered(0, 3))
        task.assign({partition: 0})
        task.read_to({partition: 3})
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
        world.produce(partition, numbered(0, 10))
        task.assign({partition: 0})
        task.read_to({partition: 10})
        world.delete_topic(partition.topic)
        world.create(partition.topic)
        world.produce(partition, numbered(0, 3))
        with pytest.raises((TopicRecreatedError, OffsetOutOfRangeError)):
            task.poll()

    def test_a_deleted_topic_returns_nothing(self, world: World, task: StreamTask) -> None:
        """Other partitions are read on."""
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

    def test_a_corrupt_batch_is_an_error(
        self, world: World, task: StreamTask, partition: TopicPartition
    ) -> None:
        """The records before it are returned, and it is neither returned nor skipped."""
        world.require(Capability.CORRUPTION)
        for start in (0, 10, 20):
            world.produce(partition, numbered(start, start + 10))
        world.corrupt(partition, 10)
        task.assign({partition: 0})
        with pytest.raises(CorruptBatchError) as caught:
            task.read_to({partition: 30})
        assert (caught.value.partition, caught.value.offset) == (partition, 10)
        assert task.values(partition) == _values(0, 10)

    def test_a_timestamp_overflow_names_its_record(self, world: World, task: StreamTask) -> None:
        """A time in nanoseconds overflows Spark's microseconds; the error names the record."""
        world.require(Capability.TIMESTAMPS)
        partition = TopicPartition(
            world.topic(message__timestamp__after__max__ms=str(2**63 - 1)), 0
        )
        world.produce(partition, [Record(b"v"), Record(b"w", timestamp=1_700_000_000_000_000_000)])
        task.assign({partition: 0})
        with pytest.raises(MalformedTimestampError, match="partition 0 offset 1"):
            task.read_to({partition: 2})
        without = StreamTask(world.stream_client(None, includeTimestamp="false"))
        without.assign({partition: 0})
        without.read_to({partition: 2})
        assert without.values(partition) == [b"v", b"w"]

    def test_an_oversized_record_is_an_error(self, world: World, partition: TopicPartition) -> None:
        """The records before it are returned, and it is neither returned nor skipped."""
        world.produce(partition, [*numbered(0, 3), Record(b"v" * 2_000), *numbered(4, 6)])
        task = StreamTask(world.stream_client(None, maxRecordBytes="1000"))
        task.assign({partition: 0})
        for _ in range(2):
            with pytest.raises(OversizedRecordError) as caught:
                task.read_to({partition: 6})
            assert (caught.value.partition, caught.value.offset) == (partition, 3)
        assert task.values(partition) == _values(0, 3)
        task.assign({partition: 4})
        task.read_to({partition: 6})
        assert task.values(partition) == _values(0, 3) + _values(4, 6)

    def test_oversized_records_are_skipped(self, world: World, partition: TopicPartition) -> None:
        """Where the options say so, the others are read, and the skipped ones are reported."""
        large = Record(b"v" * 2_000)
        world.produce(partition, [*numbered(0, 3), large, *numbered(4, 6), large])
        options = {"maxRecordBytes": "1000", "skipOversizedRecords": "true"}
        task = StreamTask(world.stream_client(None, **options))
        task.assign({partition: 0})
        task.read_to({partition: 7})
        assert task.values(partition) == _values(0, 3) + _values(4, 6)
        [loss] = task.client.take_skipped()
        assert f"Skipped 2 records of {partition}" in loss.warning
        assert "'maxRecordBytes' (1000), at 3, 6" in loss.warning

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
        world.produce(partition, numbered(0, 1))
        task.assign({partition: 0})
        task.read_to({partition: 1})
        task.client.close()
        world.produce(partition, numbered(1, 2))
        assert not task.client.poll(_SHORT_S)
