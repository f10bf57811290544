"""The common part of the contract suites of ``RecordReader`` and ``StreamClient``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar, Final

import pytest

from ..domain.reading.data_loss import DataLoss
from ..domain.reading.errors import (
    CorruptBatchError,
    MalformedTimestampError,
    OffsetOutOfRangeError,
    OversizedRecordError,
)
from ..domain.reading.records import ALL_COLUMNS, Projection
from ..domain.topic_partition import TopicPartition
from .world import COMMITTED, Capability, Record, World, WorldContract, numbered

VALUES: Final = Projection(("offset", "value"))

LARGE: Final = Record(b"v" * 2_000, headers=(("a", b"1" * 40),) * 5)
LIMITS: Final = {"maxRecordBytes": 1_000, "maxRecordHeaders": 4, "maxRecordHeaderBytes": 199}
"""A record, and limits that it exceeds."""


class Reading(ABC):
    """Reads partitions with one client, in whichever way its port has."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        """The rows of the last ``read``, also if it ended with an error."""

    @abstractmethod
    def read(self, partition: TopicPartition, start: int, end: int) -> list[dict[str, Any]]:
        """Return the records of a range, which have the schema of the projection."""

    @abstractmethod
    def take_skipped(self) -> Iterable[DataLoss]:
        """Return the records that were skipped since the last call."""

    def offsets(self, partition: TopicPartition, start: int, end: int) -> list[int]:
        """Return the offsets of the records of a range."""
        return [row["offset"] for row in self.read(partition, start, end)]


class ReadingContract(WorldContract):
    """The tests that a client's records and errors pass however they are read."""

    many: ClassVar[int] = 25_000
    """The records of a range that takes several fetches and batches."""

    @pytest.fixture
    def partition(self, world: World) -> TopicPartition:
        """Return the second of two partitions, so that mixing them up fails."""
        return TopicPartition(world.topic(2), 1)

    def reading(self, world: World, projection: Projection = VALUES, /, **options: str) -> Reading:
        """Return a way to read with a new client that has further options."""
        raise NotImplementedError

    def test_records_come_in_order_and_once(self, world: World, partition: TopicPartition) -> None:
        """A range over many fetches and batches is read completely, in order, each record once."""
        world.produce(partition, numbered(0, self.many))
        read = self.reading(world).read(partition, 0, self.many)
        assert [(row["offset"], row["value"]) for row in read] == [
            (number, b"v%d" % number) for number in range(self.many)
        ]

    def test_every_column_is_read(self, world: World, partition: TopicPartition) -> None:
        """Each column has the produced value, in the type of the schema."""
        world.require(Capability.HEADERS, Capability.TIMESTAMPS)
        record = Record(b"value", b"key", (("a", b"1"), ("b", None)), 1_700_000_000_123)
        world.produce(partition, [record])
        [row] = self.reading(world, ALL_COLUMNS).read(partition, 0, 1)
        assert int(row.pop("timestamp").timestamp() * 1_000) == record.timestamp
        assert row == {
            "key": b"key",
            "value": b"value",
            "topic": partition.topic,
            "partition": partition.partition,
            "offset": 0,
            "timestampType": 0,
            "headers": [{"key": "a", "value": b"1"}, {"key": "b", "value": None}],
        }

    def test_aborted_records_are_skipped_under_read_committed(
        self, world: World, partition: TopicPartition
    ) -> None:
        """Under read_committed neither aborted records nor control records are returned."""
        world.require(Capability.TRANSACTIONS)
        _two_transactions(world, partition)
        read = self.reading(world, **COMMITTED).offsets(partition, 0, 12)
        assert read == [0, 1, 6, 7, 8, 10, 11]

    def test_aborted_records_are_read_under_read_uncommitted(
        self, world: World, partition: TopicPartition
    ) -> None:
        """Under read_uncommitted only control records are skipped."""
        world.require(Capability.TRANSACTIONS)
        _two_transactions(world, partition)
        read = self.reading(world).offsets(partition, 0, 12)
        assert read == [0, 1, 2, 3, 4, 6, 7, 8, 10, 11]

    def test_a_deleted_start_is_out_of_range(self, world: World, partition: TopicPartition) -> None:
        """The error has the offsets that the broker holds, and the rest can be read."""
        world.require(Capability.DELETE_RECORDS)
        world.produce(partition, numbered(0, 10))
        world.delete_records(partition, 4)
        reading = self.reading(world)
        with pytest.raises(OffsetOutOfRangeError) as caught:
            reading.read(partition, 2, 10)
        assert (caught.value.partition, caught.value.offset) == (partition, 2)
        assert (caught.value.earliest, caught.value.latest) == (4, 10)
        assert reading.offsets(partition, 4, 10) == list(range(4, 10))

    def test_a_start_after_the_end_is_out_of_range(
        self, world: World, partition: TopicPartition
    ) -> None:
        """A topic may have been recreated. The same client can read the records."""
        world.produce(partition, numbered(0, 10))
        reading = self.reading(world)
        with pytest.raises(OffsetOutOfRangeError) as caught:
            reading.read(partition, 15, 20)
        assert (caught.value.offset, caught.value.latest) == (15, 10)
        assert reading.offsets(partition, 4, 10) == list(range(4, 10))

    @pytest.mark.parametrize("columns", [VALUES, Projection(("offset",))])
    def test_a_corrupt_batch_is_an_error(
        self, world: World, partition: TopicPartition, columns: Projection
    ) -> None:
        """The batch is neither returned nor skipped; earlier records and other ranges are read."""
        world.require(Capability.CORRUPTION)
        for start in (0, 10, 20):
            # librdkafka takes the last 21 bytes of a damaged batch for the header of another one,
            # and may abort the process if it knows the format that this header has (the FIXME in
            # its rdkafka_msgset_reader.c). Here it does not.
            values = [b"%d of a batch" % number for number in range(start, start + 10)]
            world.produce(partition, [Record(each) for each in values])
        world.corrupt(partition, 10)
        reading = self.reading(world, columns)
        with pytest.raises(CorruptBatchError) as caught:
            reading.read(partition, 5, 30)
        assert (caught.value.partition, caught.value.offset) == (partition, 10)
        assert [row["offset"] for row in reading.rows] == list(range(5, 10))
        assert reading.offsets(partition, 20, 30) == list(range(20, 30))

    def test_a_timestamp_overflow_names_its_record(self, world: World) -> None:
        """A time in nanoseconds overflows Spark's microseconds; the records before it are read."""
        world.require(Capability.TIMESTAMPS)
        partition = TopicPartition(
            world.topic(message__timestamp__after__max__ms=str(2**63 - 1)), 0
        )
        world.produce(partition, [Record(b"v"), Record(b"w", timestamp=1_700_000_000_000_000_000)])
        reading = self.reading(world, Projection(("timestamp", "offset")))
        with pytest.raises(MalformedTimestampError, match="partition 0 offset 1 "):
            reading.read(partition, 0, 2)
        assert [row["offset"] for row in reading.rows] == [0]
        assert self.reading(world).offsets(partition, 0, 2) == [0, 1]

    @pytest.mark.parametrize("option", LIMITS)
    def test_an_oversized_record_is_an_error(
        self, world: World, partition: TopicPartition, option: str
    ) -> None:
        """The records before it are returned, and the error names it, the option and the limit."""
        world.require(Capability.HEADERS)
        world.produce(partition, [*numbered(0, 3), LARGE, *numbered(4, 6)])
        reading = self.reading(world, ALL_COLUMNS, **{option: str(LIMITS[option])})
        with pytest.raises(OversizedRecordError) as caught:
            reading.read(partition, 0, 6)
        assert [row["offset"] for row in reading.rows] == [0, 1, 2]
        error = caught.value
        assert (error.partition, error.offset) == (partition, 3)
        assert (error.option, error.limit) == (option, LIMITS[option])
        assert error.size > error.limit
        for start, end in ((4, 6), (0, 3)):
            assert reading.offsets(partition, start, end) == list(range(start, end))
        assert not list(reading.take_skipped())

    @pytest.mark.parametrize("option", LIMITS)
    def test_oversized_records_are_skipped(
        self, world: World, partition: TopicPartition, option: str
    ) -> None:
        """With the option to skip them, the others are read, and the skipped ones are reported."""
        world.require(Capability.HEADERS)
        world.produce(partition, [LARGE, *numbered(1, 3), LARGE, *numbered(4, 6), LARGE])
        options = {option: str(LIMITS[option]), "skipOversizedRecords": "true"}
        reading = self.reading(world, ALL_COLUMNS, **options)
        assert reading.offsets(partition, 0, 7) == [1, 2, 4, 5]
        [loss] = reading.take_skipped()
        for fact in (option, str(LIMITS[option]), str(partition), "3 records", "0, 3, 6"):
            assert fact in loss.warning
        assert not list(reading.take_skipped())


def _two_transactions(world: World, partition: TopicPartition) -> None:
    """Write 0-1 outside of transactions, 2-4 aborted (marker 5), 6-8 committed (9), and 10-11."""
    world.produce(partition, numbered(0, 2))
    with world.transaction(commit=False) as write:
        write(partition, numbered(2, 5))
    with world.transaction(commit=True) as write:
        write(partition, numbered(6, 9))
    world.produce(partition, numbered(10, 12))
