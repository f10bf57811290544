"""The table of time zones that the kernel knows by name.

An entry is 32 bytes: the address and the size of the name, the address of the offsets, and their
count: 0 until they are needed. Entries are in the order of their names. An offset is 16 bytes: the
local time, in seconds since 1970, from which on it applies, and the seconds to subtract for UTC.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Final, final

import numpy as np

from ..encoding.time_zones import find_zone, offset_changes, zone_names
from . import context

if TYPE_CHECKING:
    from ...kernels.arrays import Int64Array
    from .context import KernelMemory

STRIDE: Final = 32
NAME, NAME_BYTES, OFFSETS, COUNT = range(0, STRIDE, 8)

NO_ZONE: Final = -1
"""The count of a zone whose file cannot be read."""

_ALWAYS: Final = -(2**62)


def offsets_of(name: str) -> Int64Array | None:
    """Return the offsets of a zone from local times on; None if there is none.

    Of a local time that a clock shows twice, the offset is the earlier one; a local time that it
    skips has the offset before it, as in Java.
    """
    zone = find_zone(name)
    if zone is None:
        return None
    if isinstance(zone, int):
        return np.array([(_ALWAYS, zone)], np.int64)
    changes = offset_changes(zone).copy()
    starts, offsets = changes.T
    starts[0] = _ALWAYS
    starts[1:] += np.maximum(offsets[1:], offsets[:-1])
    return changes


@final
class ZoneTable:
    """The zones that values may name, in a kernel's memory, and the default one.

    A kernel asks for the names with the first one that it meets, and for offsets when they are
    needed: at most once for each zone there is, whatever records name.
    """

    def __init__(self, memory: KernelMemory, default: str) -> None:
        self._memory = memory
        self._names: list[bytes] = []
        self._table: Int64Array = _table(1)
        self._add_offsets(self._table[0], default)
        memory.point(context.DEFAULT_ZONE, self._table)

    def add(self, name: bytes) -> None:
        """Let the kernel know the names of zones, and the offsets of this one if there is one."""
        if not self._names:
            self._add_names()
        place = bisect_left(self._names, name)
        if place < len(self._names) and self._names[place] == name:
            self._add_offsets(self._table[place], name.decode())

    def _add_names(self) -> None:
        self._names = sorted(name.encode() for name in zone_names())
        self._table = _table(len(self._names))
        text = np.frombuffer(b"".join(self._names), np.uint8)
        sizes = np.array([len(name) for name in self._names], np.int64)
        self._table[:, NAME // 8] = text.ctypes.data + np.cumsum(sizes) - sizes
        self._table[:, NAME_BYTES // 8] = sizes
        self._memory.keep([text])
        self._memory.point(context.ZONES, self._table)
        self._memory[context.ZONE_COUNT] = len(self._names)

    def _add_offsets(self, entry: Int64Array, name: str) -> None:
        offsets = offsets_of(name)
        if offsets is None:
            entry[COUNT // 8] = NO_ZONE
            return
        self._memory.keep([offsets])
        entry[OFFSETS // 8], entry[COUNT // 8] = offsets.ctypes.data, len(offsets)


def _table(count: int) -> Int64Array:
    return np.zeros((count, STRIDE // 8), np.int64)
