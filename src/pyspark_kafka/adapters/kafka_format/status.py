"""Why a kernel returned."""

from __future__ import annotations

from typing import Final

from ...domain.reading.record_limits import (
    MAX_RECORD_BYTES,
    MAX_RECORD_HEADER_BYTES,
    MAX_RECORD_HEADERS,
)

DONE: Final = 0
"""All blocks are read, or the range is complete."""

ROWS_FULL: Final = 1
KEYS_FULL: Final = 2
VALUES_FULL: Final = 3
HEADERS_FULL: Final = 4
HEADER_KEYS_FULL: Final = 5
HEADER_VALUES_FULL: Final = 6
FULL: Final = range(ROWS_FULL, HEADER_VALUES_FULL + 1)
"""A column has no room for the next record."""

NEEDS_INPUT: Final = 7
"""The next record extends past the end of an open block."""

BAD_TIMESTAMP: Final = 8
"""A record's timestamp does not fit Spark's microseconds."""

TRUNCATED: Final = 9
BAD_VARINT: Final = 10
BAD_LENGTH: Final = 11
BAD_OFFSET: Final = 12
TRAILING_BYTES: Final = 13
BAD_CHECKSUM: Final = 14
BAD_SIZE: Final = 15
BAD_MAGIC: Final = 16

RECORD_TOO_LARGE: Final = 17
TOO_MANY_HEADERS: Final = 18
HEADERS_TOO_LARGE: Final = 19
OVERSIZED: Final = {
    RECORD_TOO_LARGE: MAX_RECORD_BYTES,
    TOO_MANY_HEADERS: MAX_RECORD_HEADERS,
    HEADERS_TOO_LARGE: MAX_RECORD_HEADER_BYTES,
}
"""A record exceeds the limit of an option. The cursor is after it, perhaps past its block."""

REASONS: Final = {
    TRUNCATED: "a record extends past its end",
    BAD_VARINT: "a varint has more bytes than its type",
    BAD_LENGTH: "a length does not fit its record",
    BAD_OFFSET: "the offsets of its records do not ascend",
    TRAILING_BYTES: "there are bytes after its last record",
    BAD_CHECKSUM: "its checksum does not match",
    BAD_SIZE: "its size is too small for a batch",
    BAD_MAGIC: "its magic number is unknown",
}
"""The fault of a batch, for error messages."""

MAX_MILLISECONDS: Final = (2**63 - 1) // 1_000
"""The last millisecond that fits Spark's microseconds."""
