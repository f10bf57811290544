"""The kinds of arguments that several kernels have."""

from __future__ import annotations

from typing import Final

ROWS: Final = "const int64[]"

LIMITS: Final = ("int64", "int64", "int64")
"""``RecordLimits.numbers``."""

_ROOM: Final = ("int32[]", "uint8[]", "uint8[]")
BUFFERS: Final = (
    "int64[]",
    "int64[]",
    "int32[]",
    _ROOM,
    _ROOM,
    ("int32[]", "uint8[]", _ROOM, _ROOM),
)
"""``ColumnBuffers.arrays``."""

FIELD: Final = ("const int32[]", "const uint8[]", "const uint8[]")
"""Offsets, data and validity of a column that is written."""

COLUMNS: Final = (ROWS, FIELD, FIELD, ("const int32[]", "const uint8[]", FIELD, FIELD))
"""``producer_columns.kernel_columns``."""

WIDE_FIELD: Final = ("const int64[]", "const uint8[]", "const uint8[]")
_WIDE_HEADERS: Final = ("const int64[]", "const uint8[]", WIDE_FIELD, WIDE_FIELD)
WIDE_COLUMNS: Final = (ROWS, WIDE_FIELD, WIDE_FIELD, _WIDE_HEADERS)
"""The same with offsets of 64 bits, if any column of a batch needs them."""
