"""What brokers have acknowledged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final


@final
@dataclass(frozen=True, slots=True)
class Delivered:
    """A number of records, and the bytes of their keys, values and headers."""

    records: int = 0
    bytes: int = 0

    def __add__(self, other: Delivered) -> Delivered:
        return Delivered(self.records + other.records, self.bytes + other.bytes)


NOTHING: Final = Delivered()
