"""The fields of a cursor: a kernel's position between its calls, in an array of ``int64``."""

from __future__ import annotations

from typing import Final

BLOCK: Final = 0
"""The index of the current block."""

RECORD: Final = 1
"""The number of its records that have been read."""

POSITION: Final = 2
"""The byte at which the next record begins."""

OFFSET: Final = 3
"""The offset of the last record that was read; offsets ascend from batch to batch."""

TIMESTAMP: Final = 4
"""The timestamp out of range, in ms, after ``BAD_TIMESTAMP``."""

SIZE: Final = 5
"""The size or number that exceeds a limit, after one of ``OVERSIZED``."""

ROWS: Final = 6
KEY_BYTES: Final = 7
VALUE_BYTES: Final = 8
HEADERS: Final = 9
HEADER_KEY_BYTES: Final = 10
HEADER_VALUE_BYTES: Final = 11
"""How much of each column is filled."""

FIELD_COUNT: Final = 12
