"""What a task has written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

if TYPE_CHECKING:
    from .transaction import Transaction


@final
@dataclass(frozen=True, slots=True)
class DeliveryStats:
    """The number of acknowledged records, and the bytes of their keys, values and headers."""

    records: int = 0
    bytes: int = 0

    def __add__(self, other: DeliveryStats) -> DeliveryStats:
        return DeliveryStats(self.records + other.records, self.bytes + other.bytes)


NOTHING: Final = DeliveryStats()


@final
@dataclass(frozen=True, slots=True)
class WriteResult:
    """What a task has written; ``transaction`` is still open, and ``None`` without one."""

    delivered: DeliveryStats = NOTHING
    transaction: Transaction | None = None
