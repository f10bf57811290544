"""Transactions by librdkafka's C API; its calls block, so each input partition has a thread."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from confluent_kafka import KafkaError, KafkaException

from ...domain.errors import KafkaRequestError, LeaderUnavailableError, PysparkKafkaError
from ...domain.security.rights import (
    IDEMPOTENT_WRITE,
    Operation,
    group_right,
    topic_right,
    transactional_id_right,
)
from ...domain.writing.errors import ProducerFencedError
from ...domain.writing.transaction_cycle import forgotten_error
from ...ports.clock import Deadline
from .error_codes import FENCED_ERRORS, FORGOTTEN_ID
from .librdkafka import partition_list

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from threading import Event

    from ...domain.security.rights import Right
    from ...domain.topic_partition import TopicPartition
    from .cluster import Cluster
    from .partitioned_rows import PartitionedRows
    from .producer_handle import ProducerHandle

REQUEST: Final = "a request of a transaction"

_ATTEMPT_MS: Final = 200
"""How long a call waits before events are handled; librdkafka then resumes the request."""

_PAUSE_S: Final = 0.05
"""How long to wait before metadata are requested again."""


class ProducerStoppedError(Exception):
    """Another thread stopped the producer while it waited."""


class _AbortableError(Exception):
    """The transaction has to be aborted; the next one may succeed."""


@final
@dataclass(frozen=True, slots=True)
class _Refusal:
    """librdkafka's error for one call."""

    error: KafkaError
    is_retriable: bool
    requires_abort: bool


@final
class TransactionalProducer:
    """Writes records and a group's offsets in transactions; used by one thread.

    ``fence`` comes first. It and ``write`` may raise:

    :raises ProducerFencedError: if another producer took over the transactional id.
    :raises TransactionLostError: if brokers do not know the transactional id any more.
    :raises BrokerUnreachableError: if the coordinator cannot be reached in time.
    :raises KafkaRequestError: if it refuses a request.
    :raises ProducerStoppedError: if ``stopped`` was set.
    """

    def __init__(
        self,
        producer: ProducerHandle,
        cluster: Cluster,
        *,
        group_id: str,
        transactional_id: str,
        stopped: Event,
    ) -> None:
        """Take a producer whose ``transactional.id`` is this one."""
        self._producer = producer
        self._library = cluster.library
        self._settings = cluster.settings
        self._errors = cluster.errors
        self._group_id = group_id.encode()
        self._transactional_id = transactional_id
        self._right = transactional_id_right(Operation.WRITE, transactional_id)
        self._stopped = stopped
        self._partitions: dict[str, int] = {}

    def fence(self) -> None:
        """Fence earlier producers with the same id, and end their transactions."""
        library, client = self._library, self._producer.client
        rights = (self._right, IDEMPOTENT_WRITE)
        self._complete(lambda ms: library.rd_kafka_init_transactions(client, ms), *rights)

    def write(
        self, parts: Sequence[PartitionedRows], partition: TopicPartition, next_offset: int
    ) -> None:
        """Commit records with the group's offset, if need be after transactions that fail.

        :raises PysparkKafkaError: if a record cannot be delivered.
        """
        with self._settings.one_deadline() as deadline:
            while True:
                try:
                    self._write(parts, partition, next_offset)
                except _AbortableError as error:
                    if deadline.has_passed:
                        raise KafkaRequestError(REQUEST, str(error)) from error
                    self._abort()
                else:
                    return

    def handle_events(self) -> None:
        """Handle log lines and errors of connections."""
        self._producer.wait(0)

    def close(self) -> None:
        """Destroy the producer; the next one with the same id aborts an open transaction."""
        self._producer.close()

    def _write(
        self, parts: Sequence[PartitionedRows], partition: TopicPartition, next_offset: int
    ) -> None:
        library, client = self._library, self._producer.client
        self._await_topics(parts)
        self._complete(lambda _: library.rd_kafka_begin_transaction(client))
        # The offset first: a coordinator refuses two requests for a transaction at once, and any
        # while the last one ends. librdkafka repeats this request after `retry.backoff.ms`, and
        # the one for partitions after 20 ms (rd_kafka_txn_handle_AddPartitionsToTxn).
        self._send_offset(partition, next_offset)
        for part in parts:
            self._send(part)
        rights = [
            topic_right(Operation.WRITE, topic)
            for topic in dict.fromkeys(topic for part in parts for topic in part.topics)
        ]
        self._complete(self._commit, self._right, *rights)
        self._producer.take_delivered()

    def _commit(self, wait_ms: int) -> int | None:
        """Commit the transaction, unless one of its records was not delivered."""
        failure = self._producer.failure()
        if failure is not None:
            raise self._fenced() or failure
        error: int | None = self._library.rd_kafka_commit_transaction(
            self._producer.client, wait_ms
        )
        return error

    def _abort(self) -> None:
        """Abort the transaction, and forget the failures of its records."""
        library, client = self._library, self._producer.client
        self._complete(lambda ms: library.rd_kafka_abort_transaction(client, ms))
        self._producer.forget_failures()

    def _send(self, rows: PartitionedRows) -> None:
        try:
            self._producer.send(rows)
        except PysparkKafkaError as error:
            raise self._fenced() or error from error

    def _await_topics(self, parts: Sequence[PartitionedRows]) -> None:
        """Wait for the metadata of all partitions.

        Otherwise librdkafka adds a partition -1 to the transaction, forever in vain.
        """
        for part in parts:
            start = 0
            for topic, end in zip(part.topics, part.topic_ends.tolist(), strict=True):
                self._await_partition(topic, max(0, int(part.partitions[start:end].max())))
                start = end

    def _await_partition(self, topic: str, partition: int) -> None:
        with self._settings.one_deadline() as deadline:
            while self._partitions.get(topic, 0) <= partition:
                try:
                    self._partitions[topic] = self._producer.partitions(topic, deadline.remaining)
                except KafkaException as error:
                    if deadline.has_passed:
                        raise self._errors.error(REQUEST, error.args[0]) from error
                if self._stopped.is_set():
                    raise ProducerStoppedError
                count = self._partitions.get(topic, 0)
                if count > partition:
                    return
                if deadline.remaining < _PAUSE_S:
                    reason = f"brokers know {count} partitions of '{topic}', and not {partition}"
                    raise LeaderUnavailableError(REQUEST, reason)
                self._producer.wait(_PAUSE_S)

    def _send_offset(self, partition: TopicPartition, offset: int) -> None:
        library, client = self._library, self._producer.client
        group = library.rd_kafka_consumer_group_metadata_new(self._group_id)
        try:
            with (
                partition_list(library, partition.topic, {partition.partition: offset}) as sent,
                self._settings.one_deadline() as deadline,
            ):
                # Unlike the others, this call is not resumed: another one sends a second request.
                # The first one's failure comes later, and where it meets no transaction, librdkafka
                # ends the process (rd_kafka_txn_set_abortable_error0, rd_kafka_txn_set_state).
                self._complete(
                    lambda _: library.rd_kafka_send_offsets_to_transaction(
                        client, sent, group, int(deadline.remaining * 1_000)
                    ),
                    self._right,
                    group_right(Operation.READ, self._group_id.decode()),
                    topic_right(Operation.READ, partition.topic),
                )
        finally:
            library.rd_kafka_consumer_group_metadata_destroy(group)

    def _complete(self, call: Callable[[int], int | None], *rights: Right) -> None:
        """Call a function until it has succeeded; after a time-out librdkafka may resume it.

        ``rights`` are all that it needs.
        """
        with self._settings.one_deadline() as deadline:
            while True:
                # A transaction does not end before the reports of its records are taken.
                is_reported = self._producer.is_reported
                error = call(_ATTEMPT_MS if is_reported else 0)
                if not error:
                    return
                refusal = self._take(error)
                self._producer.wait(0 if is_reported else _ATTEMPT_MS / 1_000)
                if self._stopped.is_set():
                    raise ProducerStoppedError
                if not refusal.is_retriable or deadline.has_passed:
                    raise self._failure(refusal, rights)

    def _take(self, error: int) -> _Refusal:
        library = self._library
        text = library.rd_kafka_error_string(error).decode(errors="replace")
        refusal = _Refusal(
            KafkaError(library.rd_kafka_error_code(error), text),
            bool(library.rd_kafka_error_is_retriable(error)),
            bool(library.rd_kafka_error_txn_requires_abort(error)),
        )
        library.rd_kafka_error_destroy(error)
        return refusal

    def _failure(self, refusal: _Refusal, rights: Sequence[Right]) -> Exception:
        if refusal.error.code() in FENCED_ERRORS:
            return ProducerFencedError(self._transactional_id)
        if refusal.error.code() == FORGOTTEN_ID:
            # librdkafka aborts the transaction to raise the epoch, and still gets the same error.
            return forgotten_error(self._transactional_id)
        missing = self._errors.authorization_error(REQUEST, refusal.error.code(), rights)
        found = self._fenced() or self._producer.failure() or missing
        if found is not None:
            return found
        if refusal.requires_abort:
            return _AbortableError(refusal.error.str())
        return self._errors.error(REQUEST, refusal.error)

    def _fenced(self) -> ProducerFencedError | None:
        """Return the error of a producer that was fenced, whichever call failed for it."""
        is_fenced = self._producer.fatal_code() in FENCED_ERRORS
        return ProducerFencedError(self._transactional_id) if is_fenced else None


_IDLE_S: Final = 1.0
"""How often an idle producer's events are handled."""

_LOOK_S: Final = 0.2
"""How often a wait looks whether a transaction takes too long."""


@final
@dataclass(frozen=True, slots=True)
class PendingOutputs:
    """What was made of the records before ``next_offset``; ``size`` is in bytes."""

    parts: Sequence[PartitionedRows]
    next_offset: int
    size: int


@final
class PartitionTransactions:
    """Writes the outputs of one input partition; all that come while a transaction ends are next.

    Every method but ``finish`` and ``close`` raises the error that ended the thread.
    """

    def __init__(
        self,
        partition: TopicPartition,
        create: Callable[[threading.Event], TransactionalProducer],
        wake: Callable[[], None],
        max_bytes: int,
        timeout_s: float,
        overdue: Callable[[], Exception],
    ) -> None:
        """Start to fence earlier producers; ``wake`` is called after each commit.

        A transaction may take ``timeout_s`` in all; ``overdue`` returns the error of one that takes
        longer.
        """
        self._partition = partition
        self._wake = wake
        self._max_bytes = max_bytes
        self._timeout_s = timeout_s
        self._overdue = overdue
        self._deadline = Deadline.after(None)
        self._changed = threading.Condition()
        self._stopped = threading.Event()
        self._pending: list[PendingOutputs] = []
        self._pending_bytes = 0
        self._committed: int | None = None
        self._failure: BaseException | None = None
        self._is_fenced = self._is_writing = self._is_finishing = self._has_ended = False
        self._thread = threading.Thread(
            target=self._run, args=(create,), name=f"transactions of {partition}", daemon=True
        )
        self._thread.start()

    @property
    def is_settled(self) -> bool:
        """Whether all outputs are committed, and their offset was taken."""
        with self._changed:
            return not (self._pending or self._is_writing or self._committed is not None)

    @property
    def is_over(self) -> bool:
        """Whether the thread has ended, and there is nothing to take or to raise."""
        with self._changed:
            return self._has_ended and self._committed is None and self._failure is None

    def await_fenced(self) -> None:
        """Wait until earlier producers are fenced."""
        self._wait(lambda: self._is_fenced)

    def add(self, outputs: PendingOutputs) -> None:
        """Write outputs with the next transaction; wait while too many bytes are pending."""
        self._wait(lambda: not self._has_ended and self._pending_bytes < self._max_bytes)
        with self._changed:
            self._pending.append(outputs)
            self._pending_bytes += outputs.size
            self._changed.notify_all()

    def commit(self, next_offset: int) -> None:
        """Commit an offset of the input, without outputs."""
        self.add(PendingOutputs([], next_offset, 0))

    def take_committed(self) -> int | None:
        """Return the offset that was committed since the last call, if any."""
        with self._changed:
            self._raise_failure()
            committed, self._committed = self._committed, None
            return committed

    def finish(self) -> None:
        """End the thread once all outputs are committed; do not wait for it."""
        with self._changed:
            self._is_finishing = True
            self._changed.notify_all()

    def await_end(self) -> None:
        """Wait until all outputs are committed, and the thread has ended."""
        self.finish()
        self._wait(lambda: self._has_ended)

    def close(self) -> None:
        """End the thread after its current call; what is not committed may be or not."""
        self._stopped.set()
        self.finish()

    def join(self, timeout_s: float) -> None:
        """Wait for the end of the thread."""
        self._thread.join(timeout_s)

    def _wait(self, condition: Callable[[], bool]) -> None:
        with self._changed:
            while True:
                self._raise_failure()
                if condition():
                    return
                if self._has_ended:
                    raise ProducerStoppedError
                self._changed.wait(_LOOK_S)

    def _raise_failure(self) -> None:
        """Raise the error that ended the thread, or the one of a transaction that takes too long.

        While a coordinator is down, ``rd_kafka_send_offsets_to_transaction`` can wait for longer
        than its time-out: minutes with librdkafka 2.16.
        """
        if self._failure is not None:
            raise self._failure
        if self._is_writing and self._deadline.has_passed:
            raise self._overdue()

    def _run(self, create: Callable[[threading.Event], TransactionalProducer]) -> None:
        try:
            producer = create(self._stopped)
            try:
                self._write_all(producer)
            finally:
                producer.close()
        except ProducerStoppedError:
            return
        except BaseException as error:  # noqa: BLE001  # the thread that polls raises it
            with self._changed:
                self._failure = error
                self._changed.notify_all()
            self._wake()
        finally:
            with self._changed:
                self._has_ended = True
                self._changed.notify_all()

    def _write_all(self, producer: TransactionalProducer) -> None:
        producer.fence()
        with self._changed:
            self._is_fenced = True
            self._changed.notify_all()
        while pending := self._take_pending(producer):
            parts = [part for outputs in pending for part in outputs.parts]
            next_offset = pending[-1].next_offset
            producer.write(parts, self._partition, next_offset)
            with self._changed:
                self._committed = next_offset
                self._is_writing = False
            self._wake()

    def _take_pending(self, producer: TransactionalProducer) -> list[PendingOutputs]:
        """Wait for outputs; return none at the end."""
        with self._changed:
            while not (self._pending or self._is_finishing):
                if not self._changed.wait(_IDLE_S):
                    producer.handle_events()
            if self._stopped.is_set():
                return []
            pending, self._pending = self._pending, []
            self._pending_bytes = 0
            self._is_writing = bool(pending)
            self._deadline = Deadline.after(self._timeout_s)
            self._changed.notify_all()
            return pending
