"""The table by which the kernel decodes: an entry for each column, and the names of fields.

Entries are in the order of ``columns.layout``. Offsets are in bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

import numpy as np

from ....domain.errors import OptionsError
from ....domain.values import data_types as types
from . import context

if TYPE_CHECKING:
    from ....domain.values.data_types import DataType, StructField, StructType
    from ...kernels.arrays import Array
    from .context import KernelMemory

STRIDE: Final = 64
KIND, MEMBERS, COUNT, BUCKETS, BUCKET_MASK, PRECISION, SCALE = range(0, 56, 8)
"""Of a struct: the address of its members and their count, and that of a hash table and its mask,
if there are many members: 64-bit indexes of members, or -1."""

MEMBER_STRIDE: Final = 40
FIRST_WORD, LAST_WORD, NAME, NAME_BYTES, COLUMN = range(0, MEMBER_STRIDE, 8)
"""The first and the last eight bytes of a name, which may overlap; the last ones are 0 for shorter
names. The address and the size of the name, and the member's column."""

MAX_COMPARED: Final = 8
"""Structs of more members have a hash table."""

HASH_FACTOR: Final = 0x9E3779B97F4A7C15

STRUCT, ARRAY, MAP, STRING, BINARY, BOOLEAN, DOUBLE, FLOAT = range(8)
DECIMAL, DATE, TIMESTAMP, TIMESTAMP_NTZ, LONG, INTEGER, SHORT, BYTE = range(8, 16)

_KINDS: Final = {
    types.STRING: STRING,
    types.BINARY: BINARY,
    types.BOOLEAN: BOOLEAN,
    types.DOUBLE: DOUBLE,
    types.FLOAT: FLOAT,
    types.DATE: DATE,
    types.TIMESTAMP: TIMESTAMP,
    types.TIMESTAMP_NTZ: TIMESTAMP_NTZ,
    types.LONG: LONG,
    types.INTEGER: INTEGER,
    types.SHORT: SHORT,
    types.BYTE: BYTE,
}
_WORD: Final = 2**64 - 1


@final
class DecodeTable:
    """The table of a struct type, in a kernel's memory.

    :raises OptionsError: if the type has a map whose keys are not strings, or an interval.
    """

    def __init__(self, memory: KernelMemory, struct: StructType, columns: int) -> None:
        self._entries = np.zeros((columns, STRIDE // 8), np.int64)
        self._kept: list[Array] = []
        self._column = 0
        self.depth = self._compile(struct)
        memory.point(context.PROGRAM, self._entries)
        memory.keep(self._kept)

    def _compile(self, data_type: DataType) -> int:
        """Write the entries of a type, and return how deep values of it are nested."""
        entry = self._entries[self._column]
        self._column += 1
        match data_type:
            case types.StructType(fields):
                entry[KIND // 8] = STRUCT
                return 1 + self._compile_struct(entry, fields)
            case types.ArrayType(element):
                entry[KIND // 8] = ARRAY
                return 1 + self._compile(element)
            case types.MapType(key, value):
                _check_key(data_type, key)
                entry[KIND // 8] = MAP
                # The entries, a struct of key and value.
                self._column += 1
                return 1 + max(self._compile(key), self._compile(value))
            case types.DecimalType(precision, scale):
                entry[KIND // 8] = DECIMAL
                entry[PRECISION // 8], entry[SCALE // 8] = precision, scale
                return 0
        if data_type not in _KINDS:
            raise OptionsError([f"JSON has no values of the type {data_type}. Read a string"])
        entry[KIND // 8] = _KINDS[data_type]
        return 0

    def _compile_struct(self, entry: Array, fields: tuple[StructField, ...]) -> int:
        members = []
        depth = 0
        for field in fields:
            members.append((field.name.encode(), self._column))
            depth = max(depth, self._compile(field.type))
        self._write_members(entry, members)
        return depth

    def _write_members(self, entry: Array, members: list[tuple[bytes, int]]) -> None:
        names = np.frombuffer(b"".join(name for name, _ in members), np.uint8)
        table = np.zeros((max(len(members), 1), MEMBER_STRIDE // 8), np.uint64)
        place = names.ctypes.data
        for row, (name, column) in zip(table, members, strict=False):
            row[:] = (*_words(name), place, len(name), column)
            place += len(name)
        entry[MEMBERS // 8], entry[COUNT // 8] = table.ctypes.data, len(members)
        self._kept += [names, table]
        if len(members) > MAX_COMPARED:
            buckets = _buckets([name for name, _ in members])
            entry[BUCKETS // 8], entry[BUCKET_MASK // 8] = buckets.ctypes.data, len(buckets) - 1
            self._kept.append(buckets)


def _check_key(data_type: DataType, key: DataType) -> None:
    if key != types.STRING:
        raise OptionsError([f"the names in JSON are strings: {data_type} cannot have other keys"])


def _words(name: bytes) -> tuple[int, int]:
    first = int.from_bytes(name[:8], "little")
    return first, int.from_bytes(name[-8:], "little") if len(name) >= 8 else 0


def _buckets(names: list[bytes]) -> Array:
    """Return an open hash table of at least twice as many buckets as names."""
    size = 1 << (2 * len(names) - 1).bit_length()
    buckets = np.full(size, -1, np.int64)
    for index, name in enumerate(names):
        place = name_hash(name) & (size - 1)
        while buckets[place] >= 0:
            place = (place + 1) & (size - 1)
        buckets[place] = index
    return buckets


def name_hash(name: bytes) -> int:
    """Return the hash of a name, as the kernel computes it."""
    first, last = _words(name)
    mixed = (first * HASH_FACTOR + (last ^ len(name))) & _WORD
    return (mixed * HASH_FACTOR & _WORD) >> 32
