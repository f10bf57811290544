"""librdkafka's producer: rows go into its queues, and their delivery is reported."""

from __future__ import annotations

import ctypes
import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, final

import numpy as np
from confluent_kafka import KafkaError, KafkaException

from ...domain.security.rights import (
    IDEMPOTENT_WRITE,
    Operation,
    topic_right,
    transactional_id_right,
)
from ...ports.clock import Deadline
from ..process_local import ProcessLocal
from .client_closing import close_in_time
from .client_handle import ERROR_SIZE, handle_event, new_client, notify, stop_notifying
from .delivery_errors import Undelivered, delivery_error, produce_error, to_report
from .error_codes import FATAL, PURGED_ERRORS, QUEUE_FULL, REFUSED_RESOURCES, UNREACHABLE_ERRORS
from .leader_check import LeaderCheck
from .librdkafka import EVENT_DR, PRODUCER, Message, Metadata
from .produce_kernel import ProducerCalls, bases_of, produce_full, produce_plain, uncounted_bytes
from .producer_config import IDEMPOTENCE, REPORT_FAILURES_ONLY
from .report_kernel import DeliveryReports

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ...domain.security.rights import Right
    from .connection import Connection
    from .partitioned_rows import PartitionedRows

FLUSH_MS: Final = 100
"""How long a flush waits before failures are checked."""

FULL_MS: Final = 1
"""How long to wait when the queue is full; librdkafka does not report when it has room."""

_PURGE_ALL: Final = 0x1 | 0x2
"""``RD_KAFKA_PURGE_F_QUEUE`` and ``RD_KAFKA_PURGE_F_INFLIGHT``."""

_METADATA_S: Final = 0.25
_PAUSE_MS: Final = 10
"""How long the first request for metadata waits, which doubles, and the time between two."""


@final
@dataclass(slots=True)
class _Handles:
    """librdkafka's objects that have to be destroyed."""

    library: ctypes.CDLL
    client: int
    main_queue: int
    connection: Connection
    """librdkafka's threads may call it until the client is destroyed."""

    topics: dict[str, int] = field(default_factory=dict)

    def close(self) -> None:
        stop_notifying(self.library, self.main_queue)
        close_in_time(self._destroy, is_collected=True)

    def _destroy(self) -> None:
        # librdkafka would wait for what is queued.
        self.library.rd_kafka_purge(self.client, _PURGE_ALL)
        for topic in self.topics.values():
            self.library.rd_kafka_topic_destroy(topic)
        self.library.rd_kafka_queue_destroy(self.main_queue)
        self.library.rd_kafka_destroy(self.client)


@final
class SimpleProducer:
    """A producer handle of librdkafka's, for the process that creates it."""

    def __init__(
        self,
        library: ctypes.CDLL,
        connection: Connection,
        config: Mapping[str, str],
        max_uncounted: int,
        topic: str | None = None,
    ) -> None:
        """Create the handle; no request is sent yet, but a first login.

        ``max_uncounted`` limits the queued bytes of keys and headers, which librdkafka does not
        count; one call of ``send`` may exceed it. All records go to ``topic``, if there is one.

        :raises OptionsError: if librdkafka does not know or accept a setting.
        :raises AuthenticationError: if a broker refuses the login.
        :raises TlsError: if the TLS handshake fails.
        """
        connection.require_login()
        self.library = self._library = library
        self._connection = connection
        client, main_queue = new_client(library, PRODUCER, connection, config, EVENT_DR)
        self._handles = _Handles(library, client, main_queue, connection)
        self._name = library.rd_kafka_name(client).decode()
        self._calls = ProducerCalls(library, client)
        self._reports = DeliveryReports(library)
        self._reports_all = config.get(REPORT_FAILURES_ONLY) == "false"
        self._transactional_id = config.get("transactional.id", "")
        is_idempotent = config.get(IDEMPOTENCE) == "true"
        self._leaders = LeaderCheck(library, client) if is_idempotent else None
        self._failed: Undelivered | None = None
        self._max_uncounted = max_uncounted
        self._only_topic = topic
        self._uncounted = 0
        self._local = ProcessLocal(self._handles)
        weakref.finalize(self, _destroy, self._local).atexit = False

    @property
    def client(self) -> int:
        """The address of librdkafka's handle.

        :raises RuntimeError: if the producer is closed, or another process created it.
        """
        handles = self._local.get()
        if handles is None:
            raise RuntimeError("the producer is closed, or belongs to another process")
        return handles.client

    def partitions(self, topic: str, timeout_s: float) -> int:
        """Return the number of partitions of a topic, from a broker, once their leaders serve them.

        :raises KafkaException: if there is no response, or it is an error.
        """
        deadline = Deadline.after(timeout_s)
        count, led = self._metadata(topic, timeout_s)
        if self._leaders is not None:
            self._leaders.wait(topic, led, deadline.remaining)
        return count

    def wait(self, seconds: float) -> None:
        """Handle librdkafka's events for so long at most.

        :raises AuthenticationError: if a broker refuses the login: it was changed.
        :raises TlsError: if a TLS handshake fails.
        """
        self._handle_events(round(seconds * 1_000))

    def notify(self, file: int) -> None:
        """Write a byte to a file when there are events."""
        notify(self._library, self._handles.main_queue, file)

    def take_delivered(self) -> list[tuple[int, int]]:
        """Return how many records of each output were delivered since the last call.

        They are known only with the setting ``delivery.report.only.error=false``.

        :raises PysparkKafkaError: if a record was not delivered.
        """
        self._check()
        if self._uncounted and not self._library.rd_kafka_outq_len(self._handles.client):
            self._uncounted = 0
        return self._reports.take_delivered()

    def send(self, rows: PartitionedRows, output: int = 0) -> None:
        """Queue records of an output, and block while the queue is full.

        :raises PysparkKafkaError: if one of these, or an earlier one, fails.
        """
        handles = np.array([self._topic(topic) for topic in rows.topics], np.uint64)
        topics = handles, rows.topic_ends
        columns = rows.columns.arrays
        bases = bases_of(columns)
        produce = produce_plain if rows.is_plain else produce_full
        at = 0
        self._check()
        if self._uncounted > self._max_uncounted:
            self.flush()
        self._uncounted += uncounted_bytes(columns, rows.rows)
        while True:
            at, code = produce(
                columns,
                bases,
                rows.rows,
                rows.partitions,
                at,
                topics,
                output,
                self._calls.arrays,
            )
            if code == 0:
                return
            if code != QUEUE_FULL:
                raise self._produce_error(rows, at, code)
            self._check(FULL_MS)

    def flush(self) -> None:
        """Wait until every record is acknowledged.

        :raises PysparkKafkaError: as soon as one fails.
        """
        # Records whose delivery is reported count until the report is taken.
        flush_ms, wait_ms = (0, FLUSH_MS) if self._reports_all else (FLUSH_MS, 0)
        while self._library.rd_kafka_flush(self._handles.client, flush_ms):
            self._check(wait_ms)
        self._check()
        self._uncounted = 0

    def failure(self) -> Exception | None:
        """Return the error of a record that was not delivered, if there is one.

        An idempotent producer that gets no id purges its records: the reason is a fatal error.
        """
        code, reason = self._fatal_error()
        if self._failed is not None and code not in REFUSED_RESOURCES:
            return delivery_error(self._connection, self._failed)
        if not code or (self._transactional_id and code not in REFUSED_RESOURCES):
            return None
        error = KafkaError(code, reason)
        return self._connection.error("a request for a producer id", error, *self._rights())

    def forget_failures(self) -> None:
        """Forget the records that were not delivered: their transaction was aborted."""
        self._handle_events(0)
        self._failed = None

    def fatal_code(self) -> int:
        """Return the code of the error after which the producer is unusable, 0 without one."""
        return self._fatal_error()[0]

    def close(self) -> None:
        """Drop what was not flushed, and destroy the handle; a second call does nothing."""
        _destroy(self._local)

    def _metadata(self, topic: str, timeout_s: float) -> tuple[int, Sequence[int]]:
        """Return a topic's number of partitions, and those that have a leader."""
        library = self._library
        response = ctypes.POINTER(Metadata)()
        deadline, wait_s = Deadline.after(timeout_s), _METADATA_S
        while error := library.rd_kafka_metadata(
            self._handles.client,
            0,
            self._topic(topic),
            ctypes.byref(response),
            round(min(wait_s, deadline.remaining) * 1_000),
        ):
            # It waits without a look at the events.
            self._handle_events(_PAUSE_MS)
            wait_s *= 2
            if error not in UNREACHABLE_ERRORS or deadline.has_passed:
                break
        if error:
            raise KafkaException(KafkaError(error))
        try:
            metadata = response.contents.topics[0]
            if metadata.err:
                raise KafkaException(KafkaError(metadata.err))
            count = int(metadata.partition_cnt)
            found = metadata.partitions[:count]
            return count, [each.id for each in found if each.leader >= 0]
        finally:
            library.rd_kafka_metadata_destroy(response)

    def _topic(self, name: str) -> int:
        topics = self._handles.topics
        if name not in topics:
            topic = self._library.rd_kafka_topic_new(self._handles.client, name.encode(), None)
            if not topic:
                raise KafkaException(KafkaError(self._library.rd_kafka_last_error()))
            topics[name] = topic
        return topics[name]

    def _check(self, wait_ms: int = 0) -> None:
        self._handle_events(wait_ms)
        failure = self.failure()
        if failure is not None:
            raise failure

    def _handle_events(self, wait_ms: int) -> None:
        """Handle all pending events, or wait for the next one."""
        library = self._library
        while event := library.rd_kafka_queue_poll(self._handles.main_queue, wait_ms):
            wait_ms = 0
            if handle_event(library, event, self._name, self._connection) == EVENT_DR:
                self._take_reports(event)
            library.rd_kafka_event_destroy(event)
        self._connection.raise_refusal()

    def _take_reports(self, event: int) -> None:
        for address in self._reports.take(event):
            record = self._undelivered(address)
            # Their transaction cannot be committed, which says more.
            if record.code not in PURGED_ERRORS:
                self._failed = to_report(self._failed, record)

    def _undelivered(self, address: int) -> Undelivered:
        library, message = self._library, Message.from_address(address)
        return Undelivered(
            topic=library.rd_kafka_topic_name(message.rkt).decode(),
            partition=message.partition,
            size=message.len + message.key_len + self._header_bytes(address),
            code=message.err,
            # rd_kafka_message_errstr would return the value of the failed record, and
            # rd_kafka_message_produce_errstr memory that is freed, if the broker sent a text.
            reason=KafkaError(message.err).str(),
        )

    def _header_bytes(self, address: int) -> int:
        library, headers = self._library, ctypes.c_void_p()
        if library.rd_kafka_message_headers(address, ctypes.byref(headers)):
            return 0
        name, value, size = ctypes.c_char_p(), ctypes.c_void_p(), ctypes.c_size_t()
        out = [ctypes.byref(each) for each in (name, value, size)]
        total = index = 0
        while not library.rd_kafka_header_get_all(headers, index, *out):
            total += len(name.value or b"") + size.value
            index += 1
        return total

    def _rights(self) -> Iterator[Right]:
        """Yield the rights to get a producer id."""
        if self._transactional_id:
            yield transactional_id_right(Operation.WRITE, self._transactional_id)
        topics = {self._only_topic} if self._only_topic else self._handles.topics.keys()
        for topic in sorted(topics):
            yield topic_right(Operation.WRITE, topic)
        yield IDEMPOTENT_WRITE

    def _fatal_error(self) -> tuple[int, str]:
        text = ctypes.create_string_buffer(ERROR_SIZE)
        code = self._library.rd_kafka_fatal_error(self._handles.client, text, ERROR_SIZE)
        return code, text.value.decode(errors="replace")

    def _produce_error(self, rows: PartitionedRows, place: int, code: int) -> Exception:
        failure = self.failure()
        if code == FATAL and failure is not None:
            return failure
        reason = KafkaError(code).str()
        if code == FATAL:
            reason = self._fatal_error()[1] or reason
        partition = int(rows.partitions[place])
        record = Undelivered(rows.topic(place), partition, rows.size(place), code, reason)
        return produce_error(self._connection, record)


def _destroy(local: ProcessLocal[_Handles]) -> None:
    handles = local.pop()
    if handles is not None:
        handles.close()
