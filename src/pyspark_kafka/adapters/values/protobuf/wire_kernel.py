"""Kernel functions that read Protobuf's wire format.

They accept what upb accepts: tags and lengths in up to five bytes, varints in up to ten. A position
that is returned is negative if the read failed: the negative of a ``FailureReason``.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ...kernels.memory import load_int64, load_uint8, store_int64
from ...kernels.parts import inlined
from ..columns import decoding
from ..columns.bytes_kernel import read_varint as read_bits
from . import program_layout as at

VARINT, FIXED_64, SIZED, GROUP, END_GROUP, FIXED_32 = range(6)

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
    return read_bits(position, end, np.int64(MAX_VARINT_BYTES))


@inlined
def read_tag(position: Any, end: Any) -> Any:
    """Return a field number and wire type, and the position after it; ``position < end``."""
    first = load_uint8(position)
    if first < 0x80:
        return np.int64(first), position + 1
    value, after = read_bits(position, end, np.int64(MAX_VARINT32_BYTES))
    if after > 0 and value > np.uint64(UINT32_MAX):
        return np.int64(0), np.int64(-decoding.BAD_VARINT)
    return np.int64(value), after


@inlined
def read_length(position: Any, end: Any) -> Any:
    """Return a length, and the position after it; at least that many bytes follow."""
    if position < end:
        first = load_uint8(position)
        if first < 0x80:
            if np.int64(first) > end - position - 1:
                return np.int64(0), np.int64(-decoding.BAD_LENGTH)
            return np.int64(first), position + 1
    value, after = read_bits(position, end, np.int64(MAX_VARINT32_BYTES))
    if after > 0 and (value > np.uint64(INT32_MAX) or np.int64(value) > end - after):
        return np.int64(0), np.int64(-decoding.BAD_LENGTH)
    return np.int64(value), after


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
        return position + width if end - position >= width else np.int64(-decoding.TRUNCATED)
    return np.int64(-decoding.MALFORMED)


@inlined
def _skip_group(number: Any, position: Any, end: Any, stack: Any, depth: Any) -> Any:
    inside = depth
    opened = number
    while True:
        if opened >= 0:
            if inside >= at.MAX_DEPTH:
                return np.int64(-decoding.TOO_DEEP)
            store_int64(stack + inside * at.FRAME, opened)
            inside += 1
            opened = np.int64(-1)
        if position >= end:
            return np.int64(-decoding.TRUNCATED)
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
                return np.int64(-decoding.MALFORMED)
            if inside == depth:
                return position
        else:
            position = _skip_plain(wire, position, end)
            if position < 0:
                return position
