"""The records of format 2 to columns, in one pass of machine code.

The format: https://kafka.apache.org/documentation/#record. The input is untrusted: each length is
checked against its record's, and that against the block's, so that no input is read past its end,
written past a column's, or read forever.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ..kernels.kernel import kernel
from ..kernels.kinds import BUFFERS, LIMITS
from ..kernels.memory import copy_bytes
from ..kernels.parts import inlined
from . import block_fields as field
from . import column_mask as bit
from . import decode_cursor as at
from . import status
from .bounded_reads import MAX_VARINT32_BYTES, MAX_VARINT64_BYTES, read_bytes, read_varint

MAX_HEAD_BYTES: Final = 1 + MAX_VARINT64_BYTES + MAX_VARINT32_BYTES
"""The most bytes of a record up to its offset: attributes, a timestamp delta, an offset delta."""


@kernel("const uint8[]", "int64[,]", "int64[]", "int64", "int64", "int64", LIMITS, BUFFERS)
def decode_records(
    data: Any,
    blocks: Any,
    cursor: Any,
    from_offset: int,
    until_offset: int,
    mask: int,
    limits: Any,
    columns: Any,
) -> int:
    """Append the records of ``[from_offset, until_offset)`` to the rows of the columns.

    Continues at the cursor and returns a ``status``; the cursor is then before the record that was
    not written, or after it if it is one of ``OVERSIZED``, which an earlier record may be, too.
    ``columns`` are ``ColumnBuffers.arrays``, ``mask`` is from ``column_mask``, ``limits`` are
    ``RecordLimits.numbers``.
    """
    while cursor[at.BLOCK] < len(blocks):
        block = blocks[cursor[at.BLOCK]]
        if cursor[at.RECORD] == 0:
            cursor[at.POSITION] = max(cursor[at.POSITION], block[field.START])
            if block[field.BASE_OFFSET] <= cursor[at.OFFSET]:
                return status.BAD_OFFSET
            cursor[at.OFFSET] = block[field.BASE_OFFSET] - 1
        result = _decode_block(
            data, block, cursor, from_offset, until_offset, mask, limits, columns
        )
        if result != status.DONE:
            return result
        if cursor[at.OFFSET] >= until_offset:
            # Offsets ascend: the rest is past the range, too.
            cursor[at.BLOCK] = len(blocks)
            return status.DONE
        if cursor[at.POSITION] < block[field.END]:
            return status.TRAILING_BYTES
        if block[field.IS_OPEN] != 0:
            return status.NEEDS_INPUT
        cursor[at.BLOCK] += 1
        cursor[at.RECORD] = 0
        cursor[at.POSITION] = 0
    return status.DONE


@inlined
def _decode_block(
    data: Any,
    block: Any,
    cursor: Any,
    from_offset: int,
    until_offset: int,
    mask: int,
    limits: Any,
    columns: Any,
) -> int:
    offsets, timestamps, timestamp_types, keys, values, headers = columns
    max_bytes, max_headers, max_header_bytes = limits
    end = block[field.END]
    count = block[field.COUNT]
    base_offset = block[field.BASE_OFFSET]
    last_offset = block[field.LAST_OFFSET]
    base_timestamp = block[field.BASE_TIMESTAMP]
    timestamp_type = block[field.TIMESTAMP_TYPE]
    past_end = status.TRUNCATED if block[field.IS_OPEN] == 0 else status.NEEDS_INPUT
    number = cursor[at.RECORD]
    position = cursor[at.POSITION]
    offset = cursor[at.OFFSET]
    row = cursor[at.ROWS]
    key_bytes = cursor[at.KEY_BYTES]
    value_bytes = cursor[at.VALUE_BYTES]
    result = status.DONE
    while number < count:
        length, body = read_varint(data, position, end, MAX_VARINT32_BYTES)
        if body < 0:
            result = past_end if end - position < MAX_VARINT32_BYTES else status.BAD_VARINT
            break
        record_end = body + length
        # As unsigned numbers, negative ones are the largest.
        if np.uint64(length) > np.uint64(max_bytes) or record_end > end:
            result, record_offset = _unread(
                data, body, length, end, past_end, max_bytes, base_offset
            )
            if result == status.RECORD_TOO_LARGE:
                if record_offset <= offset or record_offset > last_offset:
                    result = status.BAD_OFFSET
                    break
                offset = record_offset
                if record_offset >= until_offset:
                    result = status.DONE
                    break
                cursor[at.SIZE] = length
                position = record_end
                number += 1
            break
        # A record's first byte, its attributes, has no meaning yet.
        timestamp_delta, place = read_varint(data, body + 1, record_end, MAX_VARINT64_BYTES)
        if place < 0:
            result = status.BAD_VARINT
            break
        offset_delta, place = read_varint(data, place, record_end, MAX_VARINT32_BYTES)
        record_offset = base_offset + offset_delta
        if place < 0 or record_offset <= offset or record_offset > last_offset:
            result = status.BAD_VARINT if place < 0 else status.BAD_OFFSET
            break
        if record_offset >= until_offset:
            offset = record_offset
            break
        if record_offset >= from_offset:
            key_length, key_start, place, result = read_bytes(data, place, record_end)
            if result != status.DONE:
                break
            value_length, value_start, place, result = read_bytes(data, place, record_end)
            if result != status.DONE:
                break
            if row >= len(offsets):
                result = status.ROWS_FULL
                break
            key_end = key_bytes
            if mask & bit.KEY:
                key_end = put_value(keys, row, key_bytes, data, key_start, key_length)
                if key_end < 0:
                    result = status.KEYS_FULL
                    break
            value_end = value_bytes
            if mask & bit.VALUE:
                value_end = put_value(values, row, value_bytes, data, value_start, value_length)
                if value_end < 0:
                    result = status.VALUES_FULL
                    break
            if mask & bit.TIMESTAMP:
                timestamp = base_timestamp
                if timestamp_type != field.LOG_APPEND_TIME:
                    timestamp += timestamp_delta
                if not -status.MAX_MILLISECONDS <= timestamp <= status.MAX_MILLISECONDS:
                    cursor[at.TIMESTAMP] = timestamp
                    offset = record_offset
                    result = status.BAD_TIMESTAMP
                    break
                timestamps[row] = timestamp * 1_000
            if mask & bit.HEADERS:
                result = _put_headers(
                    headers, row, cursor, data, place, record_end, max_headers, max_header_bytes
                )
                if result != status.DONE:
                    if result >= status.TOO_MANY_HEADERS:
                        offset = record_offset
                        position = record_end
                        number += 1
                    break
            key_bytes = key_end
            value_bytes = value_end
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
    cursor[at.KEY_BYTES] = key_bytes
    cursor[at.VALUE_BYTES] = value_bytes
    return result


@inlined
def _unread(
    data: Any, body: Any, length: Any, end: Any, past_end: int, max_bytes: int, base_offset: Any
) -> Any:
    """Return why a record with a wrong or too large length is not read, and its offset."""
    if length < 0:
        return status.BAD_LENGTH, np.int64(-1)
    if length <= max_bytes:
        return past_end, np.int64(-1)
    if body + length > end and past_end == status.TRUNCATED:
        return past_end, np.int64(-1)
    head_end = min(body + length, end)
    _, place = read_varint(data, body + 1, head_end, MAX_VARINT64_BYTES)
    if place >= 0:
        offset_delta, place = read_varint(data, place, head_end, MAX_VARINT32_BYTES)
        if place >= 0:
            return status.RECORD_TOO_LARGE, base_offset + offset_delta
    is_cut_off = body + length > end and end - body < MAX_HEAD_BYTES
    return past_end if is_cut_off else status.BAD_VARINT, np.int64(-1)


@inlined
def put_value(column: Any, row: Any, used: Any, data: Any, start: Any, length: Any) -> Any:
    """Append bytes to a column, null if the length is -1; return its size, or -1 if it is full."""
    offsets, target, validity = column
    end = used + max(length, 0)
    if end > len(target):
        return np.int64(-1)
    copy_bytes(target, used, data, start, max(length, 0))
    offsets[row + 1] = end
    validity[row] = length >= 0
    return end


@inlined
def _put_headers(
    headers: Any,
    row: Any,
    cursor: Any,
    data: Any,
    place: Any,
    end: Any,
    max_headers: int,
    max_header_bytes: int,
) -> Any:
    """Append a record's headers, which end where the record does; return a ``status``."""
    list_offsets, list_validity, keys, values = headers
    count, place = read_varint(data, place, end, MAX_VARINT32_BYTES)
    if place < 0:
        return status.BAD_VARINT
    if count < 0 or 2 * count > end - place:
        # Each has two lengths of a byte at least: this bounds the memory that is allocated.
        return status.BAD_LENGTH
    if count > max_headers:
        cursor[at.SIZE] = count
        return status.TOO_MANY_HEADERS
    if end - place > max_header_bytes:
        cursor[at.SIZE] = end - place
        return status.HEADERS_TOO_LARGE
    first = cursor[at.HEADERS]
    if first + count > len(keys[2]):
        return status.HEADERS_FULL
    key_bytes = cursor[at.HEADER_KEY_BYTES]
    value_bytes = cursor[at.HEADER_VALUE_BYTES]
    for entry in range(first, first + count):
        length, start, place, result = read_bytes(data, place, end)
        if result != status.DONE:
            return result
        if length < 0:
            return status.BAD_LENGTH
        key_bytes = put_value(keys, entry, key_bytes, data, start, length)
        if key_bytes < 0:
            return status.HEADER_KEYS_FULL
        length, start, place, result = read_bytes(data, place, end)
        if result != status.DONE:
            return result
        value_bytes = put_value(values, entry, value_bytes, data, start, length)
        if value_bytes < 0:
            return status.HEADER_VALUES_FULL
    if place != end:
        return status.BAD_LENGTH
    list_offsets[row + 1] = first + count
    list_validity[row] = count > 0
    cursor[at.HEADERS] = first + count
    cursor[at.HEADER_KEY_BYTES] = key_bytes
    cursor[at.HEADER_VALUE_BYTES] = value_bytes
    return status.DONE
