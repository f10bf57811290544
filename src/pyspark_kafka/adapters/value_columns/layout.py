"""The columns of an Arrow struct type, in preorder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

import pyarrow as pa

from . import column_table as at

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    width: int = 0


def columns_of(struct: pa.DataType) -> tuple[Column, ...]:
    """Return the columns of a struct type."""
    return tuple(_columns(struct, "", 0, 0))


def _columns(type_: pa.DataType, path: str, parent: int, number: int) -> Iterator[Column]:
    below: list[Column] = []
    for name, child in _children(type_):
        child_path = f"{path}.{name}" if path and name else path or name
        below += _columns(child, child_path, number, number + 1 + len(below))
    kind, width = _kind(type_)
    yield Column(type_, path, kind, parent, number + 1 + len(below), width)
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
        return at.STRUCT, 0
    if pa.types.is_map(type_) or pa.types.is_list(type_):
        return at.LIST, 4
    if pa.types.is_string(type_) or pa.types.is_binary(type_):
        return at.BYTES, 4
    if pa.types.is_boolean(type_):
        return at.FIXED, 1
    return at.FIXED, type_.bit_width // 8
