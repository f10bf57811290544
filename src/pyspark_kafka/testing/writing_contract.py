"""The common part of the contract suites of ``RecordWriter`` and ``StreamClient``."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pytest

from ..domain.errors import UnknownTopicError
from ..domain.topic_partition import TopicPartition
from ..domain.writing.errors import (
    InvalidRecordError,
    NullTopicError,
    RecordTooLargeError,
    UnknownPartitionError,
)
from ..ports.record_schema import TYPES
from .world import Capability, World, WorldContract

_HASHES: Final[Mapping[bytes, int]] = {
    b"": 275646681,
    b"k": -1567496736,
    b"21": -973932308,
    b"abc": 479470107,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    "käfer".encode(): -1557269229,
    b"\x80": 857690492,
    b"\xff\x80\x00": -616959190,
    b"\x80\x81\x82\x83": 1420557722,
}
"""The results of ``Utils.murmur2`` of Kafka's Java client."""

KEYS: Final = tuple(_HASHES)
"""Keys of several lengths, with bytes that Java takes for negative ones."""

MIXED_HEADERS: Final[list[dict[str, Any]]] = [
    {"key": "b", "value": b"1"},
    {"key": "a", "value": None},
    {"key": "b", "value": b""},
    {"key": "b", "value": b"1"},
]
"""Headers that do not come back if they are sorted, or kept by their names."""


def batch_of(**columns: list[Any]) -> pa.RecordBatch:
    """Return a batch of the columns of ``RecordWriter.write``, by their names."""
    schema = pa.schema([(name, TYPES[name]) for name in columns])
    return pa.RecordBatch.from_pydict(columns, schema=schema)


def keys_of_partition(number: int, partitions: int) -> list[bytes]:
    """Return the ``KEYS`` that Java's client sends to a partition of so many."""
    # Utils.toPositive clears the sign.
    return [key for key in KEYS if (_HASHES[key] & 0x7FFFFFFF) % partitions == number]


Write: TypeAlias = Callable[[str | None, pa.RecordBatch], None]
"""Takes the sink's topic or ``None`` and a batch, and returns when all is acknowledged."""


def rows_of(world: World, topic: str, number: int, **options: str) -> list[dict[str, Any]]:
    """Return all records of a partition."""
    return world.records(TopicPartition(topic, number), **options)


def values_of(world: World, topic: str, number: int) -> list[bytes]:
    """Return the values of all records of a partition."""
    return [row["value"] for row in rows_of(world, topic, number)]


class WritingContract(WorldContract):
    """The tests that records pass however they are written."""

    @pytest.fixture
    def target(self, world: World) -> str:
        """Return the sink's topic, of two partitions."""
        return world.topic(2)

    def test_every_column_is_written(self, world: World, write: Write, target: str) -> None:
        """Columns are written unchanged; without a timestamp, a record gets the current time."""
        when = dt.datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=dt.UTC)
        later = when + dt.timedelta(milliseconds=1)
        batch = batch_of(
            key=[b"k", None, b""],
            value=[None, b"", b"v"],
            topic=[target, target, target],
            partition=[1, 1, 1],
            headers=[MIXED_HEADERS, None, MIXED_HEADERS[1:]],
            timestamp=[when, later, None],
        )
        write(None, batch)
        rows = rows_of(world, target, 1)
        assert [(row["key"], row["value"], row["headers"]) for row in rows] == [
            (b"k", None, MIXED_HEADERS),
            (None, b"", None),
            (b"", b"v", MIXED_HEADERS[1:]),
        ]
        *given, current = [row["timestamp"].timestamp() for row in rows]
        assert given == [when.timestamp(), later.timestamp()]
        assert abs(dt.datetime.now(dt.UTC).timestamp() - current) < 60

    def test_keys_decide_as_in_java(self, world: World, write: Write) -> None:
        """A key's hash chooses the partition, where the row does not name one."""
        target = world.topic(5)
        keys = list(KEYS)
        write(target, batch_of(key=keys, value=keys))
        write(target, batch_of(key=keys, value=keys, partition=[None] * len(keys)))
        write(target, batch_of(key=[b"k"] * 2, value=[b"null", b"named"], partition=[None, 4]))
        further = {2: [b"null"], 4: [b"named"]}
        for number in range(5):
            expected = 2 * keys_of_partition(number, 5) + further.get(number, [])
            assert values_of(world, target, number) == expected

    def test_each_row_may_name_its_topic_and_partition(
        self, world: World, write: Write, target: str
    ) -> None:
        """Rows of one batch go to the topics and partitions that they name, in their order."""
        other = world.topic()
        batch = batch_of(
            value=[b"1", b"2", b"3", b"4"],
            topic=[target, other, target, target],
            partition=[0, 0, 1, 0],
        )
        write(None, batch)
        assert values_of(world, target, 0) == [b"1", b"4"]
        assert values_of(world, target, 1) == [b"3"]
        assert values_of(world, other, 0) == [b"2"]

    def test_the_sinks_topic_overrides_the_column(
        self, world: World, write: Write, target: str
    ) -> None:
        """With the option `topic`, all records go there, and the column is ignored."""
        other = world.topic()
        write(target, batch_of(value=[b"1", b"2"], topic=[other, None], partition=[0, 0]))
        assert values_of(world, target, 0) == [b"1", b"2"]
        assert values_of(world, other, 0) == []

    def test_a_slice_is_written(self, world: World, write: Write, target: str) -> None:
        """Only the rows of a batch's slice are written."""
        whole = batch_of(
            key=[b"a", b"b", None, b"d"],
            value=[b"0", None, b"2", b"3"],
            partition=[1, 0, 0, 1],
            headers=[None, [{"key": "h", "value": b"1"}], [{"key": "i", "value": b"2"}], None],
        )
        write(target, whole.slice(1, 2))
        assert values_of(world, target, 1) == []
        rows = rows_of(world, target, 0)
        assert [(row["key"], row["value"], row["headers"]) for row in rows] == [
            (b"b", None, [{"key": "h", "value": b"1"}]),
            (None, b"2", [{"key": "i", "value": b"2"}]),
        ]

    @pytest.mark.parametrize("has_column", [True, False])
    def test_a_record_needs_a_topic(
        self, world: World, write: Write, target: str, *, has_column: bool
    ) -> None:
        """Without the option `topic`, a row without a topic is an error, and none is sent."""
        columns = {"topic": [target, None]} if has_column else {}
        with pytest.raises(NullTopicError):
            write(None, batch_of(value=[b"v", b"w"], partition=[0, 0], **columns))
        assert values_of(world, target, 0) == []

    @pytest.mark.parametrize("name", ["", "..", "a b", "é", "x" * 250, "{}\0tail"])
    def test_no_topic_can_have_some_names(
        self, world: World, write: Write, target: str, name: str
    ) -> None:
        """A row with an invalid name is an error at once, and no row of its batch is sent."""
        batch = batch_of(value=[b"v", b"w"], partition=[0, 0], topic=[target, name.format(target)])
        with pytest.raises(InvalidRecordError, match="Correct the column 'topic'"):
            write(None, batch)
        assert values_of(world, target, 0) == []

    def test_the_topic_has_to_exist(self, world: World, write: Write) -> None:
        """The error names a topic that does not exist, at the latest when the write is awaited."""
        unknown = world.fresh_name()
        with pytest.raises(UnknownTopicError, match=f"'{unknown}'"):
            write(unknown, batch_of(value=[b"v"]))

    def test_the_partition_has_to_exist(self, world: World, write: Write, target: str) -> None:
        """The error is of the first record whose partition does not exist."""
        batch = batch_of(key=[b"k"] * 3, value=[b"v", b"secret", b"w"], partition=[0, 2, 7])
        with pytest.raises(UnknownPartitionError) as caught:
            write(target, batch)
        assert (caught.value.topic, caught.value.partition, caught.value.size) == (target, 2, 7)
        assert "secret" not in str(caught.value)
        assert b"w" not in values_of(world, target, 0) + values_of(world, target, 1)

    def test_a_header_needs_a_key(self, write: Write, target: str) -> None:
        """A row that cannot become a record is an error."""
        headers = [None, [{"key": "a", "value": b"1"}, {"key": None, "value": b"2"}]]
        with pytest.raises(InvalidRecordError):
            write(target, batch_of(value=[b"v", b"w"], headers=headers))

    def test_a_record_that_is_too_large_for_its_topic_is_an_error(
        self, world: World, write: Write
    ) -> None:
        """The error names its partition and not its content."""
        world.require(Capability.LIMITS)
        target = world.topic(2, max__message__bytes="2000")
        batch = batch_of(key=[b"key"], value=[b"secret" * 1_000], partition=[1])
        with pytest.raises(RecordTooLargeError) as caught:
            write(target, batch)
        error = caught.value
        assert (error.topic, error.partition, error.size) == (target, 1, 6_003)
        assert "secret" not in str(error)
