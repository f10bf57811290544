"""The fields of a cursor: where a kernel stands, in an array of ``int64`` between its calls."""

from __future__ import annotations

from typing import Final

SECTION: Final = 0
"""The section that is being read."""

RECORD: Final = 1
"""How many of its records have been read."""

POSITION: Final = 2
"""The byte at which the next one begins."""

OFFSET: Final = 3
"""The offset of the last record that was looked at; they ascend from batch to batch."""

TIMESTAMP: Final = 4
"""The milliseconds that do not fit, after ``BAD_TIMESTAMP``."""

ROWS: Final = 5
KEY_BYTES: Final = 6
VALUE_BYTES: Final = 7
HEADERS: Final = 8
HEADER_KEY_BYTES: Final = 9
HEADER_VALUE_BYTES: Final = 10
"""How much of the columns is filled."""

FIELDS: Final = 11
