"""The ports of writing: a client's writer of Arrow record batches, and its transactions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import nullcontext
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from contextlib import AbstractContextManager

    import pyarrow as pa

    from ..domain.topic_partition import TopicPartition
    from ..domain.writing.group_seal import GroupOffset
    from ..domain.writing.transaction import (
        DeliveryStats,
        Transaction,
        TransactionDescription,
        TransactionState,
    )


class RecordWriter(ABC):
    """Writes records and waits for their acknowledgement.

    After an error of ``write`` or ``flush`` it must be closed. Every method may raise:

    :raises RecordDeliveryError: for the first record that could not be delivered.
    :raises UnknownTopicError: if a record's topic does not exist.
    :raises BrokerUnreachableError: if no broker answers in time.
    :raises AuthenticationError: if a login is refused; the login is not retried.
    :raises TlsError: if a TLS handshake fails.
    :raises AuthorizationError: if the user may not write.
    :raises ProducerFencedError: if another producer took over the transactional id.
    """

    @abstractmethod
    def join_transaction(self, transaction: Transaction) -> None:
        """Write to a transaction from now on, until the next ``flush``.

        :raises UnsupportedFeatureError: if the client cannot join another process's transaction.
        """

    @abstractmethod
    def write(self, batch: pa.RecordBatch, topic: str | None = None) -> None:
        """Send the records of a batch.

        The batch may have the columns ``key``, ``value``, ``topic``, ``partition``, ``headers``
        and ``timestamp``; the argument ``topic`` takes precedence over the column. Without a
        partition, the key decides as in Kafka's Java client, and without a key a partition that
        changes after a time. Without a timestamp, a record gets the current time. Records of one
        partition keep their order. Blocks while buffers are full, and may return before
        acknowledgement.

        :raises NullTopicError: if a record has no topic.
        :raises InvalidRecordError: if a row cannot become a record.
        """

    @abstractmethod
    def flush(self) -> DeliveryStats:
        """Wait until all records are acknowledged; return those since the last call."""

    @abstractmethod
    def close(self) -> None:
        """Close connections and stop threads; records that were not flushed may be lost.

        A joined transaction stays open. A second call does nothing.
        """


class Transactions(ABC):
    """Begins, describes and ends transactions; a ``RecordWriter`` writes to them.

    Every method may raise:

    :raises BrokerUnreachableError: if no broker answers in time.
    :raises AuthenticationError: if a login is refused; the login is not retried.
    :raises TlsError: if a TLS handshake fails.
    :raises AuthorizationError: if the user may not use the transactional id.
    :raises KafkaRequestError: if a broker refuses the request for another reason.
    """

    @abstractmethod
    def begin(self, transactional_id: str) -> Transaction:
        """Begin a transaction; an open one with the same id is aborted and fenced.

        :raises OptionsError: if the brokers do not allow its time-out.
        """

    @abstractmethod
    def describe(self, transactional_ids: Collection[str]) -> Mapping[str, TransactionDescription]:
        """Return what the coordinators know of transactional ids; unknown ids are missing.

        :raises UnsupportedFeatureError: if a broker is older than Kafka 3.0 (KIP-664).
        """

    @abstractmethod
    def find(self, prefix: str, state: TransactionState) -> Mapping[str, TransactionDescription]:
        """Describe the transactional ids with a prefix that are in a state.

        :raises UnsupportedFeatureError: if a broker is older than Kafka 3.0 (KIP-664).
        """

    @abstractmethod
    def commit(self, transaction: Transaction) -> None:
        """Commit a transaction. Idempotent.

        Kafka before 3.0 cannot describe transactions: there, one without records is lost.

        :raises TransactionLostError: if it was aborted, by its time-out or by a later ``begin``;
            with ``may_be_committed`` if brokers no longer know its transactional id.
        """

    @abstractmethod
    def abort(self, transaction: Transaction) -> None:
        """Abort a transaction, unless it is committed already. Idempotent."""

    @abstractmethod
    def committed(
        self, group_id: str, partitions: Collection[TopicPartition], *, is_stable: bool = True
    ) -> Mapping[TopicPartition, GroupOffset]:
        """Return a group's offsets, once no open transaction is about to change them.

        Partitions without an offset are missing. Without ``is_stable``, nothing is waited for, and
        the offsets are those that open transactions have not changed yet.
        """

    @abstractmethod
    def commit_offset(
        self,
        transaction: Transaction,
        group_id: str,
        partition: TopicPartition,
        offset: GroupOffset,
    ) -> None:
        """Commit a transaction without records, together with an offset of a group.

        :raises ProducerFencedError: if it was aborted, by its time-out or by a later ``begin``.
        """

    def one_deadline(self) -> AbstractContextManager[object]:
        """Give the calls of a block together the time that one call may take."""
        return nullcontext()

    @abstractmethod
    def close(self) -> None:
        """Close connections. Open transactions stay open."""
