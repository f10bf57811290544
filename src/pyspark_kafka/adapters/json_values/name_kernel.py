"""Finding the member of a struct that a name is."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ..kernels.memory import load_int64, load_uint8, load_uint64
from ..kernels.parts import inlined
from . import program as at_

_FACTOR: Final = np.uint64(at_.HASH_FACTOR)
_EIGHT: Final = np.uint64(8)
_ONE: Final = np.uint64(1)


@inlined
def find_member(entry: int, expected: int, name: int, size: int, limit: int) -> Any:
    """Return the index of the member of a name, or -1; names in order are found at once.

    ``expected`` is the index behind the last member's, ``limit`` the end of readable memory.
    """
    first = _first_word(name, size, limit)
    count = load_int64(entry + at_.COUNT)
    members = load_int64(entry + at_.MEMBERS)
    if expected < count and _is_named(members + expected * at_.MEMBER_STRIDE, first, name, size):
        return expected
    if count > at_.MAX_COMPARED:
        return _find_hashed(entry, members, first, name, size)
    for index in range(count):
        if _is_named(members + index * at_.MEMBER_STRIDE, first, name, size):
            return index
    return -1


@inlined
def _find_hashed(entry: int, members: int, first: Any, name: int, size: int) -> Any:
    last = load_uint64(name + size - 8) if size >= 8 else np.uint64(0)
    mixed = (first * _FACTOR + (last ^ np.uint64(size))) * _FACTOR
    mask = load_int64(entry + at_.BUCKET_MASK)
    buckets = load_int64(entry + at_.BUCKETS)
    place = np.int64(mixed >> np.uint64(32)) & mask
    while True:
        index = load_int64(buckets + 8 * place)
        if index < 0 or _is_named(members + index * at_.MEMBER_STRIDE, first, name, size):
            return index
        place = (place + 1) & mask


@inlined
def _first_word(name: int, size: int, limit: int) -> Any:
    if limit - name >= 8:
        word = load_uint64(name)
        return word if size >= 8 else word & ((_ONE << (_EIGHT * np.uint64(size))) - _ONE)
    word = np.uint64(0)
    for place in range(min(size, 8)):
        word |= np.uint64(load_uint8(name + place)) << (_EIGHT * np.uint64(place))
    return word


@inlined
def _is_named(member: int, first: Any, name: int, size: int) -> Any:
    if load_uint64(member + at_.FIRST_WORD) != first:
        return False
    if load_int64(member + at_.NAME_BYTES) != size:
        return False
    if size <= 8:
        return True
    if load_uint64(member + at_.LAST_WORD) != load_uint64(name + size - 8):
        return False
    other = load_int64(member + at_.NAME)
    for place in range(8, size - 8, 8):
        if load_uint64(name + place) != load_uint64(other + place):
            return False
    return True
