"""A sink's transactions and their ids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True, slots=True)
class Transaction:
    """An open transaction; a process that has all three values can write to it and end it.

    A later ``epoch`` of the same ``transactional_id`` fences it.
    """

    transactional_id: str
    producer_id: int
    epoch: int


@final
@dataclass(frozen=True, slots=True)
class SinkTaskId:
    """One attempt of one task of a micro-batch."""

    query_id: str
    batch_id: int
    partition: int
    attempt: int

    def transactional_id(self, prefix: str) -> str:
        """Return the transactional id of the attempt.

        The same attempt of the next batch has the same id, and fences this one. Attempts have
        different ids: a speculative attempt must not fence the one that wins.
        """
        return f"{query_id_prefix(prefix, self.query_id)}{self.partition}-{self.attempt}"


def query_id_prefix(prefix: str, query_id: str) -> str:
    """Return what all transactional ids of a query start with."""
    return f"{prefix}-{query_id}-"
