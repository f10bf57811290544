"""A JSON value as Jackson writes it again, for a column of strings."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ..kernels.memory import bits_of_double, copy_memory, load_int64, load_uint8, store_uint8
from ..kernels.parts import inlined
from ..value_columns.utf8 import sequence_length
from . import context as at_
from .number_reading_kernel import double_of, is_digit, scan_number
from .number_writing_kernel import NUMBER_ROOM, put_double
from .skip_kernel import (
    CLOSE_BRACE,
    CLOSE_BRACKET,
    COLON,
    COMMA,
    OPEN_BRACE,
    OPEN_BRACKET,
    is_quote,
    not_a_number,
    skip_name,
)
from .text_kernel import BACKSLASH, QUOTE, next_character, put_utf8, skip_space, text_end
from .text_writing_kernel import put_ascii, put_escape, put_escaped

GROWTH: Final = 6
"""How much longer a text may become: a control character is escaped as \\u0001."""

MIN_BYTES: Final = NUMBER_ROOM + 16

_MINUS: Final = 45


@inlined
def regenerate(context: int, start: int, end: int, target: int) -> Any:
    """Write a valid value again and return where it ends; or -1 if a text is not UTF-8."""
    at = start
    place = target
    brackets = load_int64(context + at_.BRACKETS)
    depth = 0
    is_name = False
    while True:
        at = skip_space(context, at, end)
        if at >= end:
            return place
        byte = load_uint8(at)
        if is_name and byte != CLOSE_BRACE:
            name, name_end, at = skip_name(context, at, end)
            place = _write_text(name, name_end, place)
            if place < 0:
                return place
            is_name = False
            continue
        if byte == OPEN_BRACE or byte == OPEN_BRACKET:
            depth += 1
            store_uint8(brackets + depth, byte)
            is_name = byte == OPEN_BRACE
        elif byte == CLOSE_BRACE or byte == CLOSE_BRACKET:
            depth -= 1
            is_name = False
        elif byte == COMMA:
            is_name = load_uint8(brackets + depth) == OPEN_BRACE
        elif byte != COLON:
            at, place = _write_scalar(context, at, end, place)
            if place < 0:
                return place
            continue
        store_uint8(place, byte)
        place += 1
        at += 1


@inlined
def _write_scalar(context: int, start: int, end: int, place: int) -> Any:
    byte = load_uint8(start)
    if is_quote(context, byte):
        after = text_end(context, start + 1, end, byte)
        return after + 1, _write_text(start + 1, after, place)
    if is_digit(byte) or byte == _MINUS:
        after, mantissa, exponent, digits, is_integer = scan_number(context, start, end)
        if after > 0:
            first = start + (byte == _MINUS)
            if is_integer:
                return after, _write_integer(first, after, place, byte == _MINUS)
            number = double_of(context, first, after, mantissa, exponent, digits)
            return after, _write_number(context, place, -number if byte == _MINUS else number)
    at = start
    while at < end and 97 <= load_uint8(at) <= 122:
        # true, false, null
        store_uint8(place, load_uint8(at))
        at += 1
        place += 1
    if at > start:
        return at, place
    after, number = not_a_number(start, end)
    return after, _write_number(context, place, number)


@inlined
def _write_integer(start: int, end: int, place: int, is_negative: bool) -> Any:
    """Write digits without leading zeros, and -0 as 0."""
    while end - start > 1 and load_uint8(start) == 48:
        start += 1
    if is_negative and load_uint8(start) != 48:
        store_uint8(place, np.uint8(_MINUS))
        place += 1
    copy_memory(place, start, end - start)
    return place + end - start


@inlined
def _write_number(context: int, place: int, number: float) -> Any:
    scratch = load_int64(context + at_.NUMBER_SCRATCH)
    return put_double(place, scratch, bits_of_double(number), True)


@inlined
def _write_text(start: int, end: int, target: int) -> Any:
    """Write a text in quotes, with Jackson's escapes; return -1 if it is not UTF-8.

    Jackson escapes characters beyond the basic plane as surrogate pairs.
    """
    store_uint8(target, np.uint8(QUOTE))
    place = target + 1
    at = start
    while at < end:
        byte = load_uint8(at)
        if byte == BACKSLASH:
            at, unit = next_character(at)
            if unit >= 0:
                place = _write_unit(place, unit)
                continue
            byte = load_uint8(at)
        if byte < 0x80:
            place = put_ascii(place, byte)
            at += 1
            continue
        width = sequence_length(at, end)
        if width == 0:
            return -1
        if width == 4:
            place = put_escaped(place, at, width)
        else:
            copy_memory(place, at, width)
            place += width
        at += width
    store_uint8(place, np.uint8(QUOTE))
    return place + 1


@inlined
def _write_unit(place: int, unit: Any) -> Any:
    """Write a UTF-16 unit; halves of surrogate pairs stay escaped."""
    if unit < 0x80:
        return put_ascii(place, np.uint8(unit))
    if 0xD800 <= unit < 0xE000:
        return put_escape(place, unit)
    return put_utf8(place, unit)
