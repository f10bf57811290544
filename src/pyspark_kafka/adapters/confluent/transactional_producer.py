"""librdkafka's transactions, by its C API."""

from __future__ import annotations

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
from .error_codes import FENCED_ERRORS, FORGOTTEN_ID

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from threading import Event

    from ...domain.security.rights import Right
    from ...domain.topic_partition import TopicPartition
    from .connection import Connection
    from .partitioned_rows import PartitionedRows
    from .simple_producer import SimpleProducer

REQUEST: Final = "a request of a transaction"

_ATTEMPT_MS: Final = 200
"""How long a call waits before events are handled; librdkafka then resumes the request.

A transaction does not end before the failures of its records are taken."""

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
        producer: SimpleProducer,
        connection: Connection,
        *,
        group_id: str,
        transactional_id: str,
        stopped: Event,
    ) -> None:
        """Take a producer whose ``transactional.id`` is this one."""
        self._producer = producer
        self._library = producer.library
        self._connection = connection
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
        with self._connection.one_deadline() as deadline:
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
        self._complete(
            lambda ms: library.rd_kafka_commit_transaction(client, ms), self._right, *rights
        )

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
        with self._connection.one_deadline() as deadline:
            while self._partitions.get(topic, 0) <= partition:
                try:
                    self._partitions[topic] = self._producer.partitions(topic, deadline.remaining)
                except KafkaException as error:
                    if deadline.has_passed:
                        raise self._connection.error(REQUEST, error.args[0]) from error
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
        library, client, topic = self._library, self._producer.client, partition.topic.encode()
        offsets = library.rd_kafka_topic_partition_list_new(1)
        group = library.rd_kafka_consumer_group_metadata_new(self._group_id)
        here = offsets, topic, partition.partition
        library.rd_kafka_topic_partition_list_add(*here)
        library.rd_kafka_topic_partition_list_set_offset(*here, offset)
        try:
            self._complete(
                lambda ms: library.rd_kafka_send_offsets_to_transaction(client, offsets, group, ms),
                self._right,
                group_right(Operation.READ, self._group_id.decode()),
                topic_right(Operation.READ, partition.topic),
            )
        finally:
            library.rd_kafka_consumer_group_metadata_destroy(group)
            library.rd_kafka_topic_partition_list_destroy(offsets)

    def _complete(self, call: Callable[[int], int | None], *rights: Right) -> None:
        """Call a function until it has succeeded; after a time-out librdkafka resumes it.

        ``rights`` are all that it needs.
        """
        with self._connection.one_deadline() as deadline:
            while error := call(_ATTEMPT_MS):
                refusal = self._take(error)
                self.handle_events()
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
        missing = self._connection.authorization_error(REQUEST, refusal.error.code(), rights)
        found = self._fenced() or self._producer.failure() or missing
        if found is not None:
            return found
        if refusal.requires_abort:
            return _AbortableError(refusal.error.str())
        return self._connection.error(REQUEST, refusal.error)

    def _fenced(self) -> ProducerFencedError | None:
        """Return the error of a producer that was fenced, whichever call failed for it."""
        is_fenced = self._producer.fatal_code() in FENCED_ERRORS
        return ProducerFencedError(self._transactional_id) if is_fenced else None
