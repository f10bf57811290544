"""Kernel functions that read numbers and lengths out of untrusted bytes.

Every read is checked against an end. A read that fails returns -1 as the position after it, and
nothing outside of the array is touched.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ..kernels.parts import inlined
from . import status

MAX_VARINT32_BYTES: Final = 5
MAX_VARINT64_BYTES: Final = 10
"""The bytes of the longest ``varint`` and ``varlong`` of Kafka's protocol."""


@inlined
def byte_at(data: Any, position: Any) -> Any:
    """Return a byte; an unsigned index avoids numba's check for negative ones."""
    return data[np.uint64(position)]


@inlined
def read_int(data: Any, position: Any, size: int) -> Any:
    """Read a signed big-endian number of 2, 4 or 8 bytes; the caller checks that they exist."""
    result = np.int64(np.int8(byte_at(data, position)))
    for index in range(1, size):
        result = (result << 8) | np.int64(byte_at(data, position + index))
    return result


@inlined
def read_varint(data: Any, position: Any, end: Any, max_bytes: int) -> Any:
    """Read a zigzag varint of up to ``max_bytes``; return it and the position after it."""
    if position >= end:
        return np.int64(0), np.int64(-1)
    first = np.uint64(byte_at(data, position))
    position += 1
    if first < np.uint64(0x80):
        # The common case.
        return np.int64(first >> np.uint64(1)) ^ -np.int64(first & np.uint64(1)), position
    result = first & np.uint64(0x7F)
    shift = np.uint64(7)
    last = min(end, position + max_bytes - 1)
    while position < last:
        byte = np.uint64(byte_at(data, position))
        position += 1
        result |= (byte & np.uint64(0x7F)) << shift
        if byte < np.uint64(0x80):
            return np.int64(result >> np.uint64(1)) ^ -np.int64(result & np.uint64(1)), position
        shift += np.uint64(7)
    return np.int64(0), np.int64(-1)


@inlined
def read_bytes(data: Any, position: Any, end: Any) -> Any:
    """Read a varint length, -1 for null, and skip the bytes that follow it.

    Return the length, where the bytes start, the position after them, and a ``status``.
    """
    length, start = read_varint(data, position, end, MAX_VARINT32_BYTES)
    if start < 0:
        return length, start, position, status.BAD_VARINT
    after = start + max(length, 0)
    if length < -1 or after > end:
        return length, start, position, status.BAD_LENGTH
    return length, start, after, status.DONE
