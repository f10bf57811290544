"""Functions by which kernels read columns; ``table`` is the address of an ``InputTable``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..kernels.memory import load_int32, load_int64, load_uint8
from ..kernels.parts import inlined
from . import input_table as at


@inlined
def is_null(table: int, column: int, row: int) -> Any:
    """Return whether a value is null."""
    entry = table + column * at.STRIDE
    bitmap = load_int64(entry + at.VALIDITY)
    return bitmap != 0 and not _bit(bitmap, load_int64(entry + at.FIRST) + row)


@inlined
def read_bool(table: int, column: int, row: int) -> Any:
    """Return a boolean."""
    entry = table + column * at.STRIDE
    return _bit(load_int64(entry + at.VALUES), load_int64(entry + at.FIRST) + row)


@inlined
def values(table: int, column: int) -> Any:
    """Return the address of the first value of fixed width, or of the first offset."""
    return load_int64(table + column * at.STRIDE + at.VALUES)


@inlined
def local_times(table: int, column: int) -> Any:
    """Return the address of the first local time of a column of timestamps."""
    return load_int64(table + column * at.STRIDE + at.LOCAL)


@inlined
def data(table: int, column: int) -> Any:
    """Return the address of the bytes of a column of strings or binaries."""
    return load_int64(table + column * at.STRIDE + at.DATA)


@inlined
def offset(table: int, column: int, row: int) -> Any:
    """Return where a text or a list begins: in bytes, or as a row of the column below."""
    return np.int64(load_int32(values(table, column) + 4 * row))


@inlined
def _bit(bitmap: int, place: int) -> Any:
    return (np.int64(load_uint8(bitmap + (place >> 3))) >> (place & 7)) & 1 != 0
