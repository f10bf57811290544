"""Kernel functions that read Protobuf's wire format.

They accept what upb accepts: tags and lengths in up to five bytes, varints in up to ten. A position
that is returned is negative if the read failed: the negative of a ``FailureReason``.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ...domain.values.errors import FailureReason
from ..kernels.memory import load_int64, load_uint8, store_int64
from ..kernels.parts import inlined
from . import program_layout as at

VARINT: Final = 0
FIXED_64: Final = 1
SIZED: Final = 2
GROUP: Final = 3
END_GROUP: Final = 4
FIXED_32: Final = 5

MALFORMED: Final = int(FailureReason.MALFORMED)
TRUNCATED: Final = int(FailureReason.TRUNCATED)
BAD_VARINT: Final = int(FailureReason.BAD_VARINT)
BAD_LENGTH: Final = int(FailureReason.BAD_LENGTH)
TOO_DEEP: Final = int(FailureReason.TOO_DEEP)

MAX_VARINT_BYTES: Final = 10
MAX_VARINT32_BYTES: Final = 5
UINT32_MAX: Final = 2**32 - 1
INT32_MAX: Final = 2**31 - 1


@inlined
def read_varint(position: Any, end: Any) -> Any:
    """Return an unsigned number of 64 bits and the position after it."""
    if position < end:
        first = load_uint8(position)
        if first < 0x80:
            return np.uint64(first), position + 1
    return _read_long(position, end, np.int64(MAX_VARINT_BYTES))


@inlined
def read_tag(position: Any, end: Any) -> Any:
    """Return a field number and wire type, and the position after it; ``position < end``."""
    first = load_uint8(position)
    if first < 0x80:
        return np.int64(first), position + 1
    value, after = _read_long(position, end, np.int64(MAX_VARINT32_BYTES))
    if after > 0 and value > np.uint64(UINT32_MAX):
        return np.int64(0), np.int64(-BAD_VARINT)
    return np.int64(value), after


@inlined
def read_length(position: Any, end: Any) -> Any:
    """Return a length, and the position after it, from which there are so many bytes."""
    if position < end:
        first = load_uint8(position)
        if first < 0x80:
            if np.int64(first) > end - position - 1:
                return np.int64(0), np.int64(-BAD_LENGTH)
            return np.int64(first), position + 1
    value, after = _read_long(position, end, np.int64(MAX_VARINT32_BYTES))
    if after > 0 and (value > np.uint64(INT32_MAX) or np.int64(value) > end - after):
        return np.int64(0), np.int64(-BAD_LENGTH)
    return np.int64(value), after


@inlined
def _read_long(position: Any, end: Any, max_bytes: Any) -> Any:
    value = np.uint64(0)
    shift = np.uint64(0)
    last = min(end, position + max_bytes)
    at_byte = position
    while at_byte < last:
        byte = np.uint64(load_uint8(at_byte))
        at_byte += 1
        # The tenth byte has one bit of the number; as upb and Java, the others are ignored.
        value |= (byte & np.uint64(0x7F)) << shift
        if byte < np.uint64(0x80):
            return value, at_byte
        shift += np.uint64(7)
    is_long = last - position == max_bytes
    return np.uint64(0), np.int64(-BAD_VARINT) if is_long else np.int64(-TRUNCATED)


@inlined
def skip_value(tag: Any, position: Any, end: Any, stack: Any, depth: Any) -> Any:
    """Return the position after the value of a tag; ``stack`` has room from ``depth`` on."""
    wire = tag & 7
    if wire == GROUP:
        return _skip_group(tag >> 3, position, end, stack, depth)
    return _skip_plain(wire, position, end)


@inlined
def _skip_plain(wire: Any, position: Any, end: Any) -> Any:
    if wire == VARINT:
        _, after = read_varint(position, end)
        return after
    if wire == SIZED:
        size, after = read_length(position, end)
        return after + size
    width = 8 if wire == FIXED_64 else 4 if wire == FIXED_32 else 0
    if width > 0:
        return position + width if end - position >= width else np.int64(-TRUNCATED)
    return np.int64(-MALFORMED)


@inlined
def _skip_group(number: Any, position: Any, end: Any, stack: Any, depth: Any) -> Any:
    inside = depth
    opened = number
    while True:
        if opened >= 0:
            if inside >= at.MAX_DEPTH:
                return np.int64(-TOO_DEEP)
            store_int64(stack + inside * at.FRAME, opened)
            inside += 1
            opened = np.int64(-1)
        if position >= end:
            return np.int64(-TRUNCATED)
        tag, position = read_tag(position, end)
        if position < 0:
            return position
        # As in upb, a field number may be 0 here.
        wire = tag & 7
        if wire == GROUP:
            opened = tag >> 3
        elif wire == END_GROUP:
            inside -= 1
            if load_int64(stack + inside * at.FRAME) != tag >> 3:
                return np.int64(-MALFORMED)
            if inside == depth:
                return position
        else:
            position = _skip_plain(wire, position, end)
            if position < 0:
                return position
