import datetime as dt
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
from dependency_injector import providers

from pyspark_kafka.adapters.letters import TopicDeadLetters
from pyspark_kafka.bootstrap.container import Container
from pyspark_kafka.domain.errors import BrokerUnreachableError, UnknownTopicError
from pyspark_kafka.domain.options.sink import SinkOptions, dead_letter_sink
from pyspark_kafka.domain.options.source import SourceOptions
from pyspark_kafka.domain.values import dead_letter
from pyspark_kafka.domain.values.errors import DeadLetterLoopError
from pyspark_kafka.domain.writing.errors import RecordTooLargeError
from pyspark_kafka.ports.letters import BadRecords, DeadLetters
from pyspark_kafka.ports.record_schema import TYPES
from pyspark_kafka.ports.writing import RecordWriter
from pyspark_kafka.testing import DeadLettersContract, MemoryWorld

from .adapter import Faults, PassesOn, suite_with
from .record_writer import Passing as PassingWriter

Letter = dict[str, Any]

_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_OURS: Final = len(dead_letter.HEADERS)


class Passing(PassesOn, DeadLetters):
    """Passes every call to another adapter."""

    def __init__(
        self, make_writer: Callable[[SinkOptions], RecordWriter], options: SinkOptions, topic: str
    ) -> None:
        self.topic = topic
        writer: Any = EditingWriter
        super().__init__(
            TopicDeadLetters(lambda given: writer(make_writer(given), self.edited), options, topic)
        )

    def changed(self, bad: BadRecords) -> BadRecords:
        """Return what letters are made of."""
        return bad

    def edited(self, letter: Letter) -> Letter:
        """Return what is written of a letter."""
        return letter

    def write(self, bad: BadRecords) -> None:
        self.inner.write(self.changed(bad))


class EditingWriter(PassingWriter):
    """Changes letter by letter."""

    def __init__(self, writer: Any, edit: Callable[[Letter], Letter]) -> None:
        super().__init__(writer)
        self._edit = edit

    def rewritten(self, batch: pa.RecordBatch, _topic: str | None) -> pa.RecordBatch:
        rows = [self._edit(row) for row in batch.to_pylist()]
        schema = pa.schema([(name, TYPES[name]) for name in rows[0]])
        return pa.RecordBatch.from_pylist(rows, schema=schema)


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


_Suite = DeadLettersContract

wrong: Final = Faults(Passing, _suite)


@wrong(_Suite.test_a_letter_is_the_record_and_the_headers_of_kafka_connect, "edited")
def writes_no_keys(self, letter):
    return letter | {"key": None}


@wrong(_Suite.test_a_letter_is_the_record_and_the_headers_of_kafka_connect, "edited")
def writes_letters_with_the_current_time(self, letter):
    return letter | {"timestamp": None}


@wrong(_Suite.test_a_letter_is_the_record_and_the_headers_of_kafka_connect, "edited")
def drops_the_headers_of_the_record(self, letter):
    return letter | {"headers": letter["headers"][-_OURS:]}


@wrong(_Suite.test_a_letter_is_the_record_and_the_headers_of_kafka_connect, "edited")
def writes_our_headers_before_those_of_the_record(self, letter):
    headers = letter["headers"]
    return letter | {"headers": headers[-_OURS:] + headers[:-_OURS]}


@wrong(_Suite.test_a_letter_is_the_record_and_the_headers_of_kafka_connect, "edited")
def writes_offsets_as_8_bytes(self, letter):
    headers = [
        {**pair, "value": int(pair["value"]).to_bytes(8, "big")}
        if pair["key"] == dead_letter.OFFSET
        else pair
        for pair in letter["headers"]
    ]
    return letter | {"headers": headers}


@wrong(_Suite.test_a_letter_is_the_record_and_the_headers_of_kafka_connect, "changed")
def writes_errors_in_ascii(self, bad):
    return replace(bad, errors=pa.array([ascii(error)[1:-1] for error in bad.errors.to_pylist()]))


@wrong(_Suite.test_the_stage_is_that_of_the_column, "changed")
def takes_every_column_for_the_value(self, bad):
    return replace(bad, column="value")


@wrong(_Suite.test_each_letter_is_of_its_own_record, "changed")
def takes_the_first_records_reason_for_a_whole_batch(self, bad):
    return replace(bad, reasons=np.full_like(bad.reasons, bad.reasons[0]))


@wrong(_Suite.test_each_letter_is_of_its_own_record, "changed")
def takes_the_first_records_error_for_a_whole_batch(self, bad):
    return replace(bad, errors=pa.array([bad.errors[0].as_py()] * len(bad.errors)))


@wrong(_Suite.test_each_letter_is_of_its_own_record, "changed")
def takes_the_first_records_topic_for_a_whole_batch(self, bad):
    topics = bad.records.column("topic").to_pylist()
    return replace(bad, records=_with(bad.records, "topic", topics[:1] * len(topics)))


@wrong(_Suite.test_each_letter_is_of_its_own_record, "edited")
def writes_empty_values_for_nulls(self, letter):
    return letter | {"value": letter["value"] or b""}


@wrong(_Suite.test_a_slice_is_written, "changed")
def does_not_know_that_a_batch_may_be_a_slice_and_takes_offsets_from_the_beginning(self, bad):
    offsets = bad.records.column("offset")
    first = pa.Array.from_buffers(offsets.type, len(offsets), offsets.buffers())
    return replace(bad, records=_with(bad.records, "offset", first.to_pylist()))


@wrong(_Suite.test_a_record_without_a_timestamp_gets_the_current_time, "edited")
def writes_the_epoch_where_a_record_has_no_timestamp(self, letter):
    return letter | {"timestamp": letter["timestamp"] or _EPOCH}


@wrong(_Suite.test_keys_decide_the_partition, "edited")
def writes_all_letters_to_one_partition(self, letter):
    return letter | {"partition": 0}


@wrong(_Suite.test_flush_counts_since_the_last_one, "flush")
def counts_letters_of_earlier_flushes_again(self):
    self.seen["count"] = self.seen.get("count", 0) + self.inner.flush()
    return self.seen["count"]


@wrong(_Suite.test_flush_counts_since_the_last_one)
class LastWriteOnly(Passing):
    """Keeps only the last write before a flush."""

    def write(self, bad):
        self.seen["last"] = bad

    def flush(self):
        while self.seen:
            self.inner.write(self.seen.pop("last"))
        return self.inner.flush()


@wrong(_Suite.test_a_letter_may_be_as_large_as_a_record, "write")
def refuses_letters_above_the_usual_limit_of_a_producer(self, bad):
    if bad.records.nbytes > 1_048_576:
        raise RecordTooLargeError(self.topic, None, bad.records.nbytes, "it is too large")
    Passing.write(self, bad)


@wrong(_Suite.test_a_record_of_the_dead_letter_topic_is_refused, "write")
def writes_letters_of_the_dead_letter_topic_to_itself(self, bad):
    other = ["other"] * bad.records.num_rows
    Passing.write(self, replace(bad, records=_with(bad.records, "topic", other)))


@wrong(_Suite.test_a_record_of_the_dead_letter_topic_is_refused, "write")
def refuses_a_loop_when_the_other_letters_are_sent(self, bad):
    for number in range(bad.records.num_rows):
        one = replace(
            bad,
            records=bad.records.slice(number, 1),
            reasons=bad.reasons[number : number + 1],
            errors=bad.errors.slice(number, 1),
        )
        Passing.write(self, one)


@wrong(_Suite.test_the_topic_has_to_exist, "flush")
def names_the_option_of_a_sink(self):
    try:
        return self.inner.flush()
    except UnknownTopicError as error:
        raise UnknownTopicError(error.topics, "topic", "here") from None


@wrong(_Suite.test_a_letter_that_is_too_large_is_an_error, "write")
def drops_letters_that_are_too_large(self, bad):
    if bad.records.nbytes < 2_000:
        Passing.write(self, bad)


@wrong(_Suite.test_a_letter_that_is_too_large_is_an_error, "write")
def shows_the_value_in_an_error(self, bad):
    value = bad.records.column("value")[0].as_py()
    reason = f"dead letters were written to the topic '{self.topic}': {value}"
    raise RecordTooLargeError(self.topic, 0, len(value), reason)


@wrong(_Suite.test_brokers_that_do_not_answer_are_an_error, "flush")
def does_not_say_which_topic_cannot_be_written_to(self):
    try:
        return self.inner.flush()
    except BrokerUnreachableError as error:
        raise BrokerUnreachableError("here", 0) from error


wrong.drops_error(
    _Suite.test_a_record_of_the_dead_letter_topic_is_refused, "write", DeadLetterLoopError
)
wrong.drops_error(_Suite.test_the_topic_has_to_exist, "flush", UnknownTopicError, 0)
wrong.drops_error(
    _Suite.test_brokers_that_do_not_answer_are_an_error, "flush", BrokerUnreachableError, 0
)
wrong.fails_when_closed_twice(_Suite.test_closing_twice_is_allowed)
