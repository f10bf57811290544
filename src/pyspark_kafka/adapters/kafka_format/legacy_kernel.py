"""The messages of formats 0 and 1 to columns; brokers before 0.11 wrote and still store them.

The formats: https://kafka.apache.org/documentation/#messageset. A message is an offset, a size,
a checksum, the magic number, attributes, a timestamp in format 1, a key and a value.
"""

from __future__ import annotations

import zlib
from typing import Any, Final

import numpy as np

from ..kernels.kernel import kernel
from ..kernels.kinds import BUFFERS, LIMITS
from ..kernels.parts import inlined
from . import block_fields as field
from . import column_mask as bit
from . import decode_cursor as at
from . import status
from .batch_headers import LOG_OVERHEAD
from .bounded_reads import byte_at, read_int
from .decode_kernel import put_value

TYPE_PER_MESSAGE: Final = -2
"""A block's timestamp type where each message has its own."""

CODEC: Final = 0x07
APPEND_TIME: Final = 0x08
"""The bits of a message's attributes."""

MIN_MESSAGE_BYTES: Final = (14, 22)
"""The bytes of an empty message of format 0 and of format 1."""

MESSAGE_HEAD_BYTES: Final = LOG_OVERHEAD + MIN_MESSAGE_BYTES[0]
"""The bytes of the smallest message, with its offset and its size."""

# zlib's CRC-32 table, computed by zlib itself: kernels cannot call it.
_CRC32_TABLE: Final = np.array(
    [zlib.crc32(bytes([byte ^ 0xFF])) ^ 0xFF00_0000 for byte in range(256)], np.uint32
)


@kernel("const uint8[]", "int64[,]", "int64[]", "int64", "int64", "int64", LIMITS, BUFFERS)
def decode_messages(
    data: Any,
    blocks: Any,
    cursor: Any,
    from_offset: int,
    until_offset: int,
    mask: int,
    limits: Any,
    columns: Any,
) -> Any:
    """Append the messages of ``[from_offset, until_offset)`` as ``decode_records`` does.

    A block's ``BASE_OFFSET`` is added to the offsets of its messages.
    """
    while cursor[at.BLOCK] < len(blocks):
        block = blocks[cursor[at.BLOCK]]
        if cursor[at.RECORD] == 0:
            cursor[at.POSITION] = block[field.START]
        while cursor[at.POSITION] < block[field.END]:
            start = cursor[at.POSITION]
            end, result = _message_end(data, start, block[field.END])
            if result == status.TRUNCATED and block[field.IS_OPEN] != 0:
                result = status.NEEDS_INPUT
            size = end - start - LOG_OVERHEAD
            is_oversized = size > limits[0] and result in (status.DONE, status.NEEDS_INPUT)
            if result != status.DONE and not is_oversized:
                return result
            offset = read_int(data, start, 8) + block[field.BASE_OFFSET]
            if offset <= cursor[at.OFFSET] or offset > block[field.LAST_OFFSET]:
                return status.BAD_OFFSET
            if offset >= until_offset:
                cursor[at.BLOCK] = len(blocks)
                return status.DONE
            if is_oversized:
                cursor[at.SIZE] = size
            elif offset >= from_offset:
                result = _put_message(data, start, end, offset, block, cursor, mask, columns)
                if result != status.DONE:
                    return result
            cursor[at.OFFSET] = offset
            cursor[at.POSITION] = end
            cursor[at.RECORD] += 1
            if is_oversized:
                return status.RECORD_TOO_LARGE
        if block[field.IS_OPEN] != 0:
            return status.NEEDS_INPUT
        cursor[at.BLOCK] += 1
        cursor[at.RECORD] = 0
    return status.DONE


@kernel("uint8[]", "int64", "int64", results=3)
def scan_messages(data: Any, position: int, offset: int) -> Any:
    """Find the last of the messages whose head is in ``data``, from a position on.

    Return the position after it, which may be past the data, its offset, or the given one without
    a message, and a ``status``.
    """
    while len(data) - position >= MESSAGE_HEAD_BYTES:
        end, result = _message_end(data, position, len(data))
        if result not in (status.DONE, status.TRUNCATED):
            return position, offset, result
        offset = read_int(data, position, 8)
        position = end
    return position, offset, status.DONE


@inlined
def _message_end(data: Any, start: Any, end: Any) -> Any:
    """Return where the message at ``start`` ends, and a ``status``.

    That is ``start`` if its head is truncated or wrong.
    """
    if end - start < MESSAGE_HEAD_BYTES:
        return start, status.TRUNCATED
    size = read_int(data, start + 8, 4)
    magic = byte_at(data, start + 16)
    if magic > 1 or byte_at(data, start + 17) & CODEC != 0:
        return start, status.BAD_MAGIC
    if size < MIN_MESSAGE_BYTES[magic]:
        return start, status.BAD_SIZE
    message_end = start + LOG_OVERHEAD + size
    return message_end, status.DONE if message_end <= end else status.TRUNCATED


@inlined
def _put_message(
    data: Any, start: int, end: int, offset: int, block: Any, cursor: Any, mask: int, columns: Any
) -> int:
    offsets, timestamps, timestamp_types, keys, values, headers = columns
    row = cursor[at.ROWS]
    checksum = np.uint32(read_int(data, start + 12, 4) & 0xFFFFFFFF)
    if _crc32(data, start + 16, end) != checksum:
        return status.BAD_CHECKSUM
    timestamp_type, timestamp, place = _timestamp(data, start, block)
    key_length = read_int(data, place, 4)
    key_start = place + 4
    place = key_start + max(key_length, 0)
    if key_length < -1 or place + 4 > end:
        return status.BAD_LENGTH
    value_length = read_int(data, place, 4)
    value_start = place + 4
    if value_length < -1 or value_start + max(value_length, 0) != end:
        return status.BAD_LENGTH
    if row >= len(offsets):
        return status.ROWS_FULL
    if not -status.MAX_MILLISECONDS <= timestamp <= status.MAX_MILLISECONDS:
        if mask & bit.TIMESTAMP:
            cursor[at.OFFSET] = offset
            cursor[at.TIMESTAMP] = timestamp
            return status.BAD_TIMESTAMP
        timestamp = np.int64(0)
    key_bytes = cursor[at.KEY_BYTES]
    value_bytes = cursor[at.VALUE_BYTES]
    if mask & bit.KEY:
        key_bytes = put_value(keys, row, key_bytes, data, key_start, key_length)
        if key_bytes < 0:
            return status.KEYS_FULL
    if mask & bit.VALUE:
        value_bytes = put_value(values, row, value_bytes, data, value_start, value_length)
        if value_bytes < 0:
            return status.VALUES_FULL
    if mask & bit.HEADERS:
        headers[0][row + 1] = cursor[at.HEADERS]
        headers[1][row] = 0
    offsets[row] = offset
    timestamps[row] = timestamp * 1_000
    timestamp_types[row] = timestamp_type
    cursor[at.ROWS] = row + 1
    cursor[at.KEY_BYTES] = key_bytes
    cursor[at.VALUE_BYTES] = value_bytes
    return status.DONE


@inlined
def _timestamp(data: Any, start: Any, block: Any) -> Any:
    """Return a message's timestamp type, its timestamp, and where its key begins."""
    if byte_at(data, start + 16) == 0:
        return np.int64(field.NO_TIMESTAMP_TYPE), np.int64(-1), start + 18
    timestamp_type = block[field.TIMESTAMP_TYPE]
    if timestamp_type == field.LOG_APPEND_TIME:
        return timestamp_type, block[field.BASE_TIMESTAMP], start + 26
    if timestamp_type == TYPE_PER_MESSAGE:
        timestamp_type = np.int64(byte_at(data, start + 17) & APPEND_TIME != 0)
    return timestamp_type, read_int(data, start + 18, 8), start + 26


@inlined
def _crc32(data: Any, start: int, end: int) -> Any:
    checksum = np.uint32(0xFFFFFFFF)
    for position in range(start, end):
        index = (checksum ^ np.uint32(byte_at(data, position))) & np.uint32(0xFF)
        checksum = _CRC32_TABLE[index] ^ (checksum >> np.uint32(8))
    return checksum ^ np.uint32(0xFFFFFFFF)  # numba's `~` would make it 64 bits
