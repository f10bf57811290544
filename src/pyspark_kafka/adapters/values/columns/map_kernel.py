"""Finding equal keys of a map: of strings, in one that a kernel is about to close, or of any."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ...kernels.memory import load_int32, load_int64, store_int64
from ...kernels.parts import inlined
from . import layout
from .bytes_kernel import are_equal, hash_bytes
from .column_kernel import entry, length

MAX_COMPARED: Final = 8
"""Up to this many keys, each is compared with each."""


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
    """Return whether two keys of an open map are equal.

    ``slots`` is an address of numbers, which producers of keys that collide do not know.
    """
    keys = entry(table, column + 2)
    end = load_int64(keys + layout.LENGTH)
    if slot_count == 0:
        return has_equal_keys(keys, 0, end - open_entries(table, column), end)
    for slot in range(slot_count):
        store_int64(slots + 8 * slot, -1)
    for key in range(end - open_entries(table, column), end):
        start, size = _place_of(keys, 0, key)
        code = hash_bytes(start, size, np.uint64(slots))
        place = np.int64(code ^ code >> np.uint64(32)) & (slot_count - 1)
        while load_int64(slots + 8 * place) >= 0:
            if _is_same(keys, 0, key, load_int64(slots + 8 * place)):
                return True
            place = (place + 1) & (slot_count - 1)
        store_int64(slots + 8 * place, key)
    return False


@inlined
def has_equal_keys(keys: int, width: Any, first: Any, last: Any) -> Any:
    """Return whether two keys from one to another are equal, by comparing each with each.

    ``keys`` is the address of their column's entry, and ``width`` their bytes, 0 for strings.
    """
    for key in range(first + 1, last):
        for other in range(first, key):
            if _is_same(keys, width, key, other):
                return True
    return False


@inlined
def _is_same(keys: int, width: int, one: int, other: int) -> Any:
    start, size = _place_of(keys, width, one)
    other_start, other_size = _place_of(keys, width, other)
    return size == other_size and are_equal(start, other_start, size)


@inlined
def _place_of(keys: int, width: int, key: int) -> Any:
    """Return the address of a key, and its bytes."""
    values = load_int64(keys + layout.VALUES)
    if width > 0:
        return values + width * key, np.int64(width)
    start = np.int64(load_int32(values + 4 * key))
    end = np.int64(load_int32(values + 4 * key + 4))
    return load_int64(keys + layout.DATA) + start, end - start
