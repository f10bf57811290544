"""Kafka's transactions, as far as one process tells another of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True, slots=True)
class Transaction:
    """An open transaction: whoever holds all three of these may write to it, and end it.

    A later ``epoch`` of the same ``transactional_id`` shuts it out (fences it).
    """

    transactional_id: str
    producer_id: int
    epoch: int
