"""The contract suite of ``RecordWriter``."""

from __future__ import annotations

import datetime as dt
import itertools
from typing import Any

import pyarrow as pa
import pytest

from ..domain.errors import (
    InvalidRecordError,
    InvalidTimestampError,
    NullTopicError,
    RecordDeliveryError,
    RecordTooLargeError,
    RejectedRecordError,
    UnknownPartitionError,
    UnknownTopicError,
    UnsupportedFeatureError,
)
from ..domain.topic_partition import TopicPartition
from ..domain.writing.transaction import DeliveryStats, Transaction
from ..ports.writing.record_writer import RecordWriter
from .outputs import KEYS, MIXED_HEADERS, batch_of, keys_of_partition
from .world import COMMITTED, Capability, World, WorldContract, await_until


def _with(batch: pa.RecordBatch, **columns: list[Any]) -> pa.RecordBatch:
    """Return a batch with further columns."""
    further = batch_of(**columns)
    names = [*batch.schema.names, *further.schema.names]
    return pa.RecordBatch.from_arrays([*batch.columns, *further.columns], names)


def _send(writer: RecordWriter, batch: pa.RecordBatch, topic: str | None = None) -> int:
    writer.write(batch, topic)
    return writer.flush().records


def _refusal(writer: RecordWriter, batch: pa.RecordBatch, topic: str) -> RecordDeliveryError | None:
    """Write a batch, and return the error of its delivery."""
    try:
        assert _send(writer, batch, topic) == batch.num_rows
    except RecordDeliveryError as error:
        return error
    return None


def _values(world: World, topic: str, number: int) -> list[bytes]:
    """Return the values of all records of a partition."""
    return [row["value"] for row in _written(world, topic, number)]


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
        later = when + dt.timedelta(milliseconds=1)
        batch = batch_of(
            key=[b"k", b"l"],
            value=[b"v", b"w"],
            topic=[topic, topic],
            partition=[1, 1],
            headers=[MIXED_HEADERS, MIXED_HEADERS[1:]],
            timestamp=[when, later],
        )
        assert _send(writer, batch) == 2
        first, second = _written(world, topic, 1)
        assert (first["key"], first["value"], first["headers"]) == (b"k", b"v", MIXED_HEADERS)
        assert (second["key"], second["value"], second["headers"]) == (
            b"l",
            b"w",
            MIXED_HEADERS[1:],
        )
        assert first["timestamp"].timestamp() == when.timestamp()
        assert second["timestamp"].timestamp() == later.timestamp()

    def test_records_without_a_timestamp_get_the_current_time(
        self, world: World, writer: RecordWriter, topic: str
    ) -> None:
        """A null in the column is as good as no column; the clocks may differ by a minute."""
        world.require(Capability.TIMESTAMPS)
        old = dt.datetime(2020, 1, 2, tzinfo=dt.UTC)
        batches = batch_of(value=[b"v"]), batch_of(value=[b"v"] * 2, timestamp=[old, None])
        for batch in batches:
            writer.write(_with(batch, partition=[0] * batch.num_rows), topic)
        writer.flush()
        first, second, third = (row["timestamp"].timestamp() for row in _written(world, topic, 0))
        assert second == old.timestamp()
        now = dt.datetime.now(dt.UTC).timestamp()
        assert abs(now - first) < 60
        assert abs(now - third) < 60

    def test_nulls_are_written(self, world: World, writer: RecordWriter, topic: str) -> None:
        """A null key or value stays null, and an empty one stays empty."""
        batch = batch_of(key=[None, b""], value=[b"", None], partition=[0, 0])
        assert _send(writer, batch, topic) == 2
        rows = [(row["key"], row["value"]) for row in _written(world, topic, 0)]
        assert rows == [(None, b""), (b"", None)]

    def test_strings_are_written_as_utf8(
        self, world: World, writer: RecordWriter, topic: str
    ) -> None:
        """Columns of strings are accepted like columns of bytes."""
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
        """Records go to the topic of the call, and the column is ignored."""
        other = world.topic(2)
        _send(writer, batch_of(value=[b"v"], topic=[topic], partition=[0]), other)
        assert _written(world, topic, 0) == []
        assert [row["value"] for row in _written(world, other, 0)] == [b"v"]

    def test_each_row_may_name_its_topic(
        self, world: World, writer: RecordWriter, topic: str
    ) -> None:
        """Rows of one batch go to the topics that they name, in their order."""
        other = world.topic()
        batch = batch_of(value=[b"1", b"2", b"3"], topic=[topic, other, topic], partition=[0, 0, 0])
        assert _send(writer, batch) == 3
        assert [row["value"] for row in _written(world, topic, 0)] == [b"1", b"3"]
        assert [row["value"] for row in _written(world, other, 0)] == [b"2"]

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
                [int(value) for value in _values(world, topic, number)]
                for number in range(1 + place % 3)
            ]
            assert all(numbers == sorted(numbers) for numbers in found)
            expected = [number for number, named in rows if named == topic]
            assert sorted(itertools.chain(*found)) == expected

    def test_each_row_may_name_its_partition(
        self, world: World, writer: RecordWriter, topic: str
    ) -> None:
        """Rows of one batch go to the partitions that they name, in their order."""
        batch = batch_of(value=[b"1", b"2", b"3"], partition=[1, 0, 1])
        assert _send(writer, batch, topic) == 3
        assert [row["value"] for row in _written(world, topic, 0)] == [b"2"]
        assert [row["value"] for row in _written(world, topic, 1)] == [b"1", b"3"]

    def test_rows_may_name_partitions_that_were_added(
        self, world: World, writer: RecordWriter, topic: str
    ) -> None:
        """A topic may get partitions after records were written to it."""
        world.require(Capability.ADD_PARTITIONS)
        assert _send(writer, batch_of(value=[b"1"], partition=[0]), topic) == 1
        world.add_partitions(topic, 4)
        assert _send(writer, batch_of(value=[b"2", b"3"], partition=[3, 0]), topic) == 2
        assert _values(world, topic, 0) == [b"1", b"3"]
        assert _values(world, topic, 3) == [b"2"]

    def test_records_of_one_key_go_to_one_partition(
        self, world: World, writer: RecordWriter, topic: str
    ) -> None:
        """Records of one key go to one partition, in order."""
        keys = [b"%d" % (number % 7) for number in range(70)]
        values = [b"%d" % number for number in range(70)]
        _send(writer, batch_of(key=keys, value=values), topic)
        partitions = [_written(world, topic, number) for number in (0, 1)]
        assert sum(map(len, partitions)) == 70
        for key in set(keys):
            [home] = [part for part in partitions if any(row["key"] == key for row in part)]
            ours = [int(row["value"]) for row in home if row["key"] == key]
            assert ours == sorted(ours)

    def test_flush_counts_since_the_last_one(self, writer: RecordWriter, topic: str) -> None:
        """Each flush counts the records acknowledged since the previous one."""
        writer.write(batch_of(value=[b"v", b"w"]), topic)
        writer.write(batch_of(value=[]), topic)
        writer.write(batch_of(value=[b"xyz"]), topic)
        assert writer.flush() == DeliveryStats(3, 5)
        assert writer.flush() == DeliveryStats()
        writer.write(batch_of(value=[b"z"]), topic)
        assert writer.flush() == DeliveryStats(1, 1)

    def test_a_flush_delivers_every_write_before_it(
        self, world: World, writer: RecordWriter, topic: str
    ) -> None:
        """Batches of other topics and columns are all written, in order within a partition."""
        other = world.topic()
        writer.write(batch_of(value=[b"1", b"2"], partition=[0, 1]), topic)
        writer.write(batch_of(value=[b"3"]), other)
        writer.write(batch_of(key=[b"k", b"l"], value=[b"4", b"5"], partition=[1, 0]), topic)
        writer.write(batch_of(value=[b"6", b"7"], topic=[other, topic], partition=[0, 0]))
        writer.write(batch_of(value=[b"8"], partition=[0]), topic)
        assert writer.flush().records == 8
        assert _values(world, topic, 0) == [b"1", b"5", b"7", b"8"]
        assert _values(world, topic, 1) == [b"2", b"4"]
        assert _values(world, other, 0) == [b"3", b"6"]

    def test_a_slice_is_written(self, world: World, writer: RecordWriter, topic: str) -> None:
        """Only the rows of a batch's slice are written."""
        whole = batch_of(
            key=[b"a", b"b", None, b"d"],
            value=[b"0", None, b"2", b"3"],
            partition=[1, 0, 0, 1],
            headers=[None, [{"key": "h", "value": b"1"}], [{"key": "i", "value": b"2"}], None],
        )
        assert _send(writer, whole.slice(1, 2), topic) == 2
        assert _written(world, topic, 1) == []
        rows = _written(world, topic, 0)
        assert [(row["key"], row["value"], row["headers"]) for row in rows] == [
            (b"b", None, [{"key": "h", "value": b"1"}]),
            (None, b"2", [{"key": "i", "value": b"2"}]),
        ]

    def test_delivered_bytes_are_those_of_keys_values_and_headers(
        self, writer: RecordWriter, topic: str
    ) -> None:
        """Names of headers count, and nulls do not."""
        headers = [[{"key": "ab", "value": b"1"}, {"key": "c", "value": None}], None]
        writer.write(batch_of(key=[b"key", None], value=[b"value", b""], headers=headers), topic)
        assert writer.flush() == DeliveryStats(2, 3 + 5 + 2 + 1 + 1)

    def test_keys_decide_as_in_java(self, world: World, writer: RecordWriter) -> None:
        """A key's hash chooses the partition, where the row does not name one."""
        topic = world.topic(5)
        keys = list(KEYS)
        _send(writer, batch_of(key=keys, value=keys), topic)
        _send(writer, batch_of(key=keys, value=keys, partition=[None] * len(keys)), topic)
        named = batch_of(key=[b"k", b"k"], value=[b"null", b"named"], partition=[None, 4])
        _send(writer, named, topic)
        further = {2: [b"null"], 4: [b"named"]}
        for number in range(5):
            chosen = keys_of_partition(number, 5)
            assert _values(world, topic, number) == 2 * chosen + further.get(number, [])

    def test_records_without_a_key_are_written(
        self, world: World, writer: RecordWriter, topic: str
    ) -> None:
        """Records without a key go to one or several partitions, and none is lost."""
        values = [b"%d" % number for number in range(20_000)]
        assert _send(writer, batch_of(value=values), topic) == 20_000
        assert sorted(_values(world, topic, 0) + _values(world, topic, 1)) == sorted(values)

    def test_records_without_a_key_are_spread(
        self, world: World, writer: RecordWriter, topic: str
    ) -> None:
        """Their partition changes after a time, as with Java's sticky partitioner."""
        values = [b"%d" % number * 5_000 for number in range(10)]
        for _ in range(5):
            _send(writer, batch_of(value=values), topic)
        assert set(_values(world, topic, 0)) == set(_values(world, topic, 1)) == set(values)

    def test_a_record_needs_a_topic(self, writer: RecordWriter) -> None:
        """A record without a topic is an error."""
        with pytest.raises(NullTopicError):
            _send(writer, batch_of(value=[b"v"]))

    def test_a_null_topic_is_refused_before_anything_is_written(
        self, world: World, writer: RecordWriter, topic: str
    ) -> None:
        """If one record of a batch has no topic, none is sent."""
        with pytest.raises(NullTopicError):
            _send(writer, batch_of(value=[b"v", b"w"], topic=[topic, None], partition=[0, 0]))
        assert _written(world, topic, 0) == []

    def test_the_topic_has_to_exist(self, world: World, writer: RecordWriter) -> None:
        """The error names a topic that does not exist."""
        unknown = world.fresh_name()
        with pytest.raises(UnknownTopicError, match=f"'{unknown}'"):
            _send(writer, batch_of(value=[b"v"]), unknown)

    def test_the_partition_has_to_exist(
        self, world: World, writer: RecordWriter, topic: str
    ) -> None:
        """The error is of the first record whose partition does not exist."""
        batch = batch_of(key=[b"k"] * 3, value=[b"v", b"secret", b"w"], partition=[0, 2, 7])
        with pytest.raises(UnknownPartitionError) as caught:
            _send(writer, batch, topic)
        assert (caught.value.topic, caught.value.partition, caught.value.size) == (topic, 2, 7)
        assert "secret" not in str(caught.value)
        assert b"w" not in _values(world, topic, 0) + _values(world, topic, 1)

    def test_a_header_needs_a_key(self, writer: RecordWriter, topic: str) -> None:
        """A row that cannot become a record is an error."""
        headers = [None, [{"key": "a", "value": b"1"}, {"key": None, "value": b"2"}]]
        with pytest.raises(InvalidRecordError):
            _send(writer, batch_of(value=[b"v", b"w"], headers=headers), topic)

    def test_a_record_that_is_too_large_for_its_topic_is_an_error(
        self, world: World, writer: RecordWriter
    ) -> None:
        """The error names its partition and not its content; without one, the record is there."""
        topic = world.topic(2, max__message__bytes="2000")
        batch = batch_of(key=[b"key"], value=[b"secret" * 1_000], partition=[1])
        error = _refusal(writer, batch, topic)
        if error is None:
            assert _values(world, topic, 1) == [b"secret" * 1_000]
        else:
            assert isinstance(error, RecordTooLargeError)
            assert (error.topic, error.partition, error.size) == (topic, 1, 6_003)
            assert "secret" not in str(error)

    def test_a_record_that_a_broker_refuses_is_an_error(
        self, world: World, writer: RecordWriter
    ) -> None:
        """Compacted topics take no record without a key; without an error, the record is there."""
        topic = world.topic(2, cleanup__policy="compact")
        error = _refusal(writer, batch_of(value=[b"secret"], partition=[1]), topic)
        if error is None:
            assert _values(world, topic, 1) == [b"secret"]
        else:
            assert isinstance(error, RejectedRecordError)
            assert (error.topic, error.partition, error.size) == (topic, 1, 6)
            assert "secret" not in str(error)

    def test_a_timestamp_that_a_broker_refuses_is_an_error(
        self, world: World, writer: RecordWriter
    ) -> None:
        """A topic limits how far timestamps are off; without an error, the record is there."""
        topic = world.topic(1, message__timestamp__before__max__ms="3600000")
        when = dt.datetime(2020, 1, 2, tzinfo=dt.UTC)
        error = _refusal(writer, batch_of(value=[b"secret"], timestamp=[when]), topic)
        if error is None:
            assert _values(world, topic, 0) == [b"secret"]
        else:
            assert isinstance(error, InvalidTimestampError)
            assert (error.topic, error.partition, error.size) == (topic, 0, 6)
            assert "secret" not in str(error)

    def test_a_transaction_ends_with_the_flush(
        self, world: World, writer: RecordWriter, topic: str
    ) -> None:
        """Records written after a flush do not belong to the transaction."""
        world.require(Capability.TRANSACTIONAL_WRITES)
        transactions = world.sink_container().transactions()
        opened = transactions.begin(world.fresh_name())
        writer.join_transaction(opened)
        writer.write(batch_of(value=[b"in"], partition=[0]), topic)
        assert _send(writer, batch_of(value=[b"in", b"in"], partition=[0, 1]), topic) == 3
        assert _send(writer, batch_of(value=[b"out"], partition=[0]), topic) == 1
        transactions.abort(opened)
        # Brokers respond before a transaction has ended.
        await_until(lambda: len(_written(world, topic, 0, **COMMITTED)) == 1)
        assert _written(world, topic, 0, **COMMITTED)[0]["value"] == b"out"
        assert _written(world, topic, 1, **COMMITTED) == []

    def test_a_transaction_stays_open_after_close(
        self, world: World, writer: RecordWriter, topic: str
    ) -> None:
        """The writer's close neither commits nor aborts what another process is to end."""
        world.require(Capability.TRANSACTIONAL_WRITES)
        transactions = world.sink_container().transactions()
        opened = transactions.begin(world.fresh_name())
        writer.join_transaction(opened)
        _send(writer, batch_of(value=[b"v"], partition=[0]), topic)
        writer.close()
        assert _written(world, topic, 0, **COMMITTED) == []
        transactions.commit(opened)
        await_until(lambda: len(_written(world, topic, 0, **COMMITTED)) == 1)

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
