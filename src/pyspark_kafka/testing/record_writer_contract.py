"""The contract suite of ``RecordWriter``."""

from __future__ import annotations

import datetime as dt
import itertools
from typing import Any

import pyarrow as pa
import pytest

from ..domain.errors import UnsupportedFeatureError
from ..domain.writing.errors import InvalidTimestampError, RejectedRecordError
from ..domain.writing.transaction import DeliveryStats, Transaction
from ..ports.writing import RecordWriter
from .world import COMMITTED, Capability, World, await_until
from .writing_contract import Write, WritingContract, batch_of, rows_of, values_of


def _with(batch: pa.RecordBatch, **columns: list[Any]) -> pa.RecordBatch:
    """Return a batch with further columns."""
    further = batch_of(**columns)
    names = [*batch.schema.names, *further.schema.names]
    return pa.RecordBatch.from_arrays([*batch.columns, *further.columns], names)


def _send(writer: RecordWriter, batch: pa.RecordBatch, topic: str | None = None) -> int:
    writer.write(batch, topic)
    return writer.flush().records


class RecordWriterContract(WritingContract):
    """The contract of ``RecordWriter``; a subclass overrides the fixture ``world``."""

    @pytest.fixture
    def writer(self, world: World) -> RecordWriter:
        """Return the writer under test."""
        made: RecordWriter = world.sink_container(kafka__max__block__ms="1000").record_writer()
        return made

    @pytest.fixture
    def write(self, writer: RecordWriter) -> Write:
        """Return a function that writes a batch, and waits until it is delivered."""

        def send(topic: str | None, batch: pa.RecordBatch) -> None:
            assert _send(writer, batch, topic) == batch.num_rows

        return send

    def test_records_without_a_timestamp_get_the_current_time(
        self, world: World, writer: RecordWriter, target: str
    ) -> None:
        """A null in the column is as good as no column; the clocks may differ by a minute."""
        world.require(Capability.TIMESTAMPS)
        old = dt.datetime(2020, 1, 2, tzinfo=dt.UTC)
        batches = batch_of(value=[b"v"]), batch_of(value=[b"v"] * 2, timestamp=[old, None])
        for batch in batches:
            writer.write(_with(batch, partition=[0] * batch.num_rows), target)
        writer.flush()
        first, second, third = (row["timestamp"].timestamp() for row in rows_of(world, target, 0))
        assert second == old.timestamp()
        now = dt.datetime.now(dt.UTC).timestamp()
        assert abs(now - first) < 60
        assert abs(now - third) < 60

    def test_strings_are_written_as_utf8(
        self, world: World, writer: RecordWriter, target: str
    ) -> None:
        """Columns of strings are accepted like columns of bytes."""
        batch = pa.RecordBatch.from_pydict({"key": ["ä", None], "value": ["ß", "x"]})
        assert _send(writer, batch, target) == 2
        rows = [row for number in (0, 1) for row in rows_of(world, target, number)]
        assert {(row["key"], row["value"]) for row in rows} == {
            ("ä".encode(), "ß".encode()),
            (None, b"x"),
        }

    def test_rows_of_many_topics_may_be_interleaved(
        self, world: World, writer: RecordWriter
    ) -> None:
        """Every topic gets its own rows only, those of a partition in their order."""
        topics = [world.topic(1 + number % 3) for number in range(6)]
        rows = [(number, topics[number * number % 11 % 6]) for number in range(300)]
        for some in (rows[:7], rows[7:8], rows[8:]):
            keys = [b"%d" % (number % 5) if number % 4 else None for number, _ in some]
            values = [b"%d" % number for number, _ in some]
            writer.write(batch_of(key=keys, value=values, topic=[topic for _, topic in some]))
        assert writer.flush() == DeliveryStats(300, 225 + 10 + 90 * 2 + 200 * 3)
        for place, topic in enumerate(topics):
            found = [
                [int(value) for value in values_of(world, topic, number)]
                for number in range(1 + place % 3)
            ]
            assert all(numbers == sorted(numbers) for numbers in found)
            expected = [number for number, named in rows if named == topic]
            assert sorted(itertools.chain(*found)) == expected

    def test_rows_may_name_partitions_that_were_added(
        self, world: World, writer: RecordWriter, target: str
    ) -> None:
        """A topic may get partitions after records were written to it."""
        world.require(Capability.ADD_PARTITIONS)
        assert _send(writer, batch_of(value=[b"1"], partition=[0]), target) == 1
        world.add_partitions(target, 4)
        assert _send(writer, batch_of(value=[b"2", b"3"], partition=[3, 0]), target) == 2
        assert values_of(world, target, 0) == [b"1", b"3"]
        assert values_of(world, target, 3) == [b"2"]

    def test_records_of_one_key_go_to_one_partition(
        self, world: World, writer: RecordWriter, target: str
    ) -> None:
        """Records of one key go to one partition, in order."""
        keys = [b"%d" % (number % 7) for number in range(70)]
        values = [b"%d" % number for number in range(70)]
        _send(writer, batch_of(key=keys, value=values), target)
        partitions = [rows_of(world, target, number) for number in (0, 1)]
        assert sum(map(len, partitions)) == 70
        for key in set(keys):
            [home] = [part for part in partitions if any(row["key"] == key for row in part)]
            ours = [int(row["value"]) for row in home if row["key"] == key]
            assert ours == sorted(ours)

    def test_flush_counts_since_the_last_one(self, writer: RecordWriter, target: str) -> None:
        """Each flush counts the records acknowledged since the previous one."""
        writer.write(batch_of(value=[b"v", b"w"]), target)
        writer.write(batch_of(value=[]), target)
        writer.write(batch_of(value=[b"xyz"]), target)
        assert writer.flush() == DeliveryStats(3, 5)
        assert writer.flush() == DeliveryStats()
        writer.write(batch_of(value=[b"z"]), target)
        assert writer.flush() == DeliveryStats(1, 1)

    def test_a_flush_delivers_every_write_before_it(
        self, world: World, writer: RecordWriter, target: str
    ) -> None:
        """Batches of other topics and columns are all written, in order within a partition."""
        other = world.topic()
        writer.write(batch_of(value=[b"1", b"2"], partition=[0, 1]), target)
        writer.write(batch_of(value=[b"3"]), other)
        writer.write(batch_of(key=[b"k", b"l"], value=[b"4", b"5"], partition=[1, 0]), target)
        writer.write(batch_of(value=[b"6", b"7"], topic=[other, target], partition=[0, 0]))
        writer.write(batch_of(value=[b"8"], partition=[0]), target)
        assert writer.flush().records == 8
        assert values_of(world, target, 0) == [b"1", b"5", b"7", b"8"]
        assert values_of(world, target, 1) == [b"2", b"4"]
        assert values_of(world, other, 0) == [b"3", b"6"]

    def test_delivered_bytes_are_those_of_keys_values_and_headers(
        self, writer: RecordWriter, target: str
    ) -> None:
        """Names of headers count, and nulls do not."""
        headers = [[{"key": "ab", "value": b"1"}, {"key": "c", "value": None}], None]
        writer.write(batch_of(key=[b"key", None], value=[b"value", b""], headers=headers), target)
        assert writer.flush() == DeliveryStats(2, 3 + 5 + 2 + 1 + 1)

    def test_records_without_a_key_are_written(
        self, world: World, writer: RecordWriter, target: str
    ) -> None:
        """Records without a key go to one or several partitions, and none is lost."""
        values = [b"%d" % number for number in range(20_000)]
        assert _send(writer, batch_of(value=values), target) == 20_000
        assert sorted(values_of(world, target, 0) + values_of(world, target, 1)) == sorted(values)

    def test_records_without_a_key_are_spread(
        self, world: World, writer: RecordWriter, target: str
    ) -> None:
        """Their partition changes after a time, as with Java's sticky partitioner."""
        values = [b"%d" % number * 5_000 for number in range(10)]
        for _ in range(5):
            _send(writer, batch_of(value=values), target)
        assert set(values_of(world, target, 0)) == set(values_of(world, target, 1)) == set(values)

    def test_a_record_that_a_broker_refuses_is_an_error(self, world: World, write: Write) -> None:
        """Compacted topics take no record without a key."""
        world.require(Capability.LIMITS)
        topic = world.topic(2, cleanup__policy="compact")
        with pytest.raises(RejectedRecordError) as caught:
            write(topic, batch_of(value=[b"secret"], partition=[1]))
        error = caught.value
        assert (error.topic, error.partition, error.size) == (topic, 1, 6)
        assert "secret" not in str(error)

    def test_a_timestamp_that_a_broker_refuses_is_an_error(
        self, world: World, write: Write
    ) -> None:
        """A topic limits how far timestamps are off."""
        world.require(Capability.TIMESTAMP_LIMITS)
        topic = world.topic(1, message__timestamp__before__max__ms="3600000")
        when = dt.datetime(2020, 1, 2, tzinfo=dt.UTC)
        with pytest.raises(InvalidTimestampError) as caught:
            write(topic, batch_of(value=[b"secret"], timestamp=[when]))
        error = caught.value
        assert (error.topic, error.partition, error.size) == (topic, 0, 6)
        assert "secret" not in str(error)

    def test_a_transaction_ends_with_the_flush(
        self, world: World, writer: RecordWriter, target: str
    ) -> None:
        """Records written after a flush do not belong to the transaction."""
        world.require(Capability.TRANSACTIONAL_WRITES)
        transactions = world.sink_container().transactions()
        opened = transactions.begin(world.fresh_name())
        writer.join_transaction(opened)
        writer.write(batch_of(value=[b"in"], partition=[0]), target)
        assert _send(writer, batch_of(value=[b"in", b"in"], partition=[0, 1]), target) == 3
        assert _send(writer, batch_of(value=[b"out"], partition=[0]), target) == 1
        transactions.abort(opened)
        # Brokers respond before a transaction has ended.
        await_until(lambda: len(rows_of(world, target, 0, **COMMITTED)) == 1)
        assert rows_of(world, target, 0, **COMMITTED)[0]["value"] == b"out"
        assert rows_of(world, target, 1, **COMMITTED) == []

    def test_a_transaction_stays_open_after_close(
        self, world: World, writer: RecordWriter, target: str
    ) -> None:
        """The writer's close does not end a transaction that another process is to end."""
        world.require(Capability.TRANSACTIONAL_WRITES)
        transactions = world.sink_container().transactions()
        opened = transactions.begin(world.fresh_name())
        writer.join_transaction(opened)
        _send(writer, batch_of(value=[b"v"], partition=[0]), target)
        writer.close()
        assert rows_of(world, target, 0, **COMMITTED) == []
        transactions.commit(opened)
        await_until(lambda: len(rows_of(world, target, 0, **COMMITTED)) == 1)

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
