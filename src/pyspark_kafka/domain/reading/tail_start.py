"""Where to begin to read a partition, within the offsets that its leader holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True, slots=True)
class AtOffset:
    """An offset for every partition; a negative one counts from the end."""

    offset: int

    def within(self, earliest: int, latest: int) -> int:
        """Return the offset to begin at: the nearest one that the leader holds."""
        wanted = latest + self.offset if self.offset < 0 else self.offset
        return min(max(wanted, earliest), latest)
