"""Dead letters that a query's own client writes."""

from __future__ import annotations

import copy
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, final

import pyarrow as pa
import pyarrow.compute as pc

from ...domain.errors import PysparkKafkaError, UnknownTopicError
from ...domain.values.errors import DeadLetterLoopError
from ...ports.letters.dead_letters import DeadLetters
from .letter_columns import joined, letters_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ...domain.options.sink import SinkOptions
    from ...ports.letters.dead_letters import BadRecords
    from ...ports.writing.record_writer import RecordWriter

OPTION: Final = "deadLetterTopic"
MAX_GATHERED_BYTES: Final = 1024 * 1024
"""A batch has few bad records: to make letters of each batch's would cost more than to gather."""


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
            # The kind of error says who can fix it, and whether a retry helps.
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
