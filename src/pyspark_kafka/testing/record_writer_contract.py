"""What every ``RecordWriter`` owes."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from ..domain.errors import KafkaRequestError, UnknownTopicError
from ..domain.offset_range import OffsetRange
from ..domain.projection import ALL_COLUMNS
from ..domain.topic_partition import TopicPartition
from ..ports.record_schema import TYPES
from .world_contract import WorldContract

if TYPE_CHECKING:
    from ..ports.record_writer import RecordWriter
    from .world import World


def _batch(**columns: list[Any]) -> pa.RecordBatch:
    schema = pa.schema([(name, TYPES[name]) for name in columns])
    return pa.RecordBatch.from_pydict(columns, schema=schema)


def _send(writer: RecordWriter, batch: pa.RecordBatch, topic: str | None = None) -> int:
    writer.write(batch, topic)
    return writer.flush()


def _written(world: World, topic: str, number: int) -> list[dict[str, Any]]:
    """Read all records of a partition, with the world's own client."""
    partition = TopicPartition(topic, number)
    container = world.container()
    latest = container.offset_fetcher().latest([partition])[partition]
    batches = container.record_reader().read(OffsetRange(partition, 0, latest), ALL_COLUMNS)
    return [row for batch in batches for row in batch.to_pylist()]


class RecordWriterContract(WorldContract):
    """Holds a ``RecordWriter`` to its contract.

    A subclass gives the writer in the fixture ``writer``, and in the fixture ``world`` the cluster
    that it writes to, with a client that reads.
    """

    @pytest.fixture
    def writer(self, world: World) -> RecordWriter:
        """Give the writer that is held to the contract."""
        raise NotImplementedError(
            f"{type(self).__name__} is to override the fixture 'writer', for {world.client}"
        )

    @pytest.fixture
    def topic(self, world: World) -> str:
        """Give a topic of two partitions."""
        return world.topic(2)

    def test_every_column_is_written(self, world: World, writer: RecordWriter, topic: str) -> None:
        """Key, value, partition, headers and timestamp arrive as they were given."""
        when = dt.datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=dt.UTC)
        headers = [{"key": "a", "value": b"1"}, {"key": "a", "value": None}]
        batch = _batch(
            key=[b"k"],
            value=[b"v"],
            topic=[topic],
            partition=[1],
            headers=[headers],
            timestamp=[when],
        )
        assert _send(writer, batch) == 1
        [row] = _written(world, topic, 1)
        assert (row["key"], row["value"], row["headers"]) == (b"k", b"v", headers)
        assert row["timestamp"].timestamp() == when.timestamp()

    def test_nulls_are_written(self, world: World, writer: RecordWriter, topic: str) -> None:
        """A null key or value stays null, and an empty one stays empty."""
        batch = _batch(key=[None, b""], value=[b"", None], partition=[0, 0])
        assert _send(writer, batch, topic) == 2
        rows = [(row["key"], row["value"]) for row in _written(world, topic, 0)]
        assert rows == [(None, b""), (b"", None)]

    def test_a_given_topic_stands_above_the_column(
        self, world: World, writer: RecordWriter, topic: str
    ) -> None:
        """The topic of the call is taken, whatever the column says."""
        other = world.topic(2)
        _send(writer, _batch(value=[b"v"], topic=[topic], partition=[0]), other)
        assert _written(world, topic, 0) == []
        assert [row["value"] for row in _written(world, other, 0)] == [b"v"]

    def test_a_record_without_a_partition_goes_where_its_key_goes(
        self, world: World, writer: RecordWriter, topic: str
    ) -> None:
        """Records of one key stay together and in order."""
        keys = [b"%d" % (number % 7) for number in range(70)]
        values = [b"%d" % number for number in range(70)]
        _send(writer, _batch(key=keys, value=values), topic)
        partitions = [_written(world, topic, number) for number in (0, 1)]
        assert sum(map(len, partitions)) == 70
        for key in set(keys):
            [home] = [part for part in partitions if any(row["key"] == key for row in part)]
            ours = [int(row["value"]) for row in home if row["key"] == key]
            assert ours == sorted(ours)

    def test_flush_counts_since_the_last_one(self, writer: RecordWriter, topic: str) -> None:
        """Each flush counts what was acknowledged since the one before."""
        assert _send(writer, _batch(value=[b"v", b"w"]), topic) == 2
        assert writer.flush() == 0

    def test_a_record_needs_a_topic(self, writer: RecordWriter) -> None:
        """A record that names no topic is an error."""
        with pytest.raises(KafkaRequestError, match="topic"):
            _send(writer, _batch(value=[b"v"]))

    def test_the_topic_has_to_exist(self, world: World, writer: RecordWriter) -> None:
        """A topic that does not exist is named."""
        unknown = world.fresh_name()
        with pytest.raises(UnknownTopicError, match=f"'{unknown}'"):
            _send(writer, _batch(value=[b"v"]), unknown)

    def test_closing_twice_does_no_harm(self, writer: RecordWriter) -> None:
        """The second call of close does nothing."""
        writer.close()
        writer.close()
