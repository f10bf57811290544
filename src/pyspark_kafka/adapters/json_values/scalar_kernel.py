"""Decoding texts, booleans and short numbers into their columns, as ``value_kernel`` does."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ..kernels.memory import load_int64, load_uint8, store_int64
from ..kernels.parts import inlined
from ..value_columns.column_kernel import (
    data_end,
    has_room_for,
    put_bool,
    put_bytes,
    put_double,
    put_int8,
    put_int16,
    put_int32,
    put_written_bytes,
)
from ..value_columns.utf8 import is_utf8
from . import context as at_
from . import program
from .double_kernel import short_double_of
from .number_text_kernel import MAX_MANTISSA_DIGITS, is_number, scan_number
from .reasons import BAD_UTF8, OUT_OF_RANGE, TYPE_MISMATCH
from .skip_kernel import FALSE, TRUE
from .text_kernel import has_word, plain_end, text_end, unescape

MINUS: Final = 45
MAX_INT64: Final = np.uint64(2**63 - 1)
_MAX_INT32: Final = np.uint64(2**31 - 1)
_MAX_INT16: Final = np.uint64(2**15 - 1)
_MAX_INT8: Final = np.uint64(2**7 - 1)


@inlined
def lacks_room(context: int, table: int, column: int, size: int) -> Any:
    """Return whether a column has no room for a text, and let the context say so."""
    if has_room_for(table, column, size):
        return False
    store_int64(context + at_.FULL_COLUMN, column)
    store_int64(context + at_.FULL_BYTES, size)
    return True


@inlined
def put_plain(context: int, table: int, column: int, start: int, size: int) -> Any:
    """Put a text without escapes, and return 1 or a negative number."""
    if lacks_room(context, table, column, size):
        return at_.FULL
    if not is_utf8(start, size):
        return -BAD_UTF8
    put_bytes(table, column, start, size)
    return 1


@inlined
def put_text(context: int, table: int, column: int, start: int, end: int, quote: int) -> Any:
    """Put a text in quotes, which begins at ``start``, without its escapes."""
    limit = load_int64(context + at_.LIMIT)
    stop = plain_end(start, end, limit, quote)
    if stop < end and load_uint8(stop) == quote:
        result = put_plain(context, table, column, start, stop - start)
        return stop + 1 if result > 0 else result
    return _put_escaped(context, table, column, start, end, quote)


@inlined
def _put_escaped(context: int, table: int, column: int, start: int, end: int, quote: int) -> Any:
    stop = text_end(context, start, end, quote)
    if stop < 0:
        return stop
    if lacks_room(context, table, column, stop - start):
        return at_.FULL
    place = data_end(table, column)
    size = unescape(start, stop, load_int64(context + at_.LIMIT), place) - place
    if not is_utf8(place, size):
        return -BAD_UTF8
    put_written_bytes(table, column, size)
    return stop + 1


@inlined
def put_boolean(table: int, column: int, start: int, end: int) -> Any:
    """Put true or false."""
    if has_word(start, end, TRUE, 4):
        put_bool(table, column, True)
        return start + 4
    if has_word(start, end, FALSE, 5):
        put_bool(table, column, False)
        return start + 5
    return -TYPE_MISMATCH


@inlined
def scan_integer(context: int, start: int, end: int, maximum: Any) -> Any:
    """Return the position behind an integer of at most ``maximum``, or -1 less, and the integer."""
    byte = load_uint8(start)
    if not is_number(byte):
        return -TYPE_MISMATCH, 0
    after, mantissa, _, digits, is_integer = scan_number(context, start, end)
    if after < 0:
        return after, 0
    if not is_integer:
        return -TYPE_MISMATCH, 0
    is_negative = byte == MINUS
    if digits > MAX_MANTISSA_DIGITS or mantissa > maximum + np.uint64(is_negative):
        return -OUT_OF_RANGE, 0
    number = np.int64(mantissa)
    return after, -number if is_negative else number


@inlined
def put_short_double(context: int, table: int, column: int, start: int, end: int) -> Any:
    """Put a double of at most 19 digits; return a negative number for any other value."""
    after, mantissa, exponent, digits, is_integer = scan_number(context, start, end)
    if after < 0 or digits > MAX_MANTISSA_DIGITS:
        return -TYPE_MISMATCH
    number = short_double_of(context, mantissa, exponent)
    # An integer has no negative zero.
    is_negative = load_uint8(start) == MINUS and (digits > 0 or not is_integer)
    put_double(table, column, -number if is_negative else number)
    return after


@inlined
def put_small_integer(
    context: int, table: int, kind: int, column: int, start: int, end: int
) -> Any:
    """Put an integer of 32, 16 or 8 bits."""
    maximum = _MAX_INT32
    if kind == program.SHORT:
        maximum = _MAX_INT16
    elif kind == program.BYTE:
        maximum = _MAX_INT8
    after, number = scan_integer(context, start, end, maximum)
    if after < 0:
        return after
    if kind == program.INTEGER:
        put_int32(table, column, number)
    elif kind == program.SHORT:
        put_int16(table, column, number)
    else:
        put_int8(table, column, number)
    return after
