"""The contract suite of ``RecordWriter``."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

from ..domain.errors import NullTopicError, UnknownTopicError, UnsupportedFeatureError
from ..domain.topic_partition import TopicPartition
from ..domain.transaction import Transaction
from ..domain.write_result import DeliveryStats
from ..ports.record_schema import TYPES
from ..ports.record_writer import RecordWriter
from .world import COMMITTED, Capability, World, WorldContract


def _batch(**columns: list[Any]) -> pa.RecordBatch:
    schema = pa.schema([(name, TYPES[name]) for name in columns])
    return pa.RecordBatch.from_pydict(columns, schema=schema)


def _send(writer: RecordWriter, batch: pa.RecordBatch, topic: str | None = None) -> int:
    writer.write(batch, topic)
    return writer.flush().records


def _written(world: World, topic: str, number: int, **options: str) -> list[dict[str, Any]]:
    """Return all records of a partition."""
    return world.records(TopicPartition(topic, number), **options)


class RecordWriterContract(WorldContract):
    """The contract of ``RecordWriter``; a subclass overrides the fixture ``world``."""

    @pytest.fixture
    def writer(self, world: World) -> RecordWriter:
        """Return the writer under test."""
        made: RecordWriter = world.sink_container(kafka__max__block__ms="1000").record_writer()
        return made

    @pytest.fixture
    def topic(self, world: World) -> str:
        """Return a topic of two partitions."""
        return world.topic(2)

    def test_every_column_is_written(self, world: World, writer: RecordWriter, topic: str) -> None:
        """Key, value, partition, headers and timestamp are written unchanged."""
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

    def test_strings_are_written_as_utf8(
        self, world: World, writer: RecordWriter, topic: str
    ) -> None:
        """Columns of strings are accepted like those of bytes."""
        batch = pa.RecordBatch.from_pydict({"key": ["ä", None], "value": ["ß", "x"]})
        assert _send(writer, batch, topic) == 2
        rows = [row for number in (0, 1) for row in _written(world, topic, number)]
        assert {(row["key"], row["value"]) for row in rows} == {
            ("ä".encode(), "ß".encode()),
            (None, b"x"),
        }

    def test_the_topic_argument_overrides_the_column(
        self, world: World, writer: RecordWriter, topic: str
    ) -> None:
        """Records go to the topic of the call, whatever the column contains."""
        other = world.topic(2)
        _send(writer, _batch(value=[b"v"], topic=[topic], partition=[0]), other)
        assert _written(world, topic, 0) == []
        assert [row["value"] for row in _written(world, other, 0)] == [b"v"]

    def test_each_row_may_name_its_topic(
        self, world: World, writer: RecordWriter, topic: str
    ) -> None:
        """Rows of one batch go to the topics that they name, in their order."""
        other = world.topic()
        batch = _batch(value=[b"1", b"2", b"3"], topic=[topic, other, topic], partition=[0, 0, 0])
        assert _send(writer, batch) == 3
        assert [row["value"] for row in _written(world, topic, 0)] == [b"1", b"3"]
        assert [row["value"] for row in _written(world, other, 0)] == [b"2"]

    def test_each_row_may_name_its_partition(
        self, world: World, writer: RecordWriter, topic: str
    ) -> None:
        """Rows of one batch go to the partitions that they name, in their order."""
        batch = _batch(value=[b"1", b"2", b"3"], partition=[1, 0, 1])
        assert _send(writer, batch, topic) == 3
        assert [row["value"] for row in _written(world, topic, 0)] == [b"2"]
        assert [row["value"] for row in _written(world, topic, 1)] == [b"1", b"3"]

    def test_records_of_one_key_go_to_one_partition(
        self, world: World, writer: RecordWriter, topic: str
    ) -> None:
        """Records of one key go to one partition, in order."""
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
        """Each flush counts the records acknowledged since the previous one."""
        assert _send(writer, _batch(value=[b"v", b"w"]), topic) == 2
        assert writer.flush() == DeliveryStats()

    def test_delivered_bytes_are_those_of_keys_values_and_headers(
        self, writer: RecordWriter, topic: str
    ) -> None:
        """Names of headers count, and nulls do not."""
        headers = [[{"key": "ab", "value": b"1"}, {"key": "c", "value": None}], None]
        writer.write(_batch(key=[b"key", None], value=[b"value", b""], headers=headers), topic)
        assert writer.flush() == DeliveryStats(2, 3 + 5 + 2 + 1 + 1)

    def test_records_without_a_key_are_written(
        self, world: World, writer: RecordWriter, topic: str
    ) -> None:
        """Records without a key go to one or several partitions, and none is lost."""
        assert _send(writer, _batch(value=[b"%d" % number for number in range(50)]), topic) == 50
        rows = [row for number in (0, 1) for row in _written(world, topic, number)]
        assert sorted(int(row["value"]) for row in rows) == list(range(50))

    def test_a_record_needs_a_topic(self, writer: RecordWriter) -> None:
        """A record without a topic is an error."""
        with pytest.raises(NullTopicError):
            _send(writer, _batch(value=[b"v"]))

    def test_a_null_topic_is_refused_before_anything_is_written(
        self, world: World, writer: RecordWriter, topic: str
    ) -> None:
        """If one record of a batch has no topic, none is sent."""
        with pytest.raises(NullTopicError):
            _send(writer, _batch(value=[b"v", b"w"], topic=[topic, None], partition=[0, 0]))
        assert _written(world, topic, 0) == []

    def test_the_topic_has_to_exist(self, world: World, writer: RecordWriter) -> None:
        """The error names a topic that does not exist."""
        unknown = world.fresh_name()
        with pytest.raises(UnknownTopicError, match=f"'{unknown}'"):
            _send(writer, _batch(value=[b"v"]), unknown)

    def test_a_transaction_ends_with_the_flush(
        self, world: World, writer: RecordWriter, topic: str
    ) -> None:
        """Records written after a flush do not belong to the transaction."""
        world.require(Capability.TRANSACTIONAL_WRITES)
        transactions = world.sink_container().transactions()
        opened = transactions.begin(world.fresh_name())
        writer.join_transaction(opened)
        assert _send(writer, _batch(value=[b"in"], partition=[0]), topic) == 1
        assert _send(writer, _batch(value=[b"out"], partition=[0]), topic) == 1
        transactions.abort(opened)
        assert [row["value"] for row in _written(world, topic, 0, **COMMITTED)] == [b"out"]

    def test_undeclared_transactions_are_refused(self, world: World, writer: RecordWriter) -> None:
        """A client that does not declare transactional writes raises."""
        if Capability.TRANSACTIONAL_WRITES in world.capabilities:
            return
        with pytest.raises(UnsupportedFeatureError):
            writer.join_transaction(Transaction("any", 1, 0))

    def test_closing_twice_is_allowed(self, writer: RecordWriter) -> None:
        """A second call of close has no effect."""
        writer.close()
        writer.close()
