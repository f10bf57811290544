"""The contract suite of ``RecordReader``."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from typing import Any, Final, cast

import pyarrow as pa
import pytest

from ..domain.errors import BrokerUnreachableError, PysparkKafkaError, UnknownTopicError
from ..domain.reading.data_loss import DataLoss
from ..domain.reading.errors import MissingOffsetsError, OffsetOutOfRangeError, TopicRecreatedError
from ..domain.reading.ranges import OffsetRange
from ..domain.reading.records import ALL_COLUMNS, COLUMNS, Projection
from ..domain.topic_partition import TopicPartition
from ..ports.reading import RecordReader
from ..ports.record_schema import record_schema
from .reading_contract import LARGE, VALUES, Reading, ReadingContract
from .world import COMMITTED, Capability, Record, World, numbered

_OLD: Final = b"o" * 2_000
_PREFETCHED: Final = 8_000
"""More records of this value than a client fetches ahead, which it returns even if deleted."""


def _reader(world: World, **options: str) -> RecordReader:
    made: RecordReader = world.container(**options).record_reader()
    return made


class _RangeReading(Reading):
    """Reads ranges one after another with a ``RecordReader``."""

    def __init__(self, reader: RecordReader, projection: Projection) -> None:
        super().__init__()
        self._reader = reader
        self._projection = projection

    def read(self, partition: TopicPartition, start: int, end: int) -> list[dict[str, Any]]:
        self.rows = []
        for batch in self._reader.read(OffsetRange(partition, start, end), self._projection):
            assert batch.num_rows > 0
            assert batch.schema == record_schema(self._projection)
            self.rows += batch.to_pylist()
        return self.rows

    def take_skipped(self) -> Iterable[DataLoss]:
        return self._reader.take_skipped()


def _rows(
    made: RecordReader, offset_range: OffsetRange, projection: Projection = ALL_COLUMNS
) -> list[dict[str, Any]]:
    start, end = offset_range.from_offset, offset_range.until_offset
    return _RangeReading(made, projection).read(offset_range.partition, start, end)


def _offsets(made: RecordReader, offset_range: OffsetRange) -> list[int]:
    return [row["offset"] for row in _rows(made, offset_range, VALUES)]


class RecordReaderContract(ReadingContract):
    """The contract of ``RecordReader``; a subclass overrides the fixture ``world``."""

    def reading(self, world: World, projection: Projection = VALUES, /, **options: str) -> Reading:
        """Return a way to read ranges with a new reader that has further options."""
        return _RangeReading(_reader(world, **options), projection)

    def test_expected_ranges_are_read_like_others(self, world: World) -> None:
        """Ranges that are announced have the same records, also if others are read instead."""
        topic, other = world.topic(5), world.topic(1)
        sizes = {TopicPartition(topic, number): 40 * number for number in range(5)}
        sizes[TopicPartition(other, 0)] = self.many
        for partition, size in sizes.items():
            world.produce(partition, numbered(0, size))
        ranges = [OffsetRange(partition, 0, size) for partition, size in sizes.items() if size]
        first, second, *rest = ranges
        parts = [OffsetRange(first.partition, 0, 15), OffsetRange(first.partition, 15, 40)]
        made = _reader(world)
        for expected, read in (
            ([*parts, second, *rest], [*parts, second, *rest]),
            ([second, first, *rest], [first, *rest, second]),
            (ranges, [second.starting_at(7), first, second]),
            ((), ranges),
        ):
            made.expect(expected)
            for one in read:
                assert _offsets(made, one) == list(range(one.from_offset, one.until_offset))

    def test_an_expected_range_fails_when_it_is_read(self, world: World) -> None:
        """Its error does not disturb the ranges before and after it."""
        topic, missing = world.topic(3), TopicPartition(world.fresh_name(), 0)
        first, second, third = (TopicPartition(topic, number) for number in range(3))
        for partition in (first, second, third):
            world.produce(partition, numbered(0, 10))
        good = [OffsetRange(first, 0, 10), OffsetRange(third, 0, 10)]
        out_of_range, unknown = OffsetRange(second, 15, 20), OffsetRange(missing, 0, 1)
        made = _reader(world, kafkaConsumer__pollTimeoutMs="500")
        made.expect([good[0], out_of_range, unknown, good[1]])
        assert _offsets(made, good[0]) == list(range(10))
        with pytest.raises(OffsetOutOfRangeError):
            _rows(made, out_of_range)
        with pytest.raises(UnknownTopicError, match=missing.topic):
            _rows(made, unknown)
        assert _offsets(made, good[1]) == list(range(10))

    def test_append_time_is_told_from_create_time(self, world: World) -> None:
        """``timestampType`` is 1 in topics with LogAppendTime, whose brokers set the timestamp."""
        world.require(Capability.LOG_APPEND_TIME, Capability.TIMESTAMPS)
        made, found = _reader(world), []
        for kind in ("LogAppendTime", "CreateTime"):
            partition = TopicPartition(world.topic(message__timestamp__type=kind), 0)
            world.produce(partition, [Record(b"v", timestamp=1_000)])
            [row] = _rows(made, OffsetRange(partition, 0, 1))
            found.append((row["timestampType"], row["timestamp"].timestamp() == 1))
        assert found == [(1, False), (0, True)]

    @pytest.mark.parametrize(("key", "value"), [(None, b""), (b"", None), (None, None), (b"", b"")])
    def test_null_and_empty_differ(
        self, world: World, partition: TopicPartition, key: bytes | None, value: bytes | None
    ) -> None:
        """A null key or value stays null, and an empty one stays empty."""
        world.produce(partition, [Record(value, key)])
        [row] = _rows(_reader(world), OffsetRange(partition, 0, 1))
        assert (row["key"], row["value"]) == (key, value)

    def test_headers_keep_order_duplicates_and_nulls(
        self, world: World, partition: TopicPartition
    ) -> None:
        """Headers are a list of pairs; a record without any has null."""
        world.require(Capability.HEADERS)
        headers = (("b", b"1"), ("a", None), ("b", b""), ("", b"2"))
        world.produce(partition, [Record(b"v", headers=headers), Record(b"w")])
        some, none = _rows(_reader(world), OffsetRange(partition, 0, 2))
        assert [(pair["key"], pair["value"]) for pair in some["headers"]] == list(headers)
        assert none["headers"] is None

    @pytest.mark.parametrize(("start", "end"), [(0, 100), (0, 1), (37, 41), (99, 100), (50, 50)])
    def test_nothing_outside_of_the_range_is_read(
        self, world: World, partition: TopicPartition, start: int, end: int
    ) -> None:
        """A range within a batch of the log returns only its own records."""
        world.produce(partition, numbered(0, 100))
        assert _offsets(_reader(world), OffsetRange(partition, start, end)) == list(
            range(start, end)
        )

    @pytest.mark.parametrize("columns", [("value",), ("offset", "key"), tuple(reversed(COLUMNS))])
    def test_only_the_projected_columns_are_read(
        self, world: World, partition: TopicPartition, columns: tuple[str, ...]
    ) -> None:
        """Batches have the projected columns, in that order, with the same values."""
        world.produce(partition, [Record(b"value", b"key")])
        [whole] = _rows(_reader(world), OffsetRange(partition, 0, 1))
        [part] = _rows(_reader(world), OffsetRange(partition, 0, 1), Projection(columns))
        assert list(part) == list(columns)
        assert part == {column: whole[column] for column in columns}

    def test_a_reader_reads_one_range_after_another(self, world: World) -> None:
        """A reader reads partitions of several topics, forwards, backwards and repeatedly."""
        one, other = TopicPartition(world.topic(), 0), TopicPartition(world.topic(), 0)
        world.produce(one, numbered(0, 10))
        world.produce(other, numbered(0, 20))
        made = _reader(world)
        for partition, start, end in ((one, 5, 10), (other, 0, 20), (one, 0, 5), (one, 0, 5)):
            assert _offsets(made, OffsetRange(partition, start, end)) == list(range(start, end))

    def test_an_iterator_can_be_abandoned(self, world: World, partition: TopicPartition) -> None:
        """A range that is not read to its end, or not at all, does not affect the next one."""
        world.produce(partition, numbered(0, self.many))
        made = _reader(world)
        for drop in (0, 1, 2):
            made.read(OffsetRange(partition, self.many // 2, self.many), VALUES)
            iterator = made.read(OffsetRange(partition, drop, self.many), VALUES)
            assert next(iterator)["offset"][0].as_py() == drop
            if drop == 1:
                cast("Generator[pa.RecordBatch]", iterator).close()
            del iterator
        assert _offsets(made, OffsetRange(partition, 10, 20)) == list(range(10, 20))

    def test_batches_belong_to_the_caller(self, world: World, partition: TopicPartition) -> None:
        """A batch does not change when the next one, or another range, is read."""
        world.produce(partition, numbered(0, self.many))
        made = _reader(world)
        kept = [
            (batch, batch.to_pylist())
            for start in (0, 7)
            for batch in made.read(OffsetRange(partition, start, self.many), VALUES)
        ]
        assert all(batch.to_pylist() == then for batch, then in kept)

    @pytest.mark.parametrize("compression", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
    def test_every_compression_is_read(self, world: World, compression: str) -> None:
        """Records of topics with each compression type are read."""
        world.require(Capability.COMPRESSION)
        partition = TopicPartition(world.topic(compression__type=compression), 0)
        world.produce(partition, numbered(0, 1_000))
        read = _rows(_reader(world), OffsetRange(partition, 0, 1_000), VALUES)
        assert read == [{"offset": n, "value": b"v%d" % n} for n in range(1_000)]

    def test_a_range_may_end_in_offsets_without_records(
        self, world: World, partition: TopicPartition
    ) -> None:
        """A range whose last offsets are control or aborted records ends normally."""
        world.require(Capability.TRANSACTIONS)
        world.produce(partition, numbered(0, 2))
        with world.transaction(commit=False) as write:
            write(partition, numbered(2, 5))
        assert _offsets(_reader(world, **COMMITTED), OffsetRange(partition, 0, 6)) == [0, 1]
        assert _offsets(_reader(world, **COMMITTED), OffsetRange(partition, 3, 6)) == []
        assert _offsets(_reader(world), OffsetRange(partition, 5, 6)) == []

    def test_a_range_that_ends_after_the_log_is_out_of_range(
        self, world: World, partition: TopicPartition
    ) -> None:
        """The records up to the end are read, and then the missing offset is an error, in time."""
        world.produce(partition, numbered(0, 10))
        read, error = _read_until_error(
            _reader(world, kafkaConsumer__pollTimeoutMs="500"), OffsetRange(partition, 5, 20)
        )
        assert read == list(range(5, 10))
        assert isinstance(error, OffsetOutOfRangeError)
        assert (error.partition, error.offset) == (partition, 10)
        assert (error.earliest, error.latest) == (0, 10)

    def test_an_open_transaction_is_out_of_range_under_read_committed(
        self, world: World, partition: TopicPartition
    ) -> None:
        """The log ends at the last stable offset, also for records after it without transaction."""
        world.require(Capability.TRANSACTIONS)
        world.produce(partition, numbered(0, 2))
        with world.transaction(commit=True) as write:
            write(partition, numbered(2, 4))
            world.produce(partition, numbered(4, 6))
            read, error = _read_until_error(
                _reader(world, **COMMITTED, kafkaConsumer__pollTimeoutMs="500"),
                OffsetRange(partition, 0, 6),
            )
            assert _offsets(_reader(world), OffsetRange(partition, 0, 6)) == list(range(6))
        assert read == [0, 1]
        assert isinstance(error, OffsetOutOfRangeError)
        assert (error.offset, error.latest) == (2, 2)

    def test_records_that_are_deleted_during_a_read_are_an_error(
        self, world: World, partition: TopicPartition
    ) -> None:
        """The records that were read are yielded; the error names the offsets lost after them."""
        world.require(Capability.DELETE_RECORDS)
        # More than a client fetches ahead: records that it has fetched are not lost.
        end, remaining = 3 * self.many, 100
        world.produce(partition, [Record(b"v" * 200)] * end)
        made = _reader(world)
        batches = made.read(OffsetRange(partition, 0, end), VALUES)
        read = next(batches)["offset"].to_pylist()
        world.delete_records(partition, end - remaining)
        error = _consume(batches, read)
        assert read == list(range(len(read)))
        assert _lost(error) == (partition, len(read), end - remaining)
        assert _offsets(made, OffsetRange(partition, end - remaining, end)) == [
            *range(end - remaining, end)
        ]

    def test_a_recreated_topic_is_an_error(self, world: World) -> None:
        """A new topic's records do not follow the old topic's; another range has them."""
        world.require(Capability.DELETE_TOPICS, Capability.RECREATED_RANGES)
        partition = TopicPartition(world.topic(), 0)
        made = _reader(world)
        read, error = _read_recreated(world, made, partition, 2 * _PREFETCHED)
        assert isinstance(error, TopicRecreatedError)
        assert (error.partition, error.offset, error.earliest) == (partition, len(read), 0)
        assert read == list(range(len(read)))
        rows = _rows(made, OffsetRange(partition, 0, _PREFETCHED), VALUES)
        assert rows == [{"offset": n, "value": b"v%d" % n} for n in range(_PREFETCHED)]

    def test_a_recreated_topic_that_is_shorter_is_an_error(self, world: World) -> None:
        """Its end is not taken for the range's end; the offset alone may show the recreation."""
        world.require(Capability.DELETE_TOPICS, Capability.RECREATED_RANGES)
        partition = TopicPartition(world.topic(), 0)
        made = _reader(world)
        read, error = _read_recreated(world, made, partition, 3)
        assert isinstance(error, TopicRecreatedError | OffsetOutOfRangeError)
        assert (error.partition, error.offset, error.earliest) == (partition, len(read), 0)
        assert read == list(range(len(read)))
        assert _offsets(made, OffsetRange(partition, 0, 3)) == [0, 1, 2]

    def test_a_topic_that_is_recreated_before_a_range_is_read(self, world: World) -> None:
        """A reader's knowledge of the old topic does not affect a range of the new one."""
        world.require(Capability.DELETE_TOPICS)
        partition = TopicPartition(world.topic(), 0)
        world.produce(partition, numbered(0, 10))
        made = _reader(world)
        assert _offsets(made, OffsetRange(partition, 0, 10)) == list(range(10))
        world.delete_topic(partition.topic)
        world.create(partition.topic)
        world.produce(partition, numbered(0, 20))
        assert _offsets(made, OffsetRange(partition, 10, 20)) == list(range(10, 20))

    def test_an_unreachable_cluster_is_an_error(
        self, world: World, partition: TopicPartition
    ) -> None:
        """The error comes in time, and a range is never empty because no broker answers."""
        world.require(Capability.OUTAGES)
        with pytest.raises(BrokerUnreachableError):
            _rows(_reader(world, **world.unreachable), OffsetRange(partition, 0, 1))

    def test_a_partition_that_does_not_exist_is_an_error(self, world: World) -> None:
        """A range of a deleted topic is never empty."""
        missing = TopicPartition(world.fresh_name(), 0)
        made = _reader(world, kafkaConsumer__pollTimeoutMs="500")
        with pytest.raises(UnknownTopicError, match=missing.topic):
            _rows(made, OffsetRange(missing, 0, 1))

    def test_headers_that_are_not_read_have_no_limit(
        self, world: World, partition: TopicPartition
    ) -> None:
        """Without the column, a record may have more headers than the options allow."""
        world.require(Capability.HEADERS)
        world.produce(partition, [LARGE])
        made = _reader(world, maxRecordHeaders="4", maxRecordHeaderBytes="199")
        assert _offsets(made, OffsetRange(partition, 0, 1)) == [0]

    def test_closing_twice_is_allowed(self, world: World, partition: TopicPartition) -> None:
        """A second call of close has no effect."""
        world.produce(partition, numbered(0, 1))
        made = _reader(world)
        assert _offsets(made, OffsetRange(partition, 0, 1)) == [0]
        made.close()
        made.close()


def _read_until_error(
    made: RecordReader, offset_range: OffsetRange, projection: Projection = VALUES
) -> tuple[list[int], PysparkKafkaError]:
    """Return the offsets that a reader yields before its error, and the error."""
    read: list[int] = []
    return read, _consume(made.read(offset_range, projection), read)


def _read_recreated(
    world: World, made: RecordReader, partition: TopicPartition, size: int
) -> tuple[list[int], PysparkKafkaError]:
    """Read a range whose topic becomes another one of a size after the first batch.

    Return the offsets of the old topic that were yielded, and the error that followed.
    """
    world.produce(partition, [Record(_OLD)] * _PREFETCHED)
    # A client may have fetched all old records: the range continues after them.
    batches = made.read(OffsetRange(partition, 0, 2 * _PREFETCHED), VALUES)
    first = next(batches)
    world.delete_topic(partition.topic)
    world.create(partition.topic)
    world.produce(partition, numbered(0, size))
    read: list[Any] = first["offset"].to_pylist()
    error = _consume(_of_old_topic(batches), read)
    return read, error


def _of_old_topic(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        assert set(batch["value"].to_pylist()) == {_OLD}, "records of two topics are mixed"
        yield batch


def _consume(batches: Iterator[pa.RecordBatch], read: list[Any]) -> PysparkKafkaError:
    """Append the offsets of batches to ``read``, and return the error that follows."""
    with pytest.raises(PysparkKafkaError) as caught:
        read.extend(offset for batch in batches for offset in batch["offset"].to_pylist())
    return caught.value


def _lost(error: PysparkKafkaError) -> tuple[TopicPartition, int, int]:
    """Return the offsets that an error reports as deleted."""
    if isinstance(error, MissingOffsetsError):
        return error.partition, error.start, error.end
    assert isinstance(error, OffsetOutOfRangeError)
    return error.partition, error.offset, error.earliest
