"""What a task that writes is called, and what it has to tell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from .delivered import NOTHING, DeliveryStats

if TYPE_CHECKING:
    from .transaction import Transaction


@final
@dataclass(frozen=True, slots=True)
class SinkTaskId:
    """One attempt of one task of a micro-batch."""

    query_id: str
    batch_id: int
    partition: int
    attempt: int

    def transactional_id(self, prefix: str) -> str:
        """Give the id of the attempt's transaction.

        It is that of the same attempt of the next batch, which shuts this one out. Attempts have
        ids of their own: a speculative one must not shut out the one that wins.
        """
        return f"{query_transactions(prefix, self.query_id)}{self.partition}-{self.attempt}"


def query_transactions(prefix: str, query_id: str) -> str:
    """Give what all ids of a query's transactions begin with."""
    return f"{prefix}-{query_id}-"


@final
@dataclass(frozen=True, slots=True)
class WriteResult:
    """What a task has written; ``transaction`` is the one that is left open, if there is one."""

    delivered: DeliveryStats = NOTHING
    transaction: Transaction | None = None
