"""Finding duplicate keys in a map that a kernel is about to close."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ..kernels.memory import load_int32, load_int64, load_uint8, store_int64
from ..kernels.parts import inlined
from ..value_columns import layout
from ..value_columns.column_kernel import entry, length

MAX_COMPARED: Final = 8
"""Up to this many keys, each is compared with each."""

_FNV_OFFSET: Final = np.uint64(0xCBF29CE484222325)
_FNV_PRIME: Final = np.uint64(0x100000001B3)


@inlined
def open_entries(table: int, column: int) -> Any:
    """Return how many entries a map that is not closed has."""
    offsets = load_int64(entry(table, column) + layout.VALUES)
    return length(table, column + 1) - load_int32(offsets + 4 * length(table, column))


@inlined
def needed_slots(table: int, column: int) -> Any:
    """Return how many slots the keys of an open map need: a power of two, or 0."""
    entries = open_entries(table, column)
    slots = np.int64(0)
    if entries > MAX_COMPARED:
        slots = np.int64(2 * MAX_COMPARED)
        while slots < 2 * entries:
            slots *= 2
    return slots


@inlined
def has_duplicate_keys(table: int, column: int, slots: int, slot_count: int) -> Any:
    """Return whether two keys of an open map are equal; ``slots`` is an address of numbers."""
    keys = entry(table, column + 2)
    end = load_int64(keys + layout.LENGTH)
    first = end - open_entries(table, column)
    if slot_count == 0:
        for key in range(first + 1, end):
            for other in range(first, key):
                if is_same_key(keys, key, other):
                    return True
        return False
    for slot in range(slot_count):
        store_int64(slots + 8 * slot, -1)
    for key in range(first, end):
        slot = hash_of_key(keys, key, slots) & (slot_count - 1)
        while load_int64(slots + 8 * slot) >= 0:
            if is_same_key(keys, key, load_int64(slots + 8 * slot)):
                return True
            slot = (slot + 1) & (slot_count - 1)
        store_int64(slots + 8 * slot, key)
    return False


@inlined
def key_start(keys: int, key: int) -> Any:
    """Return the place of a key in the bytes of its column; the next key's is its end."""
    return np.int64(load_int32(load_int64(keys + layout.VALUES) + 4 * key))


@inlined
def is_same_key(keys: int, one: int, other: int) -> Any:
    """Return whether two keys are equal."""
    data = load_int64(keys + layout.DATA)
    start = key_start(keys, one)
    other_start = key_start(keys, other)
    size = key_start(keys, one + 1) - start
    if size != key_start(keys, other + 1) - other_start:
        return False
    for place in range(size):
        if load_uint8(data + start + place) != load_uint8(data + other_start + place):
            return False
    return True


@inlined
def hash_of_key(keys: int, key: int, seed: int) -> Any:
    """Return the FNV-1a hash of a key.

    The seed is an address, which producers of keys that collide do not know.
    """
    data = load_int64(keys + layout.DATA)
    bits = _FNV_OFFSET ^ np.uint64(seed)
    for place in range(key_start(keys, key), key_start(keys, key + 1)):
        bits = (bits ^ np.uint64(load_uint8(data + place))) * _FNV_PRIME
    return np.int64(bits ^ bits >> np.uint64(32))
