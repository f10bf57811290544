"""The memory of columns that kernels fill, and the Arrow array made of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
import pyarrow as pa

from ....domain.values.errors import DecodedTooLargeError, FailureReason
from . import layout
from .layout import ROOT, Column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...kernels.arrays import Int64Array, UInt8Array

MAX_SIZE: Final = 2**31 - 1
"""The elements and bytes that Arrow's 32-bit offsets can address."""

_MIN_DATA: Final = 1024
_MARGIN: Final = 1.25
_WORDS: Final = layout.STRIDE // 8


@final
@dataclass(slots=True)
class _Memory:
    values: UInt8Array
    validity: UInt8Array
    data: UInt8Array


@final
class ColumnSizes:
    """The room per row that columns needed last: most batches are like the one before.

    A column that grows is copied, which takes as long as to decode its values.
    """

    def __init__(self, columns: Sequence[Column]) -> None:
        self._values = [1.0] * len(columns)
        texts = sum(column.kind == layout.BYTES for column in columns)
        self._shares = [1 / max(texts, 1)] * len(columns)

    def note(self, number: int, rows: int, values: int, share: float) -> None:
        """Remember how many values a column had, and its share of the bytes of a batch."""
        self._values[number] = max(1.0, values / rows)
        self._shares[number] = share

    def values(self, number: int, rows: int, data_bytes: int) -> int:
        """Return a column's initial room for elements: a byte has at most one."""
        expected = self._values[number]
        if expected == 1:
            return rows
        return min(int(rows * expected * _MARGIN) + 1, rows + data_bytes, MAX_SIZE)

    def data(self, number: int, data_bytes: int) -> int:
        """Return the initial room for the bytes of a column of texts."""
        expected = min(self._shares[number] * _MARGIN, 1.0)
        return min(max(int(data_bytes * expected), _MIN_DATA), MAX_SIZE)


@final
class ColumnSet:
    """Columns with room for ``rows`` values; kernels fill them by ``address``.

    ``data_bytes`` are the bytes of the values to decode. ``sizes`` are of the batches before.
    """

    def __init__(
        self,
        columns: Sequence[Column],
        rows: int,
        data_bytes: int,
        sizes: ColumnSizes | None = None,
    ) -> None:
        self._columns = columns
        self._rows = rows
        self._data_bytes = data_bytes
        self._sizes = ColumnSizes(columns) if sizes is None else sizes
        self._table: Int64Array = np.zeros((len(columns), _WORDS), np.int64)
        self._memory: list[_Memory] = []
        for number, column in enumerate(columns):
            entry = self._table[number]
            entry[layout.KIND // 8], entry[layout.PARENT // 8] = column.kind, column.parent
            entry[layout.END // 8] = column.end
            room = self._room(number)
            entry[layout.CAPACITY // 8] = room
            self._memory.append(_memory(column, room, self._sizes.data(number, data_bytes)))
            self._point(number)

    @property
    def address(self) -> int:
        """The address of the table."""
        return self._table.ctypes.data

    def grow(self, column: int, data_bytes: int = 0) -> None:
        """Make room for ``data_bytes`` more bytes of a text, or else for more elements.

        The columns keep their content; addresses in the table change.

        :raises DecodedTooLargeError: if Arrow cannot address more.
        """
        if data_bytes:
            self._grow_data(column, data_bytes)
        else:
            self._grow_elements(column)
        self._point(column)

    def grow_for(self, row: int, reasons: UInt8Array, column: int, data_bytes: int = 0) -> None:
        """Make room for a row; give it a reason if Arrow cannot address it even alone.

        :raises DecodedTooLargeError: if Arrow cannot address it together with the rows before it.
        """
        try:
            self.grow(column, data_bytes)
        except DecodedTooLargeError:
            if row:
                raise
            reasons[row] = FailureReason.TOO_LARGE

    def finish(self) -> pa.Array[Any]:
        """Return the rows as a struct array, which takes the memory over."""
        if self._rows:
            for number, entry in enumerate(self._table):
                share = int(entry[layout.DATA_LENGTH // 8]) / max(self._data_bytes, 1)
                self._sizes.note(number, self._rows, int(entry[layout.LENGTH // 8]), share)
        return self._array(ROOT)

    def _room(self, number: int) -> int:
        """Return the capacity of a column: a field has its struct's, and column 0 all rows."""
        column = self._columns[number]
        if number == ROOT:
            return self._rows
        if self._columns[column.parent].kind == layout.STRUCT:
            return int(self._table[column.parent, layout.CAPACITY // 8])
        return self._sizes.values(number, self._rows, self._data_bytes)

    def _grow_data(self, column: int, more: int) -> None:
        used = int(self._table[column, layout.DATA_LENGTH // 8])
        if used + more > MAX_SIZE:
            raise DecodedTooLargeError(self._rows)
        memory = self._memory[column]
        size = min(max(2 * len(memory.data), used + more), MAX_SIZE)
        memory.data = resized(memory.data, used, size)

    def _grow_elements(self, column: int) -> None:
        """Grow a struct with its fields: they have the same capacity."""
        capacity = int(self._table[column, layout.CAPACITY // 8])
        if capacity >= MAX_SIZE:
            raise DecodedTooLargeError(self._rows)
        larger = min(max(2 * capacity, 64), MAX_SIZE)
        for number in _group(self._columns, column):
            one, memory = self._columns[number], self._memory[number]
            memory.values = resized(memory.values, len(memory.values), _value_bytes(one, larger))
            memory.validity = resized(memory.validity, len(memory.validity), larger)
            self._table[number, layout.CAPACITY // 8] = larger
            self._point(number)

    def _point(self, number: int) -> None:
        entry, memory = self._table[number], self._memory[number]
        entry[layout.VALUES // 8] = memory.values.ctypes.data
        entry[layout.VALIDITY // 8] = memory.validity.ctypes.data
        entry[layout.DATA // 8] = memory.data.ctypes.data
        entry[layout.DATA_CAPACITY // 8] = len(memory.data)

    def _array(self, number: int) -> pa.Array[Any]:
        column, memory = self._columns[number], self._memory[number]
        length = int(self._table[number, layout.LENGTH // 8])
        validity = memory.validity[:length]
        nulls = length - int(np.count_nonzero(validity))
        bitmap = _bits(validity) if nulls else None
        below = [self._array(child) for child in column.children]
        buffers = [bitmap, *self._value_buffers(number, column, memory, length)]
        return pa.Array.from_buffers(column.type, length, buffers, nulls, children=below)

    def _value_buffers(
        self, number: int, column: Column, memory: _Memory, length: int
    ) -> list[pa.Buffer]:
        if column.kind == layout.STRUCT:
            return []
        if pa.types.is_boolean(column.type):
            return [_bits(memory.values[:length])]
        values = _buffer(memory.values[: _value_bytes(column, length)])
        if column.kind == layout.BYTES:
            used = int(self._table[number, layout.DATA_LENGTH // 8])
            return [values, _buffer(memory.data[:used])]
        return [values]


def _memory(column: Column, rows: int, size: int) -> _Memory:
    values = np.empty(_value_bytes(column, rows), np.uint8)
    if column.kind in {layout.LIST, layout.BYTES}:
        values[:4] = 0
    data = np.empty(size if column.kind == layout.BYTES else 0, np.uint8)
    return _Memory(values, np.empty(rows, np.uint8), data)


def _value_bytes(column: Column, rows: int) -> int:
    has_offsets = column.kind in {layout.LIST, layout.BYTES}
    return column.width * (rows + has_offsets)


def resized(old: UInt8Array, used: int, size: int) -> UInt8Array:
    """Return memory of another size that begins with the bytes that are used."""
    new = np.empty(size, np.uint8)
    new[:used] = old[:used]
    return new


def _group(columns: Sequence[Column], column: int) -> list[int]:
    """Return a column with all below it that have as many values: down to lists."""
    numbers, number = [column], column + 1
    while number < columns[column].end and columns[column].kind == layout.STRUCT:
        numbers.append(number)
        is_struct = columns[number].kind == layout.STRUCT
        number = number + 1 if is_struct else columns[number].end
    return numbers


def _bits(flags: UInt8Array) -> pa.Buffer:
    return _buffer(np.packbits(flags, bitorder="little"))


def _buffer(array: UInt8Array) -> pa.Buffer:
    return pa.py_buffer(array)  # type: ignore[arg-type]  # the stubs know bytes only
