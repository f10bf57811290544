"""What brokers have acknowledged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final


@final
@dataclass(frozen=True, slots=True)
class DeliveryStats:
    """A number of records, and the bytes of their keys, values and headers."""

    records: int = 0
    bytes: int = 0

    def __add__(self, other: DeliveryStats) -> DeliveryStats:
        return DeliveryStats(self.records + other.records, self.bytes + other.bytes)


NOTHING: Final = DeliveryStats()
