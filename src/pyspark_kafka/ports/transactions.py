"""The need to begin a transaction in one process and to end it in another."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..domain.transaction import Transaction


class Transactions(ABC):
    """Begins and ends transactions, whoever writes to them.

    Every call may raise:

    :raises BrokerUnreachableError: if no broker answers in time.
    :raises KafkaRequestError: if the cluster refuses, for want of a right, say.
    """

    @abstractmethod
    def begin(self, transactional_id: str) -> Transaction:
        """Open a transaction; one that is open under the same id is aborted and shut out."""

    @abstractmethod
    def commit(self, transaction: Transaction) -> None:
        """Make its records visible. Repeating it changes nothing.

        :raises TransactionLostError: if it was aborted, by its timeout or by a later ``begin``.
        """

    @abstractmethod
    def abort(self, transaction: Transaction) -> None:
        """Make sure that its records are never visible, unless they are already."""

    @abstractmethod
    def abort_abandoned(self, prefix: str) -> None:
        """Abort every open transaction whose id begins so, and shut its writer out.

        A cluster that cannot list transactions (Kafka before 3.0) lets them time out.
        """

    @abstractmethod
    def close(self) -> None:
        """Give back connections. Open transactions stay as they are."""
