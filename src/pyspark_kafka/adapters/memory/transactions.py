"""Transactions of a cluster in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from ...ports.writing import Transactions
from .cluster import TRANSACTION_TIMEOUT_MS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from ...domain.writing.transaction import Transaction, TransactionDescription
    from .cluster import MemoryCluster


@final
class MemoryTransactions(Transactions):
    """Begins, describes and ends transactions of a ``MemoryCluster``."""

    def __init__(self, cluster: MemoryCluster, timeout_ms: int = TRANSACTION_TIMEOUT_MS) -> None:
        self._cluster = cluster
        self._timeout_ms = timeout_ms

    def begin(self, transactional_id: str) -> Transaction:
        return self._cluster.open_transaction(transactional_id, self._timeout_ms)

    def describe(self, transactional_ids: Collection[str]) -> Mapping[str, TransactionDescription]:
        found = {name: self._cluster.describe_transaction(name) for name in transactional_ids}
        return {name: described for name, described in found.items() if described is not None}

    def open_ids(self, prefix: str) -> Sequence[str]:
        return self._cluster.open_transactions(prefix)

    def commit(self, transaction: Transaction) -> None:
        self._cluster.close_transaction(transaction, commit=True)

    def abort(self, transaction: Transaction) -> None:
        self._cluster.close_transaction(transaction, commit=False)

    def close(self) -> None:
        """Do nothing: the cluster belongs to the caller."""
