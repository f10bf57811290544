"""Transactions that one process begins and another one ends."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from ...domain.writing.transaction import Transaction, TransactionDescription


class Transactions(ABC):
    """Begins, describes and ends transactions; a ``RecordWriter`` writes to them.

    Every method may raise:

    :raises BrokerUnreachableError: if no broker answers in time.
    :raises AuthenticationError: if a login is refused; it is not tried again.
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
    def open_ids(self, prefix: str) -> Sequence[str]:
        """Return the transactional ids with a prefix that have an open transaction with records.

        :raises UnsupportedFeatureError: if a broker is older than Kafka 3.0 (KIP-664).
        """

    @abstractmethod
    def commit(self, transaction: Transaction) -> None:
        """Commit a transaction. Idempotent.

        Kafka before 3.0 cannot describe transactions: there, one without records is lost.

        :raises TransactionLostError: if it was aborted, by its time-out or by a later ``begin``;
            with ``may_be_committed`` if brokers do not know its transactional id any more.
        """

    @abstractmethod
    def abort(self, transaction: Transaction) -> None:
        """Abort a transaction, unless it is committed already. Idempotent."""

    @abstractmethod
    def close(self) -> None:
        """Close connections. Open transactions stay open."""
