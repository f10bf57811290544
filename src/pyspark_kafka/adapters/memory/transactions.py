"""Transactions of a cluster in memory."""

from __future__ import annotations

from typing import final

from ...domain.transaction import Transaction
from ...ports.transactions import Transactions
from .cluster import MemoryCluster


@final
class MemoryTransactions(Transactions):
    """Begins and ends transactions of a ``MemoryCluster``, which never time out."""

    def __init__(self, cluster: MemoryCluster) -> None:
        self._cluster = cluster

    def begin(self, transactional_id: str) -> Transaction:
        return self._cluster.open_transaction(transactional_id)

    def commit(self, transaction: Transaction) -> None:
        self._cluster.close_transaction(transaction, commit=True)

    def abort(self, transaction: Transaction) -> None:
        self._cluster.close_transaction(transaction, commit=False)

    def abort_abandoned(self, prefix: str) -> None:
        for transactional_id in self._cluster.open_transactions(prefix):
            self.abort(self.begin(transactional_id))

    def close(self) -> None:
        """Do nothing: the cluster belongs to the caller."""
