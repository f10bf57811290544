"""Functions of kernels on bytes at addresses: varints, equal bytes, hashes.

A position that is returned is negative if the read failed: the negative of a ``FailureReason``.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ...kernels.memory import load_uint8, store_uint8
from ...kernels.parts import inlined
from .decoding import BAD_VARINT, TRUNCATED

U = np.uint64

_OFFSET_BASIS: Final = np.uint64(0xCBF29CE484222325)
_PRIME: Final = np.uint64(0x100000001B3)
"""Of FNV-1a, a hash of short keys."""


@inlined
def read_varint(position: Any, end: Any, max_bytes: Any) -> Any:
    """Return the bits of a varint, and the position after it."""
    value = U(0)
    shift = U(0)
    last = min(end, position + max_bytes)
    place = position
    while place < last:
        byte = U(load_uint8(place))
        place += 1
        # All bits of the tenth byte except one are lost.
        value |= (byte & U(0x7F)) << shift
        if byte < U(0x80):
            return value, place
        shift += U(7)
    is_long = last - position == max_bytes
    return U(0), np.int64(-BAD_VARINT) if is_long else np.int64(-TRUNCATED)


@inlined
def zig_zag(bits: Any) -> Any:
    """Return the signed number of a zig-zag varint's bits."""
    return np.int64(bits >> U(1)) ^ -np.int64(bits & U(1))


@inlined
def put_varint(at: int, number: Any) -> Any:
    """Write an unsigned 64-bit number as a varint, and return where it ends: at most 10 bytes."""
    while number > U(0x7F):
        store_uint8(at, np.uint8((number & U(0x7F)) | U(0x80)))
        at += 1
        number >>= U(7)
    store_uint8(at, np.uint8(number))
    return at + 1


@inlined
def are_equal(one: int, other: int, size: int) -> Any:
    """Return whether the bytes at two addresses are equal."""
    place = 0
    while place < size and load_uint8(one + place) == load_uint8(other + place):
        place += 1
    return place == size


@inlined
def hash_bytes(start: int, size: int, seed: Any) -> Any:
    """Return the FNV-1a hash of bytes."""
    code = _OFFSET_BASIS ^ seed
    for place in range(size):
        code = (code ^ U(load_uint8(start + place))) * _PRIME
    return code
