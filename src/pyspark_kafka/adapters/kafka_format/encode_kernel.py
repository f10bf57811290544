"""Columns to the records of format 2, in one pass of machine code.

The format: https://kafka.apache.org/documentation/#record. Records are measured before they are
written: whoever calls makes room for what ``measure_records`` says. No row is taken that the
columns do not have, nor more rows than they have: offsets would have more bytes than was said.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ..kernels.compiled import compiled, force_inlined, inlined
from ..kernels.intrinsics import borrowed, copy_bytes, leading_zeros
from .bounded_reads import MAX_VARINT64_BYTES

NO_ROW: Final = -1
"""What a kernel gives for rows that there are not, and for none."""

NO_ROOM: Final = -2
"""What it gives if what it writes to may be too small for the next record."""


@inlined
def varint_size(number: Any) -> Any:
    """Give the bytes of a zigzag number."""
    rest = np.uint64((number << 1) ^ (number >> 63))
    return (9 * (64 - leading_zeros(rest | np.uint64(1))) + 64) >> 6


@inlined
def _put_varint(into: Any, at: Any, number: Any) -> Any:
    """Write a zigzag number, and give the position behind it."""
    rest = np.uint64((number << 1) ^ (number >> 63))
    while rest >= np.uint64(0x80):
        into[np.uint64(at)] = np.uint8((rest & np.uint64(0x7F)) | np.uint64(0x80))
        rest >>= np.uint64(7)
        at += 1
    into[np.uint64(at)] = np.uint8(rest)
    return at + 1


@inlined
def value_span(column: Any, row: Any) -> Any:
    """Give where a value begins, and its length: -1 for null."""
    starts, _, valid = column
    start = np.int64(starts[np.uint64(row)])
    if valid[np.uint64(row)] == 0:
        return start, np.int64(-1)
    return start, np.int64(starts[np.uint64(row + 1)]) - start


@inlined
def _sized_size(length: Any) -> Any:
    """Give the bytes of a value with its length before it."""
    return varint_size(length) + max(length, 0)


@force_inlined
def _put_sized(into: Any, at: Any, data: Any, start: Any, length: Any) -> Any:
    """Write a value behind its length, and give the position behind it."""
    at = _put_varint(into, at, length)
    copy_bytes(into, at, data, start, max(length, 0))
    return at + max(length, 0)


@inlined
def _header_range(headers: Any, row: Any) -> Any:
    """Give the first header of a row, and the one behind its last."""
    starts, valid, _, _ = headers
    first = np.int64(starts[np.uint64(row)])
    if valid[np.uint64(row)] == 0:
        return first, first
    return first, np.int64(starts[np.uint64(row + 1)])


@force_inlined
def _headers_size(headers: Any, first: Any, behind: Any) -> Any:
    """Give the bytes of a row's headers with their number before them."""
    size = varint_size(behind - first)
    for entry in range(first, behind):
        _, key_length = value_span(headers[2], entry)
        _, value_length = value_span(headers[3], entry)
        size += _sized_size(key_length) + _sized_size(value_length)
    return size


@inlined
def _longest_delta(timestamps: Any) -> Any:
    """Give the bytes of the largest difference of two timestamps."""
    least, most = timestamps[0], timestamps[0]
    for timestamp in timestamps:
        least = min(least, timestamp)
        most = max(most, timestamp)
    span: Any = np.int64(np.uint64(most) - np.uint64(least))
    # What does not fit a long goes round, as in Java, and may be any number.
    return varint_size(span) if span >= 0 else MAX_VARINT64_BYTES


@compiled
def measure_records(columns: Any, sizes: Any) -> int:
    """Write a bound of each record's bytes, and give the first row with a header without a key.

    Gives ``NO_ROW`` if all headers have keys.
    """
    columns, sizes = borrowed((columns, sizes))
    timestamps, keys, values, headers = columns
    if len(sizes) == 0:
        return NO_ROW
    usual = 1 + _longest_delta(timestamps) + varint_size(len(sizes))
    for row in range(len(sizes)):
        first, behind = _header_range(headers, row)
        for entry in range(first, behind):
            if headers[2][2][entry] == 0:
                return row
        _, key_length = value_span(keys, row)
        _, value_length = value_span(values, row)
        size = usual + _sized_size(key_length) + _sized_size(value_length)
        size += _headers_size(headers, first, behind)
        sizes[row] = size + varint_size(size)
    return NO_ROW


@compiled
def sum_payloads(columns: Any, rows: Any) -> int:
    """Give the bytes of the keys, values and headers of rows."""
    columns, rows = borrowed((columns, rows))
    timestamps, keys, values, headers = columns
    total = 0
    for row in rows:
        if not 0 <= row < len(timestamps):
            return NO_ROW
        _, key_length = value_span(keys, row)
        _, value_length = value_span(values, row)
        total += max(key_length, 0) + max(value_length, 0)
        first, behind = _header_range(headers, row)
        for entry in range(first, behind):
            _, key_length = value_span(headers[2], entry)
            _, value_length = value_span(headers[3], entry)
            total += key_length + max(value_length, 0)
    return total


@compiled
def sum_sizes(sizes: Any, rows: Any) -> int:
    """Give the sum of the sizes of rows."""
    sizes, rows = borrowed((sizes, rows))
    if len(rows) > len(sizes):
        return NO_ROW
    total = 0
    for row in rows:
        if not 0 <= row < len(sizes):
            return NO_ROW
        total += sizes[row]
    return total


@compiled
def cut_rows(sizes: Any, rows: Any, most: int, ends: Any) -> int:
    """Write behind which rows to cut, so that the sizes between have a sum of ``most`` or less.

    Gives how many pieces there are. A row that alone has more is a piece of its own.
    """
    sizes, rows, ends = borrowed((sizes, rows, ends))
    if len(rows) > len(sizes):
        return NO_ROW
    pieces = 0
    total = 0
    for place in range(len(rows)):
        row = rows[place]
        if not 0 <= row < len(sizes):
            return NO_ROW
        size = sizes[row]
        if place > 0 and total + size > most:
            ends[pieces] = place
            pieces += 1
            total = 0
        total += size
    if len(rows) > 0:
        ends[pieces] = len(rows)
        pieces += 1
    return pieces


@compiled
def encode_records(columns: Any, sizes: Any, rows: Any, into: Any, at: int) -> Any:
    """Write the records of rows, of which there is one at least, from a position on.

    ``sizes`` are those of ``measure_records``. Gives the position behind the last, or ``NO_ROW``,
    or ``NO_ROOM``; and the first and the greatest timestamp.
    """
    columns, sizes, rows, into = borrowed((columns, sizes, rows, into))
    timestamps, keys, values, headers = columns
    base_timestamp = max_timestamp = np.int64(0)
    if len(rows) > len(sizes):
        return np.int64(NO_ROW), base_timestamp, max_timestamp
    for number in range(len(rows)):
        row = rows[number]
        if not 0 <= row < len(sizes):
            return np.int64(NO_ROW), base_timestamp, max_timestamp
        if sizes[np.uint64(row)] > len(into) - at:
            return np.int64(NO_ROOM), base_timestamp, max_timestamp
        timestamp = timestamps[np.uint64(row)]
        if number == 0:
            base_timestamp = max_timestamp = timestamp
        max_timestamp = max(max_timestamp, timestamp)
        delta = timestamp - base_timestamp
        key_start, key_length = value_span(keys, row)
        value_start, value_length = value_span(values, row)
        first, behind = _header_range(headers, row)
        size = (
            1
            + varint_size(delta)
            + varint_size(number)
            + _sized_size(key_length)
            + _sized_size(value_length)
            + _headers_size(headers, first, behind)
        )
        at = _put_varint(into, at, size)
        into[np.uint64(at)] = 0
        at = _put_varint(into, at + 1, delta)
        at = _put_varint(into, at, number)
        at = _put_sized(into, at, keys[1], key_start, key_length)
        at = _put_sized(into, at, values[1], value_start, value_length)
        at = _put_varint(into, at, behind - first)
        for entry in range(first, behind):
            start, length = value_span(headers[2], entry)
            at = _put_sized(into, at, headers[2][1], start, length)
            start, length = value_span(headers[3], entry)
            at = _put_sized(into, at, headers[3][1], start, length)
    return at, base_timestamp, max_timestamp
