"""Functions by which kernels fill columns.

``table`` is the address of the table that ``layout`` describes, ``column`` a column's number.
A kernel that has put values but fails to decode its row calls ``truncate`` for column 0.

Room: a struct and the columns below it, down to lists, have the same capacity, and no field has
more values than its struct is to have. A kernel therefore asks ``is_full`` for the elements of
lists only, before each element, and ``has_room_for`` for each text. Column 0 has room for all rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...kernels.memory import (
    copy_memory,
    load_int32,
    load_int64,
    store_double,
    store_float,
    store_int8,
    store_int16,
    store_int32,
    store_int64,
    store_uint8,
    store_uint64,
)
from ...kernels.parts import inlined
from . import decoding, layout


@inlined
def entry(table: int, column: int) -> int:
    """Return the address of a column's entry."""
    return table + column * layout.STRIDE


@inlined
def length(table: int, column: int) -> Any:
    """Return how many values a column has."""
    return load_int64(entry(table, column) + layout.LENGTH)


@inlined
def is_full(table: int, column: int) -> Any:
    """Return whether a column has no room for another value."""
    address = entry(table, column)
    return load_int64(address + layout.LENGTH) >= load_int64(address + layout.CAPACITY)


@inlined
def has_room_for(table: int, column: int, size: int) -> Any:
    """Return whether the texts of a column have room for ``size`` more bytes."""
    address = entry(table, column)
    return size <= load_int64(address + layout.DATA_CAPACITY) - load_int64(
        address + layout.DATA_LENGTH
    )


@inlined
def lacks_room(words: int, table: int, column: int, size: int) -> Any:
    """Return whether a column has no room for a text, and note that in the words of a decoder."""
    if has_room_for(table, column, size):
        return False
    store_int64(words + decoding.FULL_COLUMN, column)
    store_int64(words + decoding.FULL_BYTES, size)
    return True


@inlined
def put_int8(table: int, column: int, value: int) -> None:
    """Append an 8-bit number."""
    store_int8(_next_place(table, column, 1), np.int8(value))


@inlined
def put_bool(table: int, column: int, value: bool) -> None:
    """Append a boolean."""
    store_uint8(_next_place(table, column, 1), np.uint8(value))


@inlined
def put_int16(table: int, column: int, value: int) -> None:
    """Append a 16-bit number."""
    store_int16(_next_place(table, column, 2), np.int16(value))


@inlined
def put_int32(table: int, column: int, value: int) -> None:
    """Append a 32-bit number."""
    store_int32(_next_place(table, column, 4), np.int32(value))


@inlined
def put_int64(table: int, column: int, value: int) -> None:
    """Append a 64-bit number."""
    store_int64(_next_place(table, column, 8), np.int64(value))


@inlined
def put_float(table: int, column: int, value: Any) -> None:
    """Append a 32-bit floating-point number."""
    store_float(_next_place(table, column, 4), np.float32(value))


@inlined
def put_double(table: int, column: int, value: Any) -> None:
    """Append a 64-bit floating-point number."""
    store_double(_next_place(table, column, 8), np.float64(value))


@inlined
def put_decimal(table: int, column: int, low: Any, high: int) -> None:
    """Append an unscaled decimal of 128 bits, in two's complement."""
    place = _next_place(table, column, 16)
    store_uint64(place, np.uint64(low))
    store_int64(place + 8, np.int64(high))


@inlined
def put_bytes(table: int, column: int, source: int, size: int) -> None:
    """Append a text: a copy of ``size`` bytes, for which there is room."""
    copy_memory(data_end(table, column), source, size)
    put_written_bytes(table, column, size)


@inlined
def data_end(table: int, column: int) -> Any:
    """Return the address where the next bytes of a text go."""
    address = entry(table, column)
    return load_int64(address + layout.DATA) + load_int64(address + layout.DATA_LENGTH)


@inlined
def put_written_bytes(table: int, column: int, size: int) -> None:
    """Append the ``size`` bytes that the kernel has written at ``data_end`` as a text."""
    address = entry(table, column)
    row = _append(address)
    end = load_int64(address + layout.DATA_LENGTH) + size
    store_int64(address + layout.DATA_LENGTH, end)
    _store_offset(address, row, end)


@inlined
def close_list(table: int, column: int) -> None:
    """Append a list of the elements, or a map of the entries, that were put since the last one."""
    address = entry(table, column)
    _store_offset(address, _append(address), length(table, column + 1))


@inlined
def put_complete_struct(table: int, column: int) -> None:
    """Append a struct whose fields must all have been put; that is not checked."""
    _append(entry(table, column))


@inlined
def close_struct(table: int, column: int) -> None:
    """Append a struct of the fields that were put since the last one; the others become null."""
    address = entry(table, column)
    row = load_int64(address + layout.LENGTH)
    end = load_int64(address + layout.END)
    field = column + 1
    while field < end:
        if length(table, field) == row:
            put_null(table, field)
        field = load_int64(entry(table, field) + layout.END)
    _append(address)


@inlined
def put_null(table: int, column: int) -> None:
    """Append a null; below a null struct, fields are null as well."""
    end = load_int64(entry(table, column) + layout.END)
    below = column
    while below < end:
        address = entry(table, below)
        kind = load_int64(address + layout.KIND)
        row = load_int64(address + layout.LENGTH)
        store_uint8(load_int64(address + layout.VALIDITY) + row, np.uint8(0))
        store_int64(address + layout.LENGTH, row + 1)
        if kind == layout.BYTES:
            _store_offset(address, row, load_int64(address + layout.DATA_LENGTH))
        elif kind == layout.LIST:
            _store_offset(address, row, length(table, below + 1))
        below = below + 1 if kind == layout.STRUCT else load_int64(address + layout.END)


@inlined
def truncate(table: int, column: int, size: int) -> None:
    """Remove all but the first ``size`` values of a column, with what is below them."""
    store_int64(entry(table, column) + layout.LENGTH, size)
    end = load_int64(entry(table, column) + layout.END)
    below = column
    while below < end:
        address = entry(table, below)
        if below > column:
            _follow_parent(table, below)
        if load_int64(address + layout.KIND) == layout.BYTES:
            store_int64(
                address + layout.DATA_LENGTH, _offset(address, load_int64(address + layout.LENGTH))
            )
        below += 1


@inlined
def _follow_parent(table: int, column: int) -> None:
    """Remove the values that are not of a value of the parent."""
    address = entry(table, column)
    parent = entry(table, load_int64(address + layout.PARENT))
    size = load_int64(parent + layout.LENGTH)
    if load_int64(parent + layout.KIND) == layout.LIST:
        size = _offset(parent, size)
    # A field of a struct that was not closed may have been put or not.
    store_int64(address + layout.LENGTH, min(size, load_int64(address + layout.LENGTH)))


@inlined
def _next_place(table: int, column: int, width: int) -> Any:
    """Append a value of so many bytes, and return the address where it goes."""
    address = entry(table, column)
    row = _append(address)
    return load_int64(address + layout.VALUES) + width * row


@inlined
def _append(address: int) -> Any:
    row = load_int64(address + layout.LENGTH)
    store_uint8(load_int64(address + layout.VALIDITY) + row, np.uint8(1))
    store_int64(address + layout.LENGTH, row + 1)
    return row


@inlined
def _offset(address: int, row: int) -> Any:
    return np.int64(load_int32(load_int64(address + layout.VALUES) + 4 * row))


@inlined
def _store_offset(address: int, row: int, end: int) -> None:
    store_int32(load_int64(address + layout.VALUES) + 4 * (row + 1), np.int32(end))
