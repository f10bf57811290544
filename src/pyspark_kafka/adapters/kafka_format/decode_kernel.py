"""The records of format 2 to columns, in one pass of machine code.

The format: https://kafka.apache.org/documentation/#record. Nothing that stands in the bytes is
believed: each length is held against the record's, and that against the section's, so that no
input is read past its end, written past a column's, or read without end.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..kernels.compiled import compiled, inlined
from ..kernels.intrinsics import borrowed, copy_bytes
from . import block_fields as of
from . import column_mask as wants
from . import decode_cursor as at
from . import status
from .bounded_reads import MAX_VARINT32_BYTES, MAX_VARINT64_BYTES, sized, varint


@compiled
def decode_records(
    data: Any,
    sections: Any,
    cursor: Any,
    from_offset: int,
    until_offset: int,
    wanted: int,
    columns: Any,
) -> int:
    """Write the records of ``[from_offset, until_offset)`` as rows behind those there are.

    Goes on where the cursor stands and comes back with a ``status``; the cursor then stands
    before the record that was not written. ``columns`` are those of ``ColumnBuffers.arrays``.
    """
    data, sections, cursor, columns = borrowed((data, sections, cursor, columns))
    while cursor[at.SECTION] < len(sections):
        section = sections[cursor[at.SECTION]]
        if cursor[at.RECORD] == 0:
            cursor[at.POSITION] = max(cursor[at.POSITION], section[of.START])
            if section[of.BASE_OFFSET] <= cursor[at.OFFSET]:
                return status.BAD_OFFSET
            cursor[at.OFFSET] = section[of.BASE_OFFSET] - 1
        result = _decode_section(data, section, cursor, from_offset, until_offset, wanted, columns)
        if result != status.DONE:
            return result
        if cursor[at.OFFSET] >= until_offset:
            # Offsets ascend: nothing behind it is wanted either.
            cursor[at.SECTION] = len(sections)
            return status.DONE
        if cursor[at.POSITION] < section[of.END]:
            return status.TRAILING
        if section[of.IS_OPEN] != 0:
            return status.MORE
        cursor[at.SECTION] += 1
        cursor[at.RECORD] = 0
        cursor[at.POSITION] = 0
    return status.DONE


@inlined
def _decode_section(
    data: Any,
    section: Any,
    cursor: Any,
    from_offset: int,
    until_offset: int,
    wanted: int,
    columns: Any,
) -> int:
    offsets, timestamps, timestamp_types, keys, values, headers = columns
    end = section[of.END]
    count = section[of.COUNT]
    base_offset = section[of.BASE_OFFSET]
    last_offset = section[of.LAST_OFFSET]
    base_timestamp = section[of.BASE_TIMESTAMP]
    timestamp_type = section[of.TIMESTAMP_TYPE]
    beyond = status.TRUNCATED if section[of.IS_OPEN] == 0 else status.MORE
    number = cursor[at.RECORD]
    position = cursor[at.POSITION]
    offset = cursor[at.OFFSET]
    row = cursor[at.ROWS]
    key_at = cursor[at.KEY_BYTES]
    value_at = cursor[at.VALUE_BYTES]
    result = status.DONE
    while number < count:
        length, body = varint(data, position, end, MAX_VARINT32_BYTES)
        if body < 0:
            result = beyond if end - position < MAX_VARINT32_BYTES else status.BAD_VARINT
            break
        record_end = body + length
        if length < 0 or record_end > end:
            result = status.BAD_LENGTH if length < 0 else beyond
            break
        # A record's first byte, its attributes, means nothing yet.
        timestamp_delta, place = varint(data, body + 1, record_end, MAX_VARINT64_BYTES)
        if place < 0:
            result = status.BAD_VARINT
            break
        offset_delta, place = varint(data, place, record_end, MAX_VARINT32_BYTES)
        record_offset = base_offset + offset_delta
        if place < 0 or record_offset <= offset or record_offset > last_offset:
            result = status.BAD_VARINT if place < 0 else status.BAD_OFFSET
            break
        if record_offset >= until_offset:
            offset = record_offset
            break
        if record_offset >= from_offset:
            key_length, key_start, place, result = sized(data, place, record_end)
            if result != status.DONE:
                break
            value_length, value_start, place, result = sized(data, place, record_end)
            if result != status.DONE:
                break
            if row >= len(offsets):
                result = status.ROWS_FULL
                break
            key_end = key_at
            if wanted & wants.KEY:
                key_end = put(keys, row, key_at, data, key_start, key_length)
                if key_end < 0:
                    result = status.KEYS_FULL
                    break
            value_end = value_at
            if wanted & wants.VALUE:
                value_end = put(values, row, value_at, data, value_start, value_length)
                if value_end < 0:
                    result = status.VALUES_FULL
                    break
            if wanted & wants.TIMESTAMP:
                timestamp = base_timestamp
                if timestamp_type != of.LOG_APPEND_TIME:
                    timestamp += timestamp_delta
                if not -status.MAX_MILLISECONDS <= timestamp <= status.MAX_MILLISECONDS:
                    cursor[at.TIMESTAMP] = timestamp
                    offset = record_offset
                    result = status.BAD_TIMESTAMP
                    break
                timestamps[row] = timestamp * 1_000
            if wanted & wants.HEADERS:
                result = _put_headers(headers, row, cursor, data, place, record_end)
                if result != status.DONE:
                    break
            key_at = key_end
            value_at = value_end
            offsets[row] = record_offset
            timestamp_types[row] = timestamp_type
            row += 1
        offset = record_offset
        position = record_end
        number += 1
    cursor[at.RECORD] = number
    cursor[at.POSITION] = position
    cursor[at.OFFSET] = offset
    cursor[at.ROWS] = row
    cursor[at.KEY_BYTES] = key_at
    cursor[at.VALUE_BYTES] = value_at
    return result


@inlined
def put(column: Any, row: Any, used: Any, data: Any, start: Any, length: Any) -> Any:
    """Write bytes, or null for the length -1, and give how much is used then; -1 if it is full."""
    ends, into, valid = column
    behind = used + max(length, 0)
    if behind > len(into):
        return np.int64(-1)
    copy_bytes(into, used, data, start, max(length, 0))
    ends[row + 1] = behind
    valid[row] = length >= 0
    return behind


@inlined
def _put_headers(headers: Any, row: Any, cursor: Any, data: Any, place: Any, end: Any) -> Any:
    """Write a record's headers, which end where the record does; give a ``status``."""
    list_ends, list_valid, keys, values = headers
    count, place = varint(data, place, end, MAX_VARINT32_BYTES)
    if place < 0:
        return status.BAD_VARINT
    if count < 0 or 2 * count > end - place:
        # Each has two lengths: no more room is made than they can be.
        return status.BAD_LENGTH
    first = cursor[at.HEADERS]
    if first + count > len(keys[2]):
        return status.HEADERS_FULL
    key_at = cursor[at.HEADER_KEY_BYTES]
    value_at = cursor[at.HEADER_VALUE_BYTES]
    for entry in range(first, first + count):
        length, start, place, result = sized(data, place, end)
        if result != status.DONE:
            return result
        if length < 0:
            return status.BAD_LENGTH
        key_at = put(keys, entry, key_at, data, start, length)
        if key_at < 0:
            return status.HEADER_KEYS_FULL
        length, start, place, result = sized(data, place, end)
        if result != status.DONE:
            return result
        value_at = put(values, entry, value_at, data, start, length)
        if value_at < 0:
            return status.HEADER_VALUES_FULL
    if place != end:
        return status.BAD_LENGTH
    list_ends[row + 1] = first + count
    list_valid[row] = count > 0
    cursor[at.HEADERS] = first + count
    cursor[at.HEADER_KEY_BYTES] = key_at
    cursor[at.HEADER_VALUE_BYTES] = value_at
    return status.DONE
