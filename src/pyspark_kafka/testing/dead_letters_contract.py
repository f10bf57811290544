"""The contract suite of ``DeadLetters``."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pytest

from ..domain.errors import BrokerUnreachableError, UnknownTopicError
from ..domain.reading.records import ALL_COLUMNS
from ..domain.topic_partition import TopicPartition
from ..domain.values.dead_letter import HEADERS, DeadLetter, TaskIdentity
from ..domain.values.errors import DeadLetterLoopError, FailureReason
from ..domain.writing.errors import RecordTooLargeError
from ..ports.letters import BadRecords, DeadLetters
from ..ports.record_schema import record_schema
from .world import Capability, World, WorldContract
from .writing_contract import KEYS, MIXED_HEADERS, keys_of_partition

TASK: Final = TaskIdentity("8f1c-query", "17")
WHEN: Final = dt.datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=dt.UTC)
REASON: Final = FailureReason.TYPE_MISMATCH
ERROR: Final = "it has another type than the schema (field 'größe')"

_ROW: Final[dict[str, Any]] = {
    "key": b"k",
    "value": b"v",
    "topic": "orders",
    "partition": 3,
    "offset": 5_000_000_000,
    "timestamp": WHEN,
    "timestampType": 0,
    "headers": None,
}


def records_of(*rows: dict[str, Any]) -> pa.RecordBatch:
    """Return records as readers do; columns that a row leaves out have default values."""
    schema = record_schema(ALL_COLUMNS)
    return pa.RecordBatch.from_pylist([{**_ROW, **row} for row in rows], schema=schema)


def bad(
    *rows: dict[str, Any],
    column: str = "value",
    reasons: Sequence[FailureReason] = (),
    errors: Sequence[str] = (),
) -> BadRecords:
    """Return bad records: rows of ``records_of``, with ``REASON`` and ``ERROR`` by default."""
    return bad_batch(records_of(*rows), column, reasons, errors)


def bad_batch(
    records: pa.RecordBatch,
    column: str = "value",
    reasons: Sequence[FailureReason] = (),
    errors: Sequence[str] = (),
) -> BadRecords:
    """Return the records of a batch as bad ones."""
    count = records.num_rows
    return BadRecords(
        records,
        column,
        "shop.OrderDecoder",
        np.array(reasons or [REASON] * count, np.uint8),
        pa.array(errors or [ERROR] * count, pa.string()),
        TASK,
    )


def _headers(row: dict[str, Any]) -> list[tuple[str, bytes | None]]:
    return [(pair["key"], pair["value"]) for pair in row["headers"]]


def _texts(row: dict[str, Any]) -> dict[str, str]:
    """Return the headers of a letter behind the record's own."""
    return {name: (value or b"").decode() for name, value in _headers(row)[-len(HEADERS) :]}


class DeadLettersContract(WorldContract):
    """The contract of ``DeadLetters``; a subclass overrides the fixture ``world``."""

    @pytest.fixture
    def topic(self, world: World) -> str:
        """Return a dead-letter topic of one partition."""
        return world.topic()

    @pytest.fixture
    def letters(self, world: World, topic: str) -> DeadLetters:
        """Return the adapter under test, which writes to ``topic``."""
        return self.letters_for(world, topic)

    @staticmethod
    def letters_for(world: World, topic: str, **raw: str) -> DeadLetters:
        """Return the adapter for another topic, or with further options of the query."""
        made: DeadLetters = world.container(**raw).dead_letters(topic)
        return made

    @staticmethod
    def written(world: World, topic: str, number: int = 0) -> list[dict[str, Any]]:
        """Return the letters in a partition."""
        return world.records(TopicPartition(topic, number))

    def test_a_letter_is_the_record_and_the_headers_of_kafka_connect(
        self, world: World, letters: DeadLetters, topic: str
    ) -> None:
        """Key, value, timestamp and headers are the record's; the other headers are text."""
        letters.write(bad({"headers": MIXED_HEADERS}))
        assert letters.flush() == 1
        [letter] = self.written(world, topic)
        assert (letter["key"], letter["value"], letter["timestamp"]) == (b"k", b"v", WHEN)
        assert letter["headers"][: len(MIXED_HEADERS)] == MIXED_HEADERS
        assert [name for name, _ in _headers(letter)[len(MIXED_HEADERS) :]] == list(HEADERS)
        assert _texts(letter) == {
            "__connect.errors.topic": "orders",
            "__connect.errors.partition": "3",
            "__connect.errors.offset": "5000000000",
            "__connect.errors.connector.name": "8f1c-query",
            "__connect.errors.task.id": "17",
            "__connect.errors.stage": "VALUE_CONVERTER",
            "__connect.errors.class.name": "shop.OrderDecoder",
            "__connect.errors.exception.class.name": (
                "pyspark_kafka.domain.values.errors.MalformedValueError"
            ),
            "__connect.errors.exception.message": ERROR,
            "__pyspark_kafka.errors.reason": "TYPE_MISMATCH",
        }

    def test_the_stage_is_that_of_the_column(
        self, world: World, letters: DeadLetters, topic: str
    ) -> None:
        """A bad key has Kafka Connect's stage of keys, also between bad values."""
        for column in ("value", "key", "value", "value"):
            letters.write(bad({}, column=column))
        assert letters.flush() == 4
        found = [_texts(letter) for letter in self.written(world, topic)]
        value, key = "VALUE_CONVERTER", "KEY_CONVERTER"
        assert [each["__connect.errors.stage"] for each in found] == [value, key, value, value]

    def test_letters_of_a_batch_above_a_megabyte_are_written(
        self, world: World, letters: DeadLetters, topic: str
    ) -> None:
        """Letters are not kept until the flush, however many there are."""
        for start in range(0, 40, 10):
            rows = ({"offset": start + number, "value": b"x" * 50_000} for number in range(10))
            letters.write(bad(*rows))
        assert letters.flush() == 40
        found = [_texts(letter) for letter in self.written(world, topic)]
        assert [int(each["__connect.errors.offset"]) for each in found] == [*range(40)]

    def test_each_letter_is_of_its_own_record(
        self, world: World, letters: DeadLetters, topic: str
    ) -> None:
        """Nulls stay null, and each record has its own headers, place, reason and error."""
        reasons = [FailureReason.BAD_UTF8, FailureReason.TRUNCATED, FailureReason.NO_FRAMING]
        rows = (
            {"key": None, "value": b"1", "offset": 1, "headers": MIXED_HEADERS[:1]},
            {"key": b"", "value": None, "offset": 2, "topic": "payments", "partition": 0},
            {"key": b"x", "value": b"", "offset": 3, "headers": MIXED_HEADERS[2:]},
        )
        letters.write(bad(*rows, reasons=reasons, errors=["one", "two", "three"]))
        assert letters.flush() == 3
        found = self.written(world, topic)
        pairs = [(None, b"1"), (b"", None), (b"x", b"")]
        assert [(row["key"], row["value"]) for row in found] == pairs
        own = [row["headers"][: -len(HEADERS)] for row in found]
        assert own == [MIXED_HEADERS[:1], [], MIXED_HEADERS[2:]]
        orders, payments = TopicPartition("orders", 3), TopicPartition("payments", 0)
        assert [DeadLetter.from_headers(_headers(row)) for row in found] == [
            DeadLetter(orders, 1, "BAD_UTF8", TASK.query, "one"),
            DeadLetter(payments, 2, "TRUNCATED", TASK.query, "two"),
            DeadLetter(orders, 3, "NO_FRAMING", TASK.query, "three"),
        ]

    def test_a_slice_is_written(self, world: World, letters: DeadLetters, topic: str) -> None:
        """Only the rows of a batch's slice become letters, with their own headers."""
        rows = [{"offset": number, "headers": MIXED_HEADERS[number:]} for number in range(4)]
        letters.write(bad_batch(records_of(*rows).slice(1, 2)))
        assert letters.flush() == 2
        found = self.written(world, topic)
        assert [_texts(row)["__connect.errors.offset"] for row in found] == ["1", "2"]
        own = [row["headers"][: -len(HEADERS)] for row in found]
        assert own == [MIXED_HEADERS[1:], MIXED_HEADERS[2:]]

    def test_a_record_without_a_timestamp_gets_the_current_time(
        self, world: World, letters: DeadLetters, topic: str
    ) -> None:
        """A producer cannot send the timestamp -1; the clocks may differ by a minute."""
        world.require(Capability.TIMESTAMPS)
        none = dt.datetime(1969, 12, 31, 23, 59, 59, 999_000, tzinfo=dt.UTC)
        letters.write(bad({"timestamp": none}, {}))
        letters.flush()
        first, second = (row["timestamp"] for row in self.written(world, topic))
        assert abs((dt.datetime.now(dt.UTC) - first).total_seconds()) < 60
        assert second == WHEN

    def test_keys_decide_the_partition(self, world: World) -> None:
        """Letters of one key go to one partition, whatever the record's own partition was."""
        topic = world.topic(5)
        letters = self.letters_for(world, topic)
        letters.write(bad(*({"key": key} for key in KEYS)))
        letters.flush()
        for number in range(5):
            keys = [row["key"] for row in self.written(world, topic, number)]
            assert keys == keys_of_partition(number, 5)

    def test_flush_counts_since_the_last_one(
        self, world: World, letters: DeadLetters, topic: str
    ) -> None:
        """Letters of all writes are acknowledged by a flush, which counts them once."""
        assert letters.flush() == 0
        letters.write(bad({"offset": 1}, {"offset": 2}))
        letters.write(bad({"offset": 3}, column="key"))
        assert letters.flush() == 3
        assert len(self.written(world, topic)) == 3
        assert letters.flush() == 0
        letters.write(bad({"offset": 4}))
        assert letters.flush() == 1

    def test_a_letter_may_be_as_large_as_a_record(self, world: World) -> None:
        """Records above a producer's default limit can be written, if the topic takes them."""
        topic = world.topic(max__message__bytes="4000000")
        letters = self.letters_for(world, topic)
        letters.write(bad({"value": b"x" * 2_000_000}))
        assert letters.flush() == 1

    def test_a_record_of_the_dead_letter_topic_is_refused(
        self, world: World, letters: DeadLetters, topic: str
    ) -> None:
        """A query that reads its own letters would write them again and again."""
        with pytest.raises(DeadLetterLoopError, match=f"'{topic}'"):
            letters.write(bad({}, {"topic": topic}))
        assert letters.flush() == 0
        assert self.written(world, topic) == []

    def test_the_topic_has_to_exist(self, world: World) -> None:
        """The error names the topic, and the option that names it."""
        unknown = world.fresh_name()
        letters = self.letters_for(world, unknown, kafka__max__block__ms="300")
        with pytest.raises(UnknownTopicError, match=f"'{unknown}'.*'deadLetterTopic'"):
            self._send(letters, bad({}))

    def test_a_letter_that_is_too_large_is_an_error(self, world: World) -> None:
        """The error names the topic and no content."""
        world.require(Capability.LIMITS)
        topic = world.topic(max__message__bytes="2000")
        letters = self.letters_for(world, topic)
        told = f"dead letters were written to the topic '{topic}'"
        with pytest.raises(RecordTooLargeError, match=told) as caught:
            self._send(letters, bad({"key": b"secret", "value": b"secret" * 1_000}))
        assert "secret" not in str(caught.value)

    def test_brokers_that_do_not_answer_are_an_error(self, world: World, topic: str) -> None:
        """The error names the topic to which letters were to be written."""
        world.require(Capability.OUTAGES)
        raw = {name.replace(".", "__"): value for name, value in world.unreachable.items()}
        letters = self.letters_for(world, topic, **raw, kafka__max__block__ms="300")
        with pytest.raises(BrokerUnreachableError, match=f"dead letters .* the topic '{topic}'"):
            self._send(letters, bad({}))

    def test_closing_twice_is_allowed(self, letters: DeadLetters) -> None:
        """A second call of close has no effect, with and without letters."""
        letters.write(bad({}))
        letters.flush()
        letters.close()
        letters.close()

    @staticmethod
    def _send(letters: DeadLetters, records: BadRecords) -> None:
        letters.write(records)
        letters.flush()
