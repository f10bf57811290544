"""The contract suite of ``RecordReader``."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pytest

from ..domain.errors import MalformedTimestampError, OffsetOutOfRangeError
from ..domain.offset_range import OffsetRange
from ..domain.projection import ALL_COLUMNS, COLUMNS, Projection
from ..domain.topic_partition import TopicPartition
from ..ports.record_reader import RecordReader
from ..ports.record_schema import record_schema
from .world import COMMITTED, Capability, Record, World, WorldContract, numbered

VALUES: Final = Projection(("offset", "value"))


def _reader(world: World, **options: str) -> RecordReader:
    made: RecordReader = world.container(**options).record_reader()
    return made


def _rows(
    made: RecordReader, offset_range: OffsetRange, projection: Projection = ALL_COLUMNS
) -> list[dict[str, Any]]:
    batches = list(made.read(offset_range, projection))
    assert all(batch.num_rows > 0 for batch in batches)
    assert all(batch.schema == record_schema(projection) for batch in batches)
    return pa.Table.from_batches(batches, record_schema(projection)).to_pylist()


def _offsets(made: RecordReader, offset_range: OffsetRange) -> list[int]:
    return [row["offset"] for row in _rows(made, offset_range, VALUES)]


class RecordReaderContract(WorldContract):
    """The contract of ``RecordReader``; a subclass overrides the fixture ``world``."""

    @pytest.fixture
    def partition(self, world: World) -> TopicPartition:
        """Return the second of two partitions, so that mixing them up fails."""
        return TopicPartition(world.topic(2), 1)

    def test_records_come_in_order_and_once(self, world: World, partition: TopicPartition) -> None:
        """A range over many fetches and batches is read completely, in order, each record once."""
        world.produce(partition, numbered(0, 25_000))
        read = _rows(_reader(world), OffsetRange(partition, 0, 25_000), VALUES)
        assert read == [{"offset": n, "value": b"v%d" % n} for n in range(25_000)]

    def test_every_column_is_read(self, world: World, partition: TopicPartition) -> None:
        """Each column has the produced value, in the type of the schema."""
        world.require(Capability.HEADERS, Capability.TIMESTAMPS)
        record = Record(b"value", b"key", (("a", b"1"), ("b", b"2")), 1_700_000_000_123)
        world.produce(partition, [record])
        [row] = _rows(_reader(world), OffsetRange(partition, 0, 1))
        assert int(row.pop("timestamp").timestamp() * 1_000) == record.timestamp
        assert row == {
            "key": b"key",
            "value": b"value",
            "topic": partition.topic,
            "partition": partition.partition,
            "offset": 0,
            "timestampType": 0,
            "headers": [{"key": "a", "value": b"1"}, {"key": "b", "value": b"2"}],
        }

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
        """A range that is not read to its end does not affect the next one."""
        world.produce(partition, numbered(0, 25_000))
        made = _reader(world)
        for drop in (0, 1, 2):
            iterator = made.read(OffsetRange(partition, drop, 25_000), VALUES)
            assert next(iterator)["offset"][0].as_py() == drop
            del iterator
        assert _offsets(made, OffsetRange(partition, 10, 20)) == list(range(10, 20))

    def test_batches_belong_to_the_caller(self, world: World, partition: TopicPartition) -> None:
        """A batch does not change when the next one, or another range, is read."""
        world.produce(partition, numbered(0, 25_000))
        made = _reader(world)
        kept = [
            (batch, batch.to_pylist())
            for start in (0, 7)
            for batch in made.read(OffsetRange(partition, start, 25_000), VALUES)
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

    def test_aborted_records_are_skipped_under_read_committed(
        self, world: World, partition: TopicPartition
    ) -> None:
        """Under read_committed neither aborted records nor control records are returned."""
        world.require(Capability.TRANSACTIONS)
        _two_transactions(world, partition)
        made = _reader(world, **COMMITTED)
        assert _offsets(made, OffsetRange(partition, 0, 12)) == [0, 1, 6, 7, 8, 10, 11]

    def test_aborted_records_are_read_under_read_uncommitted(
        self, world: World, partition: TopicPartition
    ) -> None:
        """Under read_uncommitted only control records are skipped."""
        world.require(Capability.TRANSACTIONS)
        _two_transactions(world, partition)
        assert _offsets(_reader(world), OffsetRange(partition, 0, 12)) == [
            *(0, 1, 2, 3, 4, 6, 7, 8, 10, 11)
        ]

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

    def test_a_deleted_start_is_out_of_range(self, world: World, partition: TopicPartition) -> None:
        """A range that begins before the log is an error with the offsets that the broker has."""
        world.require(Capability.DELETE_RECORDS)
        world.produce(partition, numbered(0, 10))
        world.delete_records(partition, 4)
        with pytest.raises(OffsetOutOfRangeError) as caught:
            _rows(_reader(world), OffsetRange(partition, 2, 10))
        assert (caught.value.partition, caught.value.offset) == (partition, 2)
        assert (caught.value.earliest, caught.value.latest) == (4, 10)

    def test_a_start_after_the_end_is_out_of_range(
        self, world: World, partition: TopicPartition
    ) -> None:
        """A range that begins after the log's end, as after a topic is recreated, is an error."""
        world.produce(partition, numbered(0, 10))
        with pytest.raises(OffsetOutOfRangeError) as caught:
            _rows(_reader(world), OffsetRange(partition, 15, 20))
        assert (caught.value.offset, caught.value.latest) == (15, 10)

    def test_a_reader_works_after_an_error(self, world: World, partition: TopicPartition) -> None:
        """After an error the same reader reads the next range."""
        world.produce(partition, numbered(0, 10))
        made = _reader(world)
        with pytest.raises(OffsetOutOfRangeError):
            _rows(made, OffsetRange(partition, 15, 20))
        assert _offsets(made, OffsetRange(partition, 4, 10)) == list(range(4, 10))

    def test_a_timestamp_overflow_names_its_record(self, world: World) -> None:
        """A time in nanoseconds overflows Spark's microseconds; the error names the record."""
        world.require(Capability.TIMESTAMPS)
        partition = TopicPartition(
            world.topic(message__timestamp__after__max__ms=str(2**63 - 1)), 0
        )
        world.produce(partition, [Record(b"v"), Record(b"w", timestamp=1_700_000_000_000_000_000)])
        with pytest.raises(MalformedTimestampError, match="partition 0 offset 1"):
            _rows(_reader(world), OffsetRange(partition, 0, 2))
        assert _offsets(_reader(world), OffsetRange(partition, 0, 2)) == [0, 1]

    def test_closing_twice_is_allowed(self, world: World, partition: TopicPartition) -> None:
        """A second call of close has no effect."""
        world.produce(partition, numbered(0, 1))
        made = _reader(world)
        assert _offsets(made, OffsetRange(partition, 0, 1)) == [0]
        made.close()
        made.close()


def _two_transactions(world: World, partition: TopicPartition) -> None:
    """Write 0-1 outside of transactions, 2-4 aborted (marker 5), 6-8 committed (9), and 10-11."""
    world.produce(partition, numbered(0, 2))
    with world.transaction(commit=False) as write:
        write(partition, numbered(2, 5))
    with world.transaction(commit=True) as write:
        write(partition, numbered(6, 9))
    world.produce(partition, numbered(10, 12))
