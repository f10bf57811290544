"""The columns of an Arrow struct type, and the table by which kernels find them.

The table has 16 numbers of 64 bits for each column. Columns are in preorder: a struct is before its
fields, a list before its element, and a map before its entries, a struct of key and value. Offsets
of numbers are in bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, final

import pyarrow as pa

STRIDE: Final = 128
"""The bytes of a column's entry. What kernels change is in its first cache line."""

VALUES, VALIDITY, LENGTH, CAPACITY, DATA, DATA_LENGTH, DATA_CAPACITY = range(0, 56, 8)
"""The values are the address of those of fixed width, or of the 32-bit offsets; a struct has none.
The validity is the address of a byte for each value: 1, or 0 if it is null. The data are the
address of the bytes of strings and binaries."""

KIND, PARENT, END = range(64, 88, 8)
"""The end is the number of the first column that is not below this one."""

STRUCT, LIST, BYTES, FIXED = range(4)
"""The kinds: a list may be a map, and bytes a string or a binary. Fixed are numbers and what Arrow
stores as numbers; a boolean is a byte until the column is finished."""

ROOT: Final = 0
"""The number of the struct itself."""


@final
@dataclass(frozen=True, slots=True)
class Column:
    """One column: ``parent`` and ``end`` are numbers of columns, ``width`` is in bytes.

    ``path`` names it in error messages: ``outer.inner`` for a field, ``outer.element`` for the
    elements of a list, ``outer.key`` and ``outer.value`` for a map.
    """

    type: pa.DataType
    path: str
    kind: int
    parent: int
    end: int
    width: int
    children: tuple[int, ...]
    """The numbers of the columns directly below it."""


def columns_of(struct: pa.DataType) -> tuple[Column, ...]:
    """Return the columns of a struct type."""
    return tuple(_columns(struct, "", 0, 0))


def _columns(type_: pa.DataType, path: str, parent: int, number: int) -> Iterator[Column]:
    below: list[Column] = []
    children = []
    for name, child in _children(type_):
        child_path = f"{path}.{name}" if path and name else path or name
        children.append(number + 1 + len(below))
        below += _columns(child, child_path, number, children[-1])
    kind, width = _kind(type_)
    yield Column(type_, path, kind, parent, number + 1 + len(below), width, tuple(children))
    yield from below


def _children(type_: pa.DataType) -> list[tuple[str, pa.DataType]]:
    if pa.types.is_struct(type_):
        return [(field.name, field.type) for field in type_]
    if pa.types.is_map(type_):
        entries = pa.struct([type_.key_field, type_.item_field])
        return [("", entries)]
    if pa.types.is_list(type_):
        return [("element", type_.value_type)]
    return []


def _kind(type_: pa.DataType) -> tuple[int, int]:
    if pa.types.is_struct(type_):
        return STRUCT, 0
    if pa.types.is_map(type_) or pa.types.is_list(type_):
        return LIST, 4
    if pa.types.is_string(type_) or pa.types.is_binary(type_):
        return BYTES, 4
    if pa.types.is_boolean(type_):
        return FIXED, 1
    return FIXED, type_.bit_width // 8
