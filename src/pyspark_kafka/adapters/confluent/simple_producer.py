"""librdkafka's producer: rows go into its queues, and only what fails comes back."""

from __future__ import annotations

import ctypes
import os
import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, final

from confluent_kafka import KafkaError, KafkaException

from .client_handle import ERROR_SIZE, log_event, new_client
from .delivery_errors import FATAL, QUEUE_FULL, Undelivered, delivery_error, produce_error, worse
from .librdkafka import (
    EVENT_DR,
    EVENT_ERROR,
    EVENT_LOG,
    PRODUCER,
    Message,
    Metadata,
)
from .produce_kernel import Calls, bases_of, produce_full, produce_plain, unseen_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .connection import Connection
    from .partitioned_rows import PartitionedRows

FLUSH_MS: Final = 100
"""How long a flush waits at once, before failures are looked for."""

FULL_MS: Final = 1
"""How long to wait when the queue is full; nothing tells when there is room."""

_PURGE_ALL: Final = 0x1 | 0x2
"""``RD_KAFKA_PURGE_F_QUEUE`` and ``RD_KAFKA_PURGE_F_INFLIGHT``."""

_MAX_MS: Final = 2**31 - 1


@final
@dataclass(slots=True)
class _Handles:
    """What of librdkafka's is to be given back."""

    library: ctypes.CDLL
    client: int
    main_queue: int
    topics: dict[str, int] = field(default_factory=dict)

    def release(self, process: int) -> None:
        # librdkafka's threads do not survive a fork: in a child the handle belongs to nobody.
        if os.getpid() == process:
            # What is queued would be waited for.
            self.library.rd_kafka_purge(self.client, _PURGE_ALL)
            for topic in self.topics.values():
                self.library.rd_kafka_topic_destroy(topic)
            self.library.rd_kafka_queue_destroy(self.main_queue)
            self.library.rd_kafka_destroy(self.client)


@final
class SimpleProducer:
    """A handle of librdkafka's, for the process that makes it."""

    def __init__(
        self,
        library: ctypes.CDLL,
        connection: Connection,
        config: Mapping[str, str],
        most_unseen: int,
    ) -> None:
        """Make the handle; nothing is asked of a broker yet.

        ``most_unseen`` is how many bytes of keys and headers may be queued besides what librdkafka
        counts, and those of one call of ``send``.

        :raises OptionsError: if librdkafka does not know or accept a setting.
        """
        self._library = library
        self._connection = connection
        client, main_queue = new_client(library, PRODUCER, connection, config, EVENT_DR)
        self._handles = _Handles(library, client, main_queue)
        self._name = library.rd_kafka_name(client).decode()
        self._calls = Calls(library, client)
        self._failed: Undelivered | None = None
        self._most_unseen = most_unseen
        self._unseen = 0
        self._release = weakref.finalize(self, self._handles.release, os.getpid())
        self._release.atexit = False

    def partitions(self, topic: str, timeout_s: float) -> int:
        """Ask a broker how many partitions a topic has.

        :raises KafkaException: if there is no answer, or it is an error.
        """
        library = self._library
        answer = ctypes.POINTER(Metadata)()
        milliseconds = min(_MAX_MS, round(timeout_s * 1_000))
        error = library.rd_kafka_metadata(
            self._handles.client, 0, self._topic(topic), ctypes.byref(answer), milliseconds
        )
        if error:
            raise KafkaException(KafkaError(error))
        try:
            found = answer.contents.topics[0]
            if found.err:
                raise KafkaException(KafkaError(found.err))
            return int(found.partition_cnt)
        finally:
            library.rd_kafka_metadata_destroy(answer)

    def wait(self, seconds: float) -> None:
        """Serve what librdkafka has to say, for that long at the most."""
        self._heed(round(seconds * 1_000))

    def send(self, rows: PartitionedRows) -> None:
        """Queue records, and block while the queue is full.

        :raises PysparkKafkaError: if one of these, or an earlier one, fails.
        """
        topic = self._topic(rows.topic)
        columns = rows.columns.arrays
        bases = bases_of(columns)
        produce = produce_plain if rows.is_plain else produce_full
        at = 0
        self._check()
        if self._unseen > self._most_unseen:
            self.flush()
        self._unseen += unseen_bytes(columns, rows.rows)
        while True:
            at, code = produce(
                columns, bases, rows.rows, rows.partitions, at, topic, self._calls.arrays
            )
            if code == 0:
                return
            if code != QUEUE_FULL:
                raise self._refusal(rows, at, code)
            self._check(FULL_MS)

    def flush(self) -> None:
        """Wait until every record is acknowledged.

        :raises PysparkKafkaError: as soon as one fails.
        """
        while self._library.rd_kafka_flush(self._handles.client, FLUSH_MS):
            self._check()
        self._check()
        self._unseen = 0

    def close(self) -> None:
        """Drop what was not flushed, and give everything back; a second call does nothing."""
        self._release()

    def _topic(self, name: str) -> int:
        topics = self._handles.topics
        if name not in topics:
            made = self._library.rd_kafka_topic_new(self._handles.client, name.encode(), None)
            if not made:
                raise KafkaException(KafkaError(self._library.rd_kafka_last_error()))
            topics[name] = made
        return topics[name]

    def _check(self, wait_ms: int = 0) -> None:
        self._heed(wait_ms)
        if self._failed is not None:
            raise delivery_error(self._connection, self._failed)

    def _heed(self, wait_ms: int) -> None:
        """Take the lines, the errors and the failures that are there, or the first that comes."""
        library = self._library
        while event := library.rd_kafka_queue_poll(self._handles.main_queue, wait_ms):
            wait_ms = 0
            kind = library.rd_kafka_event_type(event)
            if kind == EVENT_LOG:
                log_event(library, event, self._name)
            elif kind == EVENT_ERROR:
                text = library.rd_kafka_event_error_string(event).decode(errors="replace")
                self._connection.remember(KafkaError(library.rd_kafka_event_error(event), text))
            elif kind == EVENT_DR:
                self._take_reports(event)
            library.rd_kafka_event_destroy(event)

    def _take_reports(self, event: int) -> None:
        while address := self._library.rd_kafka_event_message_next(event):
            if Message.from_address(address).err:
                self._failed = worse(self._failed, self._undelivered(address))

    def _undelivered(self, address: int) -> Undelivered:
        library, message = self._library, Message.from_address(address)
        # Not rd_kafka_message_errstr, which gives the value of the record that failed.
        text = library.rd_kafka_message_produce_errstr(address)
        return Undelivered(
            topic=library.rd_kafka_topic_name(message.rkt).decode(),
            partition=message.partition,
            size=message.len + message.key_len + self._header_bytes(address),
            code=message.err,
            reason=text.decode(errors="replace") if text else KafkaError(message.err).str(),
        )

    def _header_bytes(self, address: int) -> int:
        library, headers = self._library, ctypes.c_void_p()
        if library.rd_kafka_message_headers(address, ctypes.byref(headers)):
            return 0
        name, value, size = ctypes.c_char_p(), ctypes.c_void_p(), ctypes.c_size_t()
        out = [ctypes.byref(each) for each in (name, value, size)]
        total = number = 0
        while not library.rd_kafka_header_get_all(headers, number, *out):
            total += len(name.value or b"") + size.value
            number += 1
        return total

    def _refusal(self, rows: PartitionedRows, place: int, code: int) -> Exception:
        reason = KafkaError(code).str()
        if code == FATAL:
            text = ctypes.create_string_buffer(ERROR_SIZE)
            self._library.rd_kafka_fatal_error(self._handles.client, text, ERROR_SIZE)
            reason = text.value.decode(errors="replace") or reason
        partition = int(rows.partitions[place])
        record = Undelivered(rows.topic, partition, rows.size(place), code, reason)
        return produce_error(self._connection, record)
