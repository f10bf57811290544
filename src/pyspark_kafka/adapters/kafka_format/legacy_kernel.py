"""The messages of formats 0 and 1 to columns; brokers before 0.11 wrote them, and keep them.

The formats: https://kafka.apache.org/documentation/#messageset. A message is an offset and a
size, and behind them checksum, magic number, attributes, from format 1 on a timestamp, key, value.
"""

from __future__ import annotations

import zlib
from typing import Any, Final

import numpy as np

from ..kernels.compiled import compiled, inlined
from ..kernels.intrinsics import borrowed
from . import block_fields as of
from . import column_mask as wants
from . import decode_cursor as at
from . import status
from .bounded_reads import big_endian, byte_at
from .decode_kernel import put

AS_MESSAGES_SAY: Final = -2
"""A section's type of timestamps where each message has its own."""

CODEC: Final = 0x07
APPEND_TIME: Final = 0x08
"""The bits of a message's attributes."""

MESSAGE: Final = 12
"""The bytes before a message: its offset and its size."""

LEAST: Final = (14, 22)
"""The bytes of an empty message of format 0 and of format 1."""

# What zlib's checksum adds for one byte, from zlib itself: kernels cannot call it.
_CHECKSUMS: Final = np.array(
    [zlib.crc32(bytes([byte ^ 0xFF])) ^ 0xFF00_0000 for byte in range(256)], np.uint32
)


@compiled
def decode_messages(
    data: Any,
    sections: Any,
    cursor: Any,
    from_offset: int,
    until_offset: int,
    wanted: int,
    columns: Any,
) -> Any:
    """Write the messages of ``[from_offset, until_offset)`` as rows; as ``decode_records``.

    A section's ``BASE_OFFSET`` is added to the offsets of its messages.
    """
    data, sections, cursor, columns = borrowed((data, sections, cursor, columns))
    while cursor[at.SECTION] < len(sections):
        section = sections[cursor[at.SECTION]]
        if cursor[at.RECORD] == 0:
            cursor[at.POSITION] = section[of.START]
        while cursor[at.POSITION] < section[of.END]:
            end, result = _message_end(data, cursor[at.POSITION], section[of.END])
            if result != status.DONE:
                return result
            start = cursor[at.POSITION]
            offset = big_endian(data, start, 8) + section[of.BASE_OFFSET]
            if offset <= cursor[at.OFFSET] or offset > section[of.LAST_OFFSET]:
                return status.BAD_OFFSET
            if offset >= until_offset:
                cursor[at.SECTION] = len(sections)
                return status.DONE
            if offset >= from_offset:
                result = _put_message(data, start, end, offset, section, cursor, wanted, columns)
                if result != status.DONE:
                    return result
            cursor[at.OFFSET] = offset
            cursor[at.POSITION] = end
            cursor[at.RECORD] += 1
        cursor[at.SECTION] += 1
        cursor[at.RECORD] = 0
    return status.DONE


@compiled
def last_offset(data: Any) -> Any:
    """Give the offset of the last message of a set as it stands there, and a ``status``.

    A set without messages has none.
    """
    data = borrowed(data)
    position = np.int64(0)
    offset = np.int64(-1)
    while position < len(data):
        end, result = _message_end(data, position, len(data))
        if result != status.DONE:
            return offset, result
        offset = big_endian(data, position, 8)
        position = end
    return offset, status.DONE if offset >= 0 else status.BAD_OFFSET


@inlined
def _message_end(data: Any, start: Any, end: Any) -> Any:
    """Give where the message at ``start`` ends; its header is within ``end``."""
    if end - start < MESSAGE + LEAST[0]:
        return start, status.TRUNCATED
    size = big_endian(data, start + 8, 4)
    magic = byte_at(data, start + 16)
    if magic > 1 or byte_at(data, start + 17) & CODEC != 0:
        return start, status.BAD_MAGIC
    if size < LEAST[magic]:
        return start, status.BAD_SIZE
    behind = start + MESSAGE + size
    return behind, status.DONE if behind <= end else status.TRUNCATED


@inlined
def _put_message(
    data: Any,
    start: int,
    end: int,
    offset: int,
    section: Any,
    cursor: Any,
    wanted: int,
    columns: Any,
) -> int:
    offsets, timestamps, timestamp_types, keys, values, headers = columns
    row = cursor[at.ROWS]
    checksum = np.uint32(big_endian(data, start + 12, 4) & 0xFFFFFFFF)
    if _crc32(data, start + 16, end) != checksum:
        return status.BAD_CHECKSUM
    timestamp_type, timestamp, place = _timestamp(data, start, section)
    key_length = big_endian(data, place, 4)
    key_start = place + 4
    place = key_start + max(key_length, 0)
    if key_length < -1 or place + 4 > end:
        return status.BAD_LENGTH
    value_length = big_endian(data, place, 4)
    value_start = place + 4
    if value_length < -1 or value_start + max(value_length, 0) != end:
        return status.BAD_LENGTH
    if row >= len(offsets):
        return status.ROWS_FULL
    if not -status.MAX_MILLISECONDS <= timestamp <= status.MAX_MILLISECONDS:
        if wanted & wants.TIMESTAMP:
            cursor[at.OFFSET] = offset
            cursor[at.TIMESTAMP] = timestamp
            return status.BAD_TIMESTAMP
        timestamp = np.int64(0)
    key_at = cursor[at.KEY_BYTES]
    value_at = cursor[at.VALUE_BYTES]
    if wanted & wants.KEY:
        key_at = put(keys, row, key_at, data, key_start, key_length)
        if key_at < 0:
            return status.KEYS_FULL
    if wanted & wants.VALUE:
        value_at = put(values, row, value_at, data, value_start, value_length)
        if value_at < 0:
            return status.VALUES_FULL
    if wanted & wants.HEADERS:
        headers[0][row + 1] = cursor[at.HEADERS]
        headers[1][row] = 0
    offsets[row] = offset
    timestamps[row] = timestamp * 1_000
    timestamp_types[row] = timestamp_type
    cursor[at.ROWS] = row + 1
    cursor[at.KEY_BYTES] = key_at
    cursor[at.VALUE_BYTES] = value_at
    return status.DONE


@inlined
def _timestamp(data: Any, start: Any, section: Any) -> Any:
    """Give a message's type of timestamp, its timestamp, and where its key begins."""
    if byte_at(data, start + 16) == 0:
        return np.int64(of.NO_TIMESTAMP_TYPE), np.int64(-1), start + 18
    kind = section[of.TIMESTAMP_TYPE]
    if kind == of.LOG_APPEND_TIME:
        return kind, section[of.BASE_TIMESTAMP], start + 26
    if kind == AS_MESSAGES_SAY:
        kind = np.int64(byte_at(data, start + 17) & APPEND_TIME != 0)
    return kind, big_endian(data, start + 18, 8), start + 26


@inlined
def _crc32(data: Any, start: int, end: int) -> Any:
    checksum = np.uint32(0xFFFFFFFF)
    for place in range(start, end):
        index = (checksum ^ np.uint32(byte_at(data, place))) & np.uint32(0xFF)
        checksum = _CHECKSUMS[index] ^ (checksum >> np.uint32(8))
    return checksum ^ np.uint32(0xFFFFFFFF)  # numba has `~` turn 64 bits
