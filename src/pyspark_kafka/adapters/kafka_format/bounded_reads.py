"""Reading numbers and lengths out of bytes that nothing is known about.

Each read is held against the end of what it belongs to. A read that fails gives -1 for the
position behind it; nothing outside of the array is touched.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ..kernels.compiled import inlined
from . import status

MAX_VARINT32_BYTES: Final = 5
MAX_VARINT64_BYTES: Final = 10
"""The bytes of the longest ``varint`` and ``varlong`` of Kafka's protocol."""


@inlined
def byte_at(data: Any, position: Any) -> Any:
    """Give a byte; an unsigned index spares the test for one that counts from the end."""
    return data[np.uint64(position)]


@inlined
def big_endian(data: Any, position: Any, size: int) -> Any:
    """Read a signed number of 2, 4 or 8 bytes; whether they are there is for the caller to know."""
    result = np.int64(np.int8(byte_at(data, position)))
    for place in range(1, size):
        result = (result << 8) | np.int64(byte_at(data, position + place))
    return result


@inlined
def varint(data: Any, position: Any, end: Any, most: int) -> Any:
    """Read a zigzag number of up to ``most`` bytes: the number, and the position behind it."""
    if position >= end:
        return np.int64(0), np.int64(-1)
    first = np.uint64(byte_at(data, position))
    position += 1
    if first < np.uint64(0x80):
        # Nearly all of them.
        return np.int64(first >> np.uint64(1)) ^ -np.int64(first & np.uint64(1)), position
    result = first & np.uint64(0x7F)
    shift = np.uint64(7)
    last = min(end, position + most - 1)
    while position < last:
        byte = np.uint64(byte_at(data, position))
        position += 1
        result |= (byte & np.uint64(0x7F)) << shift
        if byte < np.uint64(0x80):
            return np.int64(result >> np.uint64(1)) ^ -np.int64(result & np.uint64(1)), position
        shift += np.uint64(7)
    return np.int64(0), np.int64(-1)


@inlined
def sized(data: Any, position: Any, end: Any) -> Any:
    """Read a length with the bytes that it announces, where -1 stands for null.

    Gives the length, where the bytes begin, the position behind them, and a ``status``.
    """
    length, start = varint(data, position, end, MAX_VARINT32_BYTES)
    if start < 0:
        return length, start, position, status.BAD_VARINT
    behind = start + max(length, 0)
    if length < -1 or behind > end:
        return length, start, position, status.BAD_LENGTH
    return length, start, behind, status.DONE
