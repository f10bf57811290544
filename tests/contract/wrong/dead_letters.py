"""Adapters that break a promise of ``DeadLetters``."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from dependency_injector import providers

from pyspark_kafka.adapters.letters import TopicDeadLetters
from pyspark_kafka.domain.errors import BrokerUnreachableError, UnknownTopicError
from pyspark_kafka.domain.options.sink import SinkOptions, dead_letter_sink
from pyspark_kafka.domain.options.source import SourceOptions
from pyspark_kafka.domain.values import dead_letter
from pyspark_kafka.domain.values.errors import DeadLetterLoopError
from pyspark_kafka.domain.writing.errors import RecordTooLargeError
from pyspark_kafka.ports.letters import BadRecords, DeadLetters
from pyspark_kafka.ports.record_schema import TYPES
from pyspark_kafka.testing import DeadLettersContract, MemoryWorld

from .adapter import PortFaults, suite_with, wrong_with
from .record_writer import Passing as PassingWriter

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_kafka.bootstrap.container import Container
    from pyspark_kafka.ports.writing import RecordWriter

Letter = dict[str, Any]

_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_OURS: Final = len(dead_letter.HEADERS)


class Passing(DeadLetters):
    """Passes every call to another adapter."""

    def __init__(
        self, make_writer: Callable[[SinkOptions], RecordWriter], options: SinkOptions, topic: str
    ) -> None:
        self.topic = topic
        self.letters = TopicDeadLetters(
            lambda given: EditingWriter(make_writer(given), self.edited), options, topic
        )

    def changed(self, bad: BadRecords) -> BadRecords:
        """Return what letters are made of."""
        return bad

    def edited(self, letter: Letter) -> Letter:
        """Return what is written of a letter."""
        return letter

    def write(self, bad: BadRecords) -> None:
        self.letters.write(self.changed(bad))

    def flush(self) -> int:
        return self.letters.flush()

    def close(self) -> None:
        self.letters.close()


class EditingWriter(PassingWriter):
    """Changes letter by letter."""

    def __init__(self, writer: Any, edit: Callable[[Letter], Letter]) -> None:
        super().__init__(writer)
        self._edit = edit

    def rewritten(self, batch: pa.RecordBatch, _topic: str | None) -> pa.RecordBatch:
        rows = [self._edit(row) for row in batch.to_pylist()]
        schema = pa.schema([(name, TYPES[name]) for name in rows[0]])
        return pa.RecordBatch.from_pylist(rows, schema=schema)


class WithoutKeys(Passing):
    """Writes no keys."""

    def edited(self, letter: Letter) -> Letter:
        return letter | {"key": None}


class WithoutTimestamps(Passing):
    """Writes letters with the current time."""

    def edited(self, letter: Letter) -> Letter:
        return letter | {"timestamp": None}


class WithoutOwnHeaders(Passing):
    """Drops the headers of the record."""

    def edited(self, letter: Letter) -> Letter:
        return letter | {"headers": letter["headers"][-_OURS:]}


class OursFirst(Passing):
    """Writes our headers before the record's."""

    def edited(self, letter: Letter) -> Letter:
        headers = letter["headers"]
        return letter | {"headers": headers[-_OURS:] + headers[:-_OURS]}


class BinaryOffsets(Passing):
    """Writes offsets as 8 bytes."""

    def edited(self, letter: Letter) -> Letter:
        headers = [
            {**pair, "value": int(pair["value"]).to_bytes(8, "big")}
            if pair["key"] == dead_letter.OFFSET
            else pair
            for pair in letter["headers"]
        ]
        return letter | {"headers": headers}


class AsciiErrors(Passing):
    """Writes errors in ASCII."""

    def changed(self, bad: BadRecords) -> BadRecords:
        return replace(
            bad, errors=pa.array([ascii(error)[1:-1] for error in bad.errors.to_pylist()])
        )


class ValuesOnly(Passing):
    """Takes every column for the value."""

    def changed(self, bad: BadRecords) -> BadRecords:
        return replace(bad, column="value")


class FirstReason(Passing):
    """Takes the first record's reason for a whole batch."""

    def changed(self, bad: BadRecords) -> BadRecords:
        return replace(bad, reasons=np.full_like(bad.reasons, bad.reasons[0]))


class FirstError(Passing):
    """Takes the first record's error for a whole batch."""

    def changed(self, bad: BadRecords) -> BadRecords:
        return replace(bad, errors=pa.array([bad.errors[0].as_py()] * len(bad.errors)))


class FirstTopic(Passing):
    """Takes the first record's topic for a whole batch."""

    def changed(self, bad: BadRecords) -> BadRecords:
        topics = bad.records.column("topic").to_pylist()
        return replace(bad, records=_with(bad.records, "topic", topics[:1] * len(topics)))


class EmptyNulls(Passing):
    """Writes empty values for nulls."""

    def edited(self, letter: Letter) -> Letter:
        return letter | {"value": letter["value"] or b""}


class WholeArrays(Passing):
    """Does not know that a batch may be a slice, and takes offsets from the beginning."""

    def changed(self, bad: BadRecords) -> BadRecords:
        offsets = bad.records.column("offset")
        first = pa.Array.from_buffers(offsets.type, len(offsets), offsets.buffers())
        return replace(bad, records=_with(bad.records, "offset", first.to_pylist()))


class ZeroTimestamps(Passing):
    """Writes the epoch where a record has no timestamp."""

    def edited(self, letter: Letter) -> Letter:
        return letter | {"timestamp": letter["timestamp"] or _EPOCH}


class PartitionZero(Passing):
    """Writes all letters to one partition."""

    def edited(self, letter: Letter) -> Letter:
        return letter | {"partition": 0}


class CountsForever(Passing):
    """Counts letters of earlier flushes again."""

    count = 0

    def flush(self) -> int:
        self.count += super().flush()
        return self.count


class LastWriteOnly(Passing):
    """Keeps only the last write before a flush."""

    kept: BadRecords | None = None

    def write(self, bad: BadRecords) -> None:
        self.kept = bad

    def flush(self) -> int:
        if self.kept is not None:
            super().write(self.kept)
            self.kept = None
        return super().flush()


class LimitsLetters(Passing):
    """Refuses letters above the usual limit of a producer."""

    def write(self, bad: BadRecords) -> None:
        if bad.records.nbytes > 1_048_576:
            raise RecordTooLargeError(self.topic, None, bad.records.nbytes, "it is too large")
        super().write(bad)


class WritesLoops(Passing):
    """Writes letters of the dead-letter topic to itself."""

    def write(self, bad: BadRecords) -> None:
        other = ["other"] * bad.records.num_rows
        super().write(replace(bad, records=_with(bad.records, "topic", other)))


class ChecksWhenWritten(Passing):
    """Refuses a loop when the other letters are sent."""

    def write(self, bad: BadRecords) -> None:
        for number in range(bad.records.num_rows):
            one = replace(
                bad,
                records=bad.records.slice(number, 1),
                reasons=bad.reasons[number : number + 1],
                errors=bad.errors.slice(number, 1),
            )
            super().write(one)


class SwallowsLoops(Passing):
    """Drops letters of the dead-letter topic."""

    def write(self, bad: BadRecords) -> None:
        try:
            super().write(bad)
        except DeadLetterLoopError:
            return


class SwallowsUnknownTopics(Passing):
    """Drops letters if there is no such topic."""

    def flush(self) -> int:
        try:
            return super().flush()
        except UnknownTopicError:
            return 0


class OptionOfSinks(Passing):
    """Names the option of a sink."""

    def flush(self) -> int:
        try:
            return super().flush()
        except UnknownTopicError as error:
            raise UnknownTopicError(error.topics, "topic", "here") from None


class DropsLargeLetters(Passing):
    """Drops letters that are too large."""

    def write(self, bad: BadRecords) -> None:
        if bad.records.nbytes < 2_000:
            super().write(bad)


class ErrorsWithContent(Passing):
    """Shows the value in an error."""

    def write(self, bad: BadRecords) -> None:
        value = bad.records.column("value")[0].as_py()
        reason = f"dead letters were written to the topic '{self.topic}': {value}"
        raise RecordTooLargeError(self.topic, 0, len(value), reason)


class SwallowsOutages(Passing):
    """Drops letters if no broker answers."""

    def flush(self) -> int:
        try:
            return super().flush()
        except BrokerUnreachableError:
            return 0


class NamelessErrors(Passing):
    """Does not say which topic cannot be written to."""

    def flush(self) -> int:
        try:
            return super().flush()
        except BrokerUnreachableError as error:
            raise BrokerUnreachableError("here", 0) from error


class ClosesOnce(Passing):
    """Fails when it is closed twice."""

    def close(self) -> None:
        del self.letters


def _with(records: pa.RecordBatch, name: str, values: list[Any]) -> pa.RecordBatch:
    """Return records with other values of a column."""
    place = records.schema.get_field_index(name)
    return records.set_column(place, name, pa.array(values, TYPES[name]))


class _LettersWorld(MemoryWorld):
    """The cluster in memory, and letters of a wrong adapter."""

    def __init__(self, adapter: type[Passing]) -> None:
        super().__init__()
        self._adapter = adapter

    def make_container(self, options: SourceOptions) -> Container:
        container = super().make_container(options)

        def letters(topic: str) -> DeadLetters:
            make_writer = container.client().record_writer
            assert make_writer is not None
            return self._adapter(make_writer, dead_letter_sink(options, topic), topic)

        container.dead_letters.override(providers.Callable(letters))
        return container


def _suite(adapter: type[Passing]) -> type:
    return suite_with(DeadLettersContract, world=lambda: _LettersWorld(adapter))


_wrong: Final = wrong_with(_suite)

_Suite = DeadLettersContract

FAULTS: Final = PortFaults(
    _suite(Passing),
    (
        *_wrong(
            _Suite.test_a_letter_is_the_record_and_the_headers_of_kafka_connect,
            *(WithoutKeys, WithoutTimestamps, WithoutOwnHeaders, OursFirst),
            *(BinaryOffsets, AsciiErrors),
        ),
        *_wrong(_Suite.test_the_stage_is_that_of_the_column, ValuesOnly),
        *_wrong(
            _Suite.test_each_letter_is_of_its_own_record,
            *(FirstReason, FirstError, FirstTopic, EmptyNulls),
        ),
        *_wrong(_Suite.test_a_slice_is_written, WholeArrays),
        *_wrong(_Suite.test_a_record_without_a_timestamp_gets_the_current_time, ZeroTimestamps),
        *_wrong(_Suite.test_keys_decide_the_partition, PartitionZero),
        *_wrong(_Suite.test_flush_counts_since_the_last_one, CountsForever, LastWriteOnly),
        *_wrong(_Suite.test_a_letter_may_be_as_large_as_a_record, LimitsLetters),
        *_wrong(
            _Suite.test_a_record_of_the_dead_letter_topic_is_refused,
            *(WritesLoops, ChecksWhenWritten, SwallowsLoops),
        ),
        *_wrong(_Suite.test_the_topic_has_to_exist, SwallowsUnknownTopics, OptionOfSinks),
        *_wrong(
            _Suite.test_a_letter_that_is_too_large_is_an_error,
            *(DropsLargeLetters, ErrorsWithContent),
        ),
        *_wrong(
            _Suite.test_brokers_that_do_not_answer_are_an_error, SwallowsOutages, NamelessErrors
        ),
        *_wrong(_Suite.test_closing_twice_is_allowed, ClosesOnce),
    ),
)
