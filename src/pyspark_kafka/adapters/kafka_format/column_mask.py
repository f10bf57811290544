"""The bits that select the columns for a kernel to write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ...domain.reading.records import Projection

KEY: Final = 1
VALUE: Final = 2
HEADERS: Final = 4
TIMESTAMP: Final = 8

_BITS: Final = {"key": KEY, "value": VALUE, "headers": HEADERS, "timestamp": TIMESTAMP}


def column_mask(projection: Projection) -> int:
    """Return a projection's columns as bits."""
    return sum(bit for column, bit in _BITS.items() if column in projection)
