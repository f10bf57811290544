"""The columns of a struct array: a table of them, and functions by which kernels read it.

Each column has six numbers of 64 bits; offsets in an entry are in bytes. Columns are numbered as
``columns.layout`` numbers them. ``table`` is the address of an ``InputColumns``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
import pyarrow as pa

from ...kernels.memory import load_int32, load_int64, load_uint8
from ...kernels.parts import inlined
from ..columns import layout
from .time_zones import local_times

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...kernels.arrays import Int64Array
    from ..columns.layout import Column

STRIDE: Final = 48
VALIDITY, FIRST, VALUES, DATA, LOCAL = range(0, 40, 8)
"""The parts of an entry:

- The address of the bitmap of valid values, 0 if none is null, and the place of the first value in
  the bitmaps of validity and of booleans.
- The address of the first value of fixed width, of the first 32-bit offset, or of a bitmap; and of
  the bytes of strings and binaries.
- The address of the local times of timestamps, in microseconds, if they are wanted.
"""

_WORDS: Final = STRIDE // 8


@final
class InputColumns:
    """The addresses of one struct array; they are valid as long as this object is."""

    def __init__(
        self,
        columns: Sequence[Column],
        array: pa.Array[Any],
        *,
        has_local_times: bool = False,
        time_zone: str | None = None,
    ) -> None:
        """Take an array whose type has the fields of ``columns``, in any encoding.

        Local times are in ``time_zone``, or else in each column's own.

        :raises ValueError: if there is no such time zone.
        """
        self._columns = columns
        self._has_local_times = has_local_times
        self._time_zone = time_zone
        self._table: Int64Array = np.zeros((len(columns), _WORDS), np.int64)
        self._kept: list[pa.Array[Any] | Int64Array] = []
        self._add(0, array)

    @property
    def address(self) -> int:
        """The address of the table."""
        return self._table.ctypes.data

    def _add(self, number: int, array: pa.Array[Any]) -> None:
        column, entry = self._columns[number], self._table[number]
        if self._has_local_times:
            self._add_local(entry, array)
        array = plain(array, column)
        self._kept.append(array)
        buffers = array.buffers()
        if array.null_count:
            entry[VALIDITY // 8] = _address(buffers[0])
        entry[FIRST // 8] = array.offset
        if column.kind == layout.FIXED:
            shift = array.offset * column.width if not _is_boolean(array) else 0
            entry[VALUES // 8] = _address(buffers[1]) + shift
        elif column.kind != layout.STRUCT:
            entry[VALUES // 8] = _address(buffers[1]) + array.offset * column.width
        if column.kind == layout.BYTES:
            entry[DATA // 8] = _address(buffers[2])
        for below, child in zip(column.children, children_of(array), strict=True):
            self._add(below, child)

    def _add_local(self, entry: Int64Array, array: pa.Array[Any]) -> None:
        if not pa.types.is_timestamp(array.type) or not array.type.tz:
            return
        local = local_times(array, self._time_zone or array.type.tz)
        self._kept.append(local)
        entry[LOCAL // 8] = local.ctypes.data


def plain(array: pa.Array[Any], column: Column) -> pa.Array[Any]:
    """Return an array in the layout that kernels read.

    Users' functions may return dictionaries, views, or strings with 64-bit offsets.
    """
    if column.kind == layout.LIST and not isinstance(array, pa.ListArray):
        return array.cast(pa.list_(array.type.value_type))
    if column.kind in {layout.LIST, layout.STRUCT} or array.type == column.type:
        return array
    return array.cast(column.type)


def children_of(array: pa.Array[Any]) -> list[pa.Array[Any]]:
    """Return the arrays of the columns directly below a column."""
    if isinstance(array, pa.StructArray):
        return [array.field(number) for number in range(array.type.num_fields)]
    if isinstance(array, pa.ListArray):
        return [array.values]
    return []


def _is_boolean(array: pa.Array[Any]) -> bool:
    return bool(pa.types.is_boolean(array.type))


def _address(buffer: pa.Buffer | None) -> int:
    # Arrays without values may have no buffers.
    return buffer.address if buffer is not None else 0


@inlined
def is_null(table: int, column: int, row: int) -> Any:
    """Return whether a value is null."""
    entry = table + column * STRIDE
    bitmap = load_int64(entry + VALIDITY)
    return bitmap != 0 and not _bit(bitmap, load_int64(entry + FIRST) + row)


@inlined
def read_bool(table: int, column: int, row: int) -> Any:
    """Return a boolean."""
    entry = table + column * STRIDE
    return _bit(load_int64(entry + VALUES), load_int64(entry + FIRST) + row)


@inlined
def values(table: int, column: int) -> Any:
    """Return the address of the first value of fixed width, or of the first offset."""
    return load_int64(table + column * STRIDE + VALUES)


@inlined
def local_values(table: int, column: int) -> Any:
    """Return the address of the first local time of a column of timestamps."""
    return load_int64(table + column * STRIDE + LOCAL)


@inlined
def data(table: int, column: int) -> Any:
    """Return the address of the bytes of a column of strings or binaries."""
    return load_int64(table + column * STRIDE + DATA)


@inlined
def offset(table: int, column: int, row: int) -> Any:
    """Return where a text or a list begins: in bytes, or as a row of the column below."""
    return np.int64(load_int32(values(table, column) + 4 * row))


@inlined
def _bit(bitmap: int, place: int) -> Any:
    return (np.int64(load_uint8(bitmap + (place >> 3))) >> (place & 7)) & 1 != 0
