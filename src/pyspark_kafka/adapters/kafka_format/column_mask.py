"""Which columns a kernel has to write: the rest is passed over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ...domain.projection import Projection

KEY: Final = 1
VALUE: Final = 2
HEADERS: Final = 4
TIMESTAMP: Final = 8

_COLUMNS: Final = {"key": KEY, "value": VALUE, "headers": HEADERS, "timestamp": TIMESTAMP}


def column_mask(projection: Projection) -> int:
    """Give the columns as bits."""
    return sum(bit for column, bit in _COLUMNS.items() if column in projection)
