"""Dead letters that a query's own client writes, without a Python object for each record."""

from __future__ import annotations

import copy
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..domain.errors import PysparkKafkaError, UnknownTopicError
from ..domain.values import dead_letter
from ..domain.values.errors import DeadLetterLoopError, MalformedValueError
from ..ports.letters import DeadLetters
from ..ports.record_schema import concatenated, with_headers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ..domain.options.sink import SinkOptions
    from ..ports.letters import BadRecords
    from ..ports.writing import RecordWriter

_ERROR_CLASS: Final = f"{MalformedValueError.__module__}.{MalformedValueError.__qualname__}"
_REASONS: Final = pa.array([name.encode() for name in dead_letter.REASONS], pa.binary())


def joined(found: Sequence[BadRecords]) -> BadRecords:
    """Return records of one column, decoder and task together."""
    if len(found) == 1:
        return found[0]
    return replace(
        found[0],
        records=concatenated([each.records for each in found]),
        reasons=np.concatenate([each.reasons for each in found]),
        errors=pa.concat_arrays([each.errors for each in found]),
    )


def letters_of(bad: BadRecords) -> pa.RecordBatch:
    """Return the letters of bad records, with the columns that ``RecordWriter`` takes."""
    records = bad.records
    return pa.RecordBatch.from_arrays(
        [
            records.column("key"),
            records.column("value"),
            with_headers(records.column("headers"), _texts(bad)),
            _timestamps(records.column("timestamp")),
        ],
        ["key", "value", "headers", "timestamp"],
    )


def _timestamps(timestamps: pa.Array[Any]) -> pa.Array[Any]:
    """Return timestamps, null for records without one (-1): producers cannot send that."""
    has_none = pc.less(timestamps.cast(pa.int64()), pa.scalar(0))
    kept: pa.Array[Any] = pc.if_else(has_none, pa.scalar(None, timestamps.type), timestamps)
    return kept


def _texts(bad: BadRecords) -> Mapping[str, pa.Array[Any]]:
    records = bad.records
    constants = {
        dead_letter.CONNECTOR_NAME: bad.task.query,
        dead_letter.TASK_ID: bad.task.task,
        dead_letter.STAGE: dead_letter.STAGES[bad.column],
        dead_letter.CLASS_NAME: bad.decoder,
        dead_letter.EXCEPTION_CLASS_NAME: _ERROR_CLASS,
    }
    texts = {
        dead_letter.TOPIC: records.column("topic").cast(pa.binary()),
        dead_letter.PARTITION: records.column("partition").cast(pa.string()).cast(pa.binary()),
        dead_letter.OFFSET: records.column("offset").cast(pa.string()).cast(pa.binary()),
        **{name: _repeated(text, records.num_rows) for name, text in constants.items()},
        dead_letter.EXCEPTION_MESSAGE: bad.errors.cast(pa.binary()),
        dead_letter.REASON: _REASONS.take(bad.reasons),
    }
    return {name: texts[name] for name in dead_letter.HEADERS}


def _repeated(text: str, rows: int) -> pa.Array[Any]:
    return pa.repeat(pa.scalar(text.encode(), pa.binary()), rows)


OPTION: Final = "deadLetterTopic"
MAX_GATHERED_BYTES: Final = 1024 * 1024
"""Batches have few bad records: making letters for each batch would cost more than gathering."""


@final
class TopicDeadLetters(DeadLetters):
    """Writes letters through a ``RecordWriter``, which is made for the first one."""

    def __init__(
        self, make_writer: Callable[[SinkOptions], RecordWriter], options: SinkOptions, topic: str
    ) -> None:
        """Take a client's writer, and the options of ``dead_letter_sink``."""
        self._make_writer = make_writer
        self._options = options
        self._topic = topic
        self._writer: RecordWriter | None = None
        self._gathered: list[BadRecords] = []
        self._bytes = 0

    def write(self, bad: BadRecords) -> None:
        if pc.any(pc.equal(bad.records.column("topic"), pa.scalar(self._topic))).as_py():
            raise DeadLetterLoopError(self._topic)
        if self._gathered and not _is_alike(bad, self._gathered[0]):
            self._send()
        self._gathered.append(bad)
        self._bytes += bad.records.nbytes
        if self._bytes > MAX_GATHERED_BYTES:
            self._send()

    def flush(self) -> int:
        self._send()
        if self._writer is None:
            return 0
        with self._errors_naming_the_topic():
            return self._writer.flush().records

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()

    def _send(self) -> None:
        gathered, self._gathered, self._bytes = self._gathered, [], 0
        if not gathered:
            return
        with self._errors_naming_the_topic():
            if self._writer is None:
                self._writer = self._make_writer(self._options)
            self._writer.write(letters_of(joined(gathered)), self._topic)

    @contextmanager
    def _errors_naming_the_topic(self) -> Iterator[None]:
        try:
            yield
        except UnknownTopicError:
            servers = self._options.bootstrap_servers
            raise UnknownTopicError([self._topic], OPTION, servers) from None
        except PysparkKafkaError as error:
            # The kind of the error determines who can fix it, and whether a retry helps.
            named = copy.copy(error)
            more = f" It occurred when dead letters were written to the topic '{self._topic}'."
            named.message += more
            named.args = (f"{error.args[0]}{more}", *error.args[1:])
            raise named from error


def _is_alike(bad: BadRecords, other: BadRecords) -> bool:
    """Return whether letters of both have the same columns, and the same constant headers."""
    return (bad.column, bad.decoder, bad.task) == (
        other.column,
        other.decoder,
        other.task,
    ) and bad.records.schema == other.records.schema
