"""What a world produces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True, slots=True)
class Record:
    """A record to produce; ``timestamp`` in milliseconds since the epoch."""

    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp: int = 1_700_000_000_000


def numbered(start: int, end: int) -> list[Record]:
    """Give records with the values ``v<start>`` to ``v<end - 1>``."""
    return [Record(b"v%d" % number) for number in range(start, end)]
