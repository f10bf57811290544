"""Columns to the records of format 2, in one pass of machine code.

The format: https://kafka.apache.org/documentation/#record. Records are measured before they are
written: the caller allocates what ``measure_records`` returns. A kernel refuses rows that the
columns do not have, and more rows than they have: offset deltas would have more bytes than were
measured.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ..kernels.kernel import kernel
from ..kernels.kinds import COLUMNS, ROWS, WIDE_COLUMNS
from ..kernels.memory import copy_bytes, leading_zeros
from ..kernels.parts import inlined
from .bounded_reads import MAX_VARINT64_BYTES

NO_ROW: Final = -1
"""Returned for a row that does not exist, and where no row was found."""

NO_ROOM: Final = -2
"""Returned if the output may be too small for the next record."""

UPPER_BOUND_OVERHEAD: Final = 82
"""The bytes that Java's producer adds to a record's fields when it measures the record: 61 bytes
for a batch with this record alone (``RECORD_BATCH_OVERHEAD``), and 21 for the record
(``MAX_RECORD_OVERHEAD``).
"""


@inlined
def varint_size(number: Any) -> Any:
    """Return the bytes of a zigzag varint."""
    rest = np.uint64((number << 1) ^ (number >> 63))
    return (9 * (64 - leading_zeros(rest | np.uint64(1))) + 64) >> 6


@inlined
def _put_varint(target: Any, at: Any, number: Any) -> Any:
    """Write a zigzag varint, and return the position after it."""
    rest = np.uint64((number << 1) ^ (number >> 63))
    while rest >= np.uint64(0x80):
        target[np.uint64(at)] = np.uint8((rest & np.uint64(0x7F)) | np.uint64(0x80))
        rest >>= np.uint64(7)
        at += 1
    target[np.uint64(at)] = np.uint8(rest)
    return at + 1


@inlined
def value_span(column: Any, row: Any) -> Any:
    """Return where a value starts, and its length: -1 for null."""
    offsets, _, validity = column
    start = np.int64(offsets[np.uint64(row)])
    if validity[np.uint64(row)] == 0:
        return start, np.int64(-1)
    return start, np.int64(offsets[np.uint64(row + 1)]) - start


@inlined
def value_length(column: Any, row: Any) -> Any:
    """Return the length of a value, 0 for null."""
    _, length = value_span(column, row)
    return max(length, 0)


@inlined
def _field_size(column: Any, row: Any) -> Any:
    """Return the bytes of a value and of the length before it."""
    _, length = value_span(column, row)
    return varint_size(length) + max(length, 0)


@inlined
def _put_field(target: Any, at: Any, column: Any, row: Any) -> Any:
    """Write a value after its length, and return the position after it."""
    start, length = value_span(column, row)
    at = _put_varint(target, at, length)
    copy_bytes(target, at, column[1], start, max(length, 0))
    return at + max(length, 0)


@inlined
def header_range(headers: Any, row: Any) -> Any:
    """Return the first header of a row, and the one after its last."""
    offsets, validity, _, _ = headers
    first = np.int64(offsets[np.uint64(row)])
    if validity[np.uint64(row)] == 0:
        return first, first
    return first, np.int64(offsets[np.uint64(row + 1)])


@inlined
def _headers_size(headers: Any, first: Any, end: Any) -> Any:
    """Return the bytes of a row's headers and of the count before them."""
    size = varint_size(end - first)
    for entry in range(first, end):
        size += _field_size(headers[2], entry) + _field_size(headers[3], entry)
    return size


@inlined
def headers_payload(headers: Any, row: Any) -> Any:
    """Return the bytes of the keys and values of a row's headers."""
    size = np.int64(0)
    first, end = header_range(headers, row)
    for entry in range(first, end):
        size += value_length(headers[2], entry) + value_length(headers[3], entry)
    return size


@inlined
def _max_delta_size(timestamps: Any) -> Any:
    """Return the bytes of the largest difference of two timestamps."""
    lowest, highest = timestamps[0], timestamps[0]
    for timestamp in timestamps:
        lowest = min(lowest, timestamp)
        highest = max(highest, timestamp)
    delta: Any = np.int64(np.uint64(highest) - np.uint64(lowest))
    # A difference that does not fit a long overflows, as in Java, to any number.
    return varint_size(delta) if delta >= 0 else MAX_VARINT64_BYTES


_GROUPS: Final = (ROWS, ROWS, ROWS, "int64[]", "int64[]")
_ENCODING: Final = (ROWS, ROWS, "uint8[]", "int64")


@kernel(COLUMNS, "int64[]", wide=(WIDE_COLUMNS, "int64[]"))
def measure_records(columns: Any, sizes: Any) -> int:
    """Write an upper bound of each record's bytes.

    Return the first row with a header without a key, ``NO_ROW`` if all headers have keys.
    """
    timestamps, keys, values, headers = columns
    if len(sizes) == 0:
        return NO_ROW
    overhead = 1 + _max_delta_size(timestamps) + varint_size(len(sizes))
    for row in range(len(sizes)):
        first, end = header_range(headers, row)
        for entry in range(first, end):
            if headers[2][2][entry] == 0:
                return row
        size = overhead + _field_size(keys, row) + _field_size(values, row)
        size += _headers_size(headers, first, end)
        sizes[row] = size + varint_size(size)
    return NO_ROW


@kernel(
    COLUMNS,
    ROWS,
    ROWS,
    ROWS,
    "int64[]",
    "int64[]",
    wide=(WIDE_COLUMNS, ROWS, ROWS, ROWS, "int64[]", "int64[]"),
)
def sum_groups(columns: Any, sizes: Any, rows: Any, ends: Any, payloads: Any, bounds: Any) -> int:
    """Write sums for groups of rows: of their keys, values and headers, and of their sizes.

    A group ends where the next one begins, at one of ``ends``. Return 0, or ``NO_ROW``.
    """
    _, keys, values, headers = columns
    place = 0
    for group in range(len(ends)):
        payload = bound = 0
        while place < ends[group]:
            if place >= len(rows):
                return NO_ROW
            row = rows[place]
            if not 0 <= row < len(sizes):
                return NO_ROW
            payload += value_length(keys, row) + value_length(values, row)
            payload += headers_payload(headers, row)
            bound += sizes[row]
            place += 1
        payloads[group] = payload
        bounds[group] = bound
    return 0


@kernel(ROWS, ROWS)
def sum_sizes(sizes: Any, rows: Any) -> int:
    """Return the sum of the sizes of rows, or ``NO_ROW``."""
    if len(rows) > len(sizes):
        return NO_ROW
    total = 0
    for row in rows:
        if not 0 <= row < len(sizes):
            return NO_ROW
        total += sizes[row]
    return total


@kernel(ROWS, ROWS, "int64", "int64[]")
def split_rows(sizes: Any, rows: Any, max_size: int, ends: Any) -> int:
    """Write where to split rows, so that the sizes of each part add up to ``max_size`` or less.

    Return the number of parts, or ``NO_ROW``. A row that alone is larger is a separate part.
    """
    if len(rows) > len(sizes):
        return NO_ROW
    parts = 0
    total = 0
    for place in range(len(rows)):
        row = rows[place]
        if not 0 <= row < len(sizes):
            return NO_ROW
        size = sizes[row]
        if place > 0 and total + size > max_size:
            ends[parts] = place
            parts += 1
            total = 0
        total += size
    if len(rows) > 0:
        ends[parts] = len(rows)
        parts += 1
    return parts


@kernel(COLUMNS, "int64", results=2, wide=(WIDE_COLUMNS, "int64"))
def first_oversized(columns: Any, max_size: int) -> Any:
    """Return the first row of more than ``max_size`` bytes, and its size; or ``NO_ROW``, 0.

    The size is the one that Java's producer compares with ``max.request.size``:
    ``AbstractRecords.estimateSizeInBytesUpperBound``.
    """
    timestamps, keys, values, headers = columns
    for row in range(len(timestamps)):
        first, end = header_range(headers, row)
        size = UPPER_BOUND_OVERHEAD + _field_size(keys, row) + _field_size(values, row)
        size += _headers_size(headers, first, end)
        if size > max_size:
            return row, size
    return NO_ROW, 0


@kernel(
    COLUMNS,
    ROWS,
    ROWS,
    "uint8[]",
    "int64",
    results=3,
    wide=(WIDE_COLUMNS, ROWS, ROWS, "uint8[]", "int64"),
)
def encode_records(columns: Any, sizes: Any, rows: Any, target: Any, at: int) -> Any:
    """Write the records of one row or more, from a position on.

    ``sizes`` are from ``measure_records``. Return the position after the last, or ``NO_ROW``,
    or ``NO_ROOM``; and the first and the largest timestamp.
    """
    timestamps, keys, values, headers = columns
    base_timestamp = max_timestamp = np.int64(0)
    if len(rows) > len(sizes):
        return np.int64(NO_ROW), base_timestamp, max_timestamp
    for number in range(len(rows)):
        row = rows[number]
        if not 0 <= row < len(sizes):
            return np.int64(NO_ROW), base_timestamp, max_timestamp
        if sizes[np.uint64(row)] > len(target) - at:
            return np.int64(NO_ROOM), base_timestamp, max_timestamp
        timestamp = timestamps[np.uint64(row)]
        if number == 0:
            base_timestamp = max_timestamp = timestamp
        max_timestamp = max(max_timestamp, timestamp)
        delta = timestamp - base_timestamp
        first, end = header_range(headers, row)
        size = (
            1
            + varint_size(delta)
            + varint_size(number)
            + _field_size(keys, row)
            + _field_size(values, row)
            + _headers_size(headers, first, end)
        )
        at = _put_varint(target, at, size)
        target[np.uint64(at)] = 0
        at = _put_varint(target, at + 1, delta)
        at = _put_varint(target, at, number)
        at = _put_field(target, at, keys, row)
        at = _put_field(target, at, values, row)
        at = _put_varint(target, at, end - first)
        for entry in range(first, end):
            at = _put_field(target, at, headers[2], entry)
            at = _put_field(target, at, headers[3], entry)
    return at, base_timestamp, max_timestamp
