"""Values that no column decodes: skipped, or written again for a column of strings.

A value is validated as Jackson's ``skipChildren`` does it, and written as Jackson writes it.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ...kernels.memory import bits_of_double, copy_memory, load_int64, load_uint8, store_uint8
from ...kernels.parts import inlined
from ..columns.decoding import MALFORMED, TOO_DEEP, TRUNCATED
from ..columns.utf8 import sequence_length
from . import context as words
from .number_reading_kernel import double_of, is_digit, scan_number
from .number_writing_kernel import NUMBER_ROOM, put_double
from .text_kernel import (
    APOSTROPHE,
    BACKSLASH,
    QUOTE,
    has_word,
    next_character,
    put_utf8,
    skip_space,
    text_end,
)
from .text_writing_kernel import put_ascii, put_escape, put_escaped

OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET, CLOSE_BRACKET, COMMA, COLON = b"{}[],:"


def _word(text: bytes) -> np.uint64:
    return np.uint64(int.from_bytes(text, "little"))


TRUE: Final = _word(b"true")
FALSE: Final = _word(b"false")
NULL: Final = _word(b"null")
_NAN: Final = _word(b"NaN")
_INF: Final = _word(b"INF")
_INFINITY: Final = _word(b"Infinity")


@inlined
def is_quote(context: int, byte: int) -> Any:
    """Return whether a byte begins a text."""
    if byte == QUOTE:
        return True
    return byte == APOSTROPHE and load_int64(context + words.FLAGS) & words.SINGLE_QUOTES != 0


@inlined
def skip_name(context: int, start: int, end: int) -> Any:
    """Return where a name begins and ends, and the position behind it; or a negative reason."""
    if start >= end:
        return -TRUNCATED, 0, 0
    byte = load_uint8(start)
    if is_quote(context, byte):
        after = text_end(context, start + 1, end, byte)
        return (after, 0, 0) if after < 0 else (start + 1, after, after + 1)
    at = start
    if load_int64(context + words.FLAGS) & words.UNQUOTED_NAMES:
        while at < end and _is_name_character(load_uint8(at)):
            at += 1
    return (-MALFORMED, 0, 0) if at == start else (start, at, at)


@inlined
def _is_name_character(byte: int) -> Any:
    """Return whether Jackson takes a byte for a part of a name without quotes."""
    letter = byte | 0x20
    is_word = is_digit(byte) or 97 <= letter <= 122 or byte >= 0x80
    # $ _ @ # * - +
    is_sign = byte == 36 or byte == 95 or byte == 64 or byte == 35 or byte == 42
    return is_word or is_sign or byte == 45 or byte == 43


@inlined
def not_a_number(start: int, end: int) -> Any:
    """Return the end and the value of NaN or an infinity that is written without quotes."""
    byte = load_uint8(start)
    if byte == 78 and has_word(start, end, _NAN, 3):
        return start + 3, np.nan
    if byte == 73 and has_word(start, end, _INFINITY, 8):
        return start + 8, np.inf
    if byte == 45 or byte == 43:
        value = -np.inf if byte == 45 else np.inf
        if has_word(start + 1, end, _INFINITY, 8):
            return start + 9, value
        if has_word(start + 1, end, _INF, 3):
            return start + 4, value
    return -MALFORMED, 0.0


@inlined
def skip_scalar(context: int, start: int, end: int) -> Any:
    """Return the position behind a value that has no parts."""
    byte = load_uint8(start)
    if is_quote(context, byte):
        after = text_end(context, start + 1, end, byte)
        return after if after < 0 else after + 1
    if is_digit(byte) or byte == 45:
        after, _, _, _, _ = scan_number(context, start, end)
        if after > 0 or byte != 45:
            return after
    elif byte == 116 and has_word(start, end, TRUE, 4):
        return start + 4
    elif byte == 102 and has_word(start, end, FALSE, 5):
        return start + 5
    elif byte == 110 and has_word(start, end, NULL, 4):
        return start + 4
    else:
        after = -MALFORMED
    if load_int64(context + words.FLAGS) & words.NOT_A_NUMBER:
        other, _ = not_a_number(start, end)
        if other > 0:
            return other
    return after


@inlined
def skip_value(context: int, start: int, end: int, depth: int) -> Any:
    """Return the position behind any value; ``depth`` is how many are around it."""
    at = skip_space(context, start, end)
    if at >= end:
        return -TRUNCATED
    byte = load_uint8(at)
    if byte != OPEN_BRACE and byte != OPEN_BRACKET:
        return skip_scalar(context, at, end)
    return _skip_nested(context, at, end, depth)


@inlined
def _skip_nested(context: int, start: int, end: int, around: int) -> Any:
    brackets = load_int64(context + words.BRACKETS)
    max_depth = load_int64(context + words.MAX_DEPTH)
    depth = around
    at = start
    while True:
        # Here a value begins.
        at = skip_space(context, at, end)
        if at >= end:
            return -TRUNCATED
        byte = load_uint8(at)
        if byte == OPEN_BRACE or byte == OPEN_BRACKET:
            depth += 1
            if depth > max_depth:
                return -TOO_DEEP
            store_uint8(brackets + depth, byte)
            at = skip_space(context, at + 1, end)
            if at >= end:
                return -TRUNCATED
            if load_uint8(at) != byte + 2:
                if byte == OPEN_BRACE:
                    at = _skip_key(context, at, end)
                    if at < 0:
                        return at
                continue
            at += 1
            depth -= 1
        else:
            at = skip_scalar(context, at, end)
            if at < 0:
                return at
        # Here a value has ended.
        while depth > around:
            at = skip_space(context, at, end)
            if at >= end:
                return -TRUNCATED
            byte = load_uint8(at)
            bracket = load_uint8(brackets + depth)
            at += 1
            if byte == COMMA:
                if bracket == OPEN_BRACE:
                    at = _skip_key(context, at, end)
                    if at < 0:
                        return at
                break
            if byte != bracket + 2:
                return -MALFORMED
            depth -= 1
        if depth == around:
            return at


@inlined
def _skip_key(context: int, start: int, end: int) -> Any:
    """Return the position behind a name and its colon."""
    name, _, at = skip_name(context, skip_space(context, start, end), end)
    if name < 0:
        return name
    return skip_colon(context, at, end)


@inlined
def skip_colon(context: int, start: int, end: int) -> Any:
    """Return the position of the value behind a colon."""
    at = skip_space(context, start, end)
    if at >= end:
        return -TRUNCATED
    if load_uint8(at) != COLON:
        return -MALFORMED
    at = skip_space(context, at + 1, end)
    return at if at < end else -TRUNCATED


GROWTH: Final = 6
"""How much longer a text may become: a control character is escaped as \\u0001."""

MIN_BYTES: Final = NUMBER_ROOM + 16

_MINUS: Final = 45


@inlined
def regenerate(context: int, start: int, end: int, target: int) -> Any:
    """Write a valid value again and return where it ends; or -1 if a text is not UTF-8."""
    at = start
    place = target
    brackets = load_int64(context + words.BRACKETS)
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
    scratch = load_int64(context + words.NUMBER_SCRATCH)
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
