"""Values without parts, decoded into their columns.

Functions return the position behind the value, or a negative number: of a ``FailureReason``,
``FULL`` or ``NEEDS_ZONE``. Then nothing was put. A reason does not show whether the value is valid
JSON: the caller finds out by skipping it.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ...kernels.memory import load_int64, load_uint8
from ...kernels.parts import inlined
from ..columns.column_kernel import (
    data_end,
    lacks_room,
    put_bool,
    put_bytes,
    put_decimal,
    put_double,
    put_float,
    put_int8,
    put_int16,
    put_int32,
    put_int64,
    put_null,
    put_written_bytes,
)
from ..columns.decoding import BAD_UTF8, OUT_OF_RANGE, TYPE_MISMATCH
from ..columns.utf8 import is_utf8
from . import context as words
from . import decode_table
from .context import FULL
from .number_reading_kernel import (
    MAX_MANTISSA_DIGITS,
    double_of,
    float_of,
    is_number,
    parse_decimal,
    scan_number,
    short_double_of,
)
from .raw_value_kernel import (
    FALSE,
    GROWTH,
    MIN_BYTES,
    NULL,
    TRUE,
    is_quote,
    not_a_number,
    regenerate,
    skip_value,
)
from .text_kernel import decode_base64, has_word, plain_end, text_end, unescape
from .time_kernel import parse_date, parse_timestamp, parse_timestamp_ntz

MINUS: Final = 45
MAX_INT64: Final = np.uint64(2**63 - 1)
_MAX_INT32: Final = np.uint64(2**31 - 1)
_MAX_INT16: Final = np.uint64(2**15 - 1)
_MAX_INT8: Final = np.uint64(2**7 - 1)


@inlined
def put_plain(context: int, table: int, column: int, start: int, size: int) -> Any:
    """Put a text without escapes, and return 1 or a negative number."""
    if lacks_room(context, table, column, size):
        return FULL
    if not is_utf8(start, size):
        return -BAD_UTF8
    put_bytes(table, column, start, size)
    return 1


@inlined
def put_text(context: int, table: int, column: int, start: int, end: int, quote: int) -> Any:
    """Put a text in quotes, which begins at ``start``, without its escapes."""
    limit = load_int64(context + words.LIMIT)
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
        return FULL
    place = data_end(table, column)
    size = unescape(start, stop, load_int64(context + words.LIMIT), place) - place
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
    number = short_double_of(mantissa, exponent)
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
    if kind == decode_table.SHORT:
        maximum = _MAX_INT16
    elif kind == decode_table.BYTE:
        maximum = _MAX_INT8
    after, number = scan_integer(context, start, end, maximum)
    if after < 0:
        return after
    if kind == decode_table.INTEGER:
        put_int32(table, column, number)
    elif kind == decode_table.SHORT:
        put_int16(table, column, number)
    else:
        put_int8(table, column, number)
    return after


_SECOND: Final = 1_000_000
_MAX_SECONDS: Final = (2**63 - 1) // _SECOND


@inlined
def put_scalar(context: int, table: int, entry: int, column: int, start: int, end: int) -> Any:
    """Decode the value at ``start`` into a column; ``entry`` is the column's in the table."""
    kind = load_int64(entry + decode_table.KIND)
    byte = load_uint8(start)
    if byte == 110 and has_word(start, end, NULL, 4):
        put_null(table, column)
        return start + 4
    if kind == decode_table.STRING and is_quote(context, byte):
        return put_text(context, table, column, start + 1, end, byte)
    if kind == decode_table.LONG:
        after, number = scan_integer(context, start, end, MAX_INT64)
        if after > 0:
            put_int64(table, column, number)
        return after
    if kind == decode_table.DOUBLE and is_number(byte):
        after = put_short_double(context, table, column, start, end)
        if after > 0:
            return after
    if kind == decode_table.BOOLEAN:
        return put_boolean(table, column, start, end)
    if kind >= decode_table.INTEGER:
        return put_small_integer(context, table, kind, column, start, end)
    return _put_rare(context, table, entry, kind, column, start, end)


@inlined
def _put_rare(
    context: int, table: int, entry: int, kind: int, column: int, start: int, end: int
) -> Any:
    if kind == decode_table.STRING:
        return _put_regenerated(context, table, column, start, end)
    if kind == decode_table.BINARY:
        return _put_binary(context, table, column, start, end)
    if kind in (decode_table.DOUBLE, decode_table.FLOAT):
        return _put_floating(context, table, kind, column, start, end)
    if kind == decode_table.DECIMAL:
        return _put_decimal(context, table, entry, column, start, end)
    return _put_time(context, table, kind, column, start, end)


@inlined
def _put_binary(context: int, table: int, column: int, start: int, end: int) -> Any:
    """Decode base64."""
    quote = load_uint8(start)
    if not is_quote(context, quote):
        return -TYPE_MISMATCH
    stop = text_end(context, start + 1, end, quote)
    if stop < 0:
        return stop
    if lacks_room(context, table, column, stop - start):
        return FULL
    place = data_end(table, column)
    text = unescape(start + 1, stop, load_int64(context + words.LIMIT), place)
    written = decode_base64(place, text, place)
    if written < 0:
        return -TYPE_MISMATCH
    put_written_bytes(table, column, written - place)
    return stop + 1


@inlined
def _put_floating(context: int, table: int, kind: int, column: int, start: int, end: int) -> Any:
    """Decode a number of any digits, or one that is not finite."""
    byte = load_uint8(start)
    first = start + (byte == MINUS)
    after = -TYPE_MISMATCH
    number = 0.0
    nearest = np.float32(0)
    if is_number(byte):
        after, mantissa, exponent, digits, is_integer = scan_number(context, start, end)
        if after > 0:
            number = double_of(context, first, after, mantissa, exponent, digits)
            if kind == decode_table.FLOAT:
                nearest = float_of(context, first, after, number)
            # An integer has no negative zero.
            if byte == MINUS and (digits > 0 or not is_integer):
                number, nearest = -number, -nearest
    if after < 0 and load_int64(context + words.FLAGS) & words.NOT_A_NUMBER:
        after, number = _not_a_number(context, start, end)
        nearest = np.float32(number)
    if after < 0:
        return after
    if kind == decode_table.FLOAT:
        put_float(table, column, nearest)
    else:
        put_double(table, column, number)
    return after


@inlined
def _not_a_number(context: int, start: int, end: int) -> Any:
    """Return the position behind NaN or an infinity, with or without quotes, and its value."""
    quote = load_uint8(start)
    if not is_quote(context, quote):
        after, number = not_a_number(start, end)
        return (after if after > 0 else -TYPE_MISMATCH), number
    first, last, after = _text(context, start, end)
    if first < 0 or first == last:
        return -TYPE_MISMATCH, 0.0
    stop, number = not_a_number(first, last)
    return (after if stop == last else -TYPE_MISMATCH), number


@inlined
def _put_decimal(context: int, table: int, entry: int, column: int, start: int, end: int) -> Any:
    """Decode a decimal, which may be in quotes."""
    byte = load_uint8(start)
    if is_number(byte):
        after, _, _, _, _ = scan_number(context, start, end)
        first, last = start, after
    elif is_quote(context, byte):
        first, last, after = _text(context, start, end)
    else:
        return -TYPE_MISMATCH
    if after < 0:
        return after
    precision = load_int64(entry + decode_table.PRECISION)
    scale = load_int64(entry + decode_table.SCALE)
    result, low, high = parse_decimal(first, last, precision, scale)
    if result < 0:
        return result
    put_decimal(table, column, low, high)
    return after


@inlined
def _put_time(context: int, table: int, kind: int, column: int, start: int, end: int) -> Any:
    """Decode a date or a timestamp."""
    if is_quote(context, load_uint8(start)):
        first, last, after = _text(context, start, end)
        if after < 0:
            return after
        if kind == decode_table.DATE:
            result, days = parse_date(context, first, last)
            if result > 0:
                put_int32(table, column, days)
            return after if result > 0 else result
        if kind == decode_table.TIMESTAMP:
            result, micros = parse_timestamp(context, first, last)
        else:
            result, micros = parse_timestamp_ntz(context, first, last)
        if result < 0:
            return result
        put_int64(table, column, micros)
        return after
    if kind != decode_table.TIMESTAMP:
        return -TYPE_MISMATCH
    after, seconds = scan_integer(context, start, end, MAX_INT64)
    if after < 0:
        return after
    # abs() of the minimum of 64 bits is negative.
    if not -_MAX_SECONDS <= seconds <= _MAX_SECONDS:
        return -OUT_OF_RANGE
    put_int64(table, column, seconds * _SECOND)
    return after


@inlined
def _text(context: int, start: int, end: int) -> Any:
    """Return where a text begins and ends without its escapes, and the position behind its quote.

    All three are a negative reason if there is none.
    """
    quote = load_uint8(start)
    limit = load_int64(context + words.LIMIT)
    first = start + 1
    stop = plain_end(first, end, limit, quote)
    if stop < end and load_uint8(stop) == quote:
        return first, stop, stop + 1
    stop = text_end(context, first, end, quote)
    if stop < 0:
        return stop, stop, stop
    if stop - first > words.MAX_TEXT_BYTES:
        return -OUT_OF_RANGE, -OUT_OF_RANGE, -OUT_OF_RANGE
    scratch = load_int64(context + words.SCRATCH)
    return scratch, unescape(first, stop, limit, scratch), stop + 1


@inlined
def _put_regenerated(context: int, table: int, column: int, start: int, end: int) -> Any:
    """Write a value that is no text as Jackson does, for a column of strings."""
    stop = skip_value(context, start, end, load_int64(context + words.DEPTH))
    if stop < 0:
        return stop
    if lacks_room(context, table, column, GROWTH * (stop - start) + MIN_BYTES):
        return FULL
    place = data_end(table, column)
    written = regenerate(context, start, stop, place)
    if written < 0:
        return -BAD_UTF8
    put_written_bytes(table, column, written - place)
    return stop
