"""White space, and texts in quotes.

``end`` is where a value ends. Functions that parse return a position, or the negative of a
``FailureReason``.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ...kernels.memory import (
    copy_memory,
    load_int64,
    load_uint8,
    load_uint64,
    store_uint8,
    trailing_zeros,
)
from ...kernels.parts import inlined
from ..columns.decoding import MALFORMED, TRUNCATED
from ..columns.utf8 import HIGH_BITS
from . import context as words

QUOTE, APOSTROPHE, BACKSLASH = b"\"'\\"

ONES: Final = np.uint64(0x0101010101010101)
SPACES: Final = np.uint64(0x2020202020202020)
BACKSLASHES: Final = np.uint64(0x5C5C5C5C5C5C5C5C)
_HIGH_SURROGATE: Final = 0xD800
_LOW_SURROGATE: Final = 0xDC00
_AFTER_SURROGATES: Final = 0xE000
_REPLACEMENT: Final = 63
"""The question mark, which Java writes for half of a surrogate pair."""


@inlined
def skip_space(context: int, start: int, end: int) -> Any:
    """Return the position of the next token, or ``end``."""
    if start < end and load_uint8(start) > 32 and load_uint8(start) != 47:
        return start
    return _skip_space(context, start, end)


@inlined
def _skip_space(context: int, start: int, end: int) -> Any:
    at = start
    while at < end:
        byte = load_uint8(at)
        if byte == 32 or byte == 10 or byte == 13 or byte == 9:
            at += 1
        elif byte == 47 and load_int64(context + words.FLAGS) & words.COMMENTS:
            after = _comment_end(at, end)
            if after < 0:
                return at
            at = after
        else:
            return at
    return at


@inlined
def _comment_end(start: int, end: int) -> Any:
    """Return where a comment ends, or -1 if it does not."""
    if end - start < 2:
        return -1
    kind = load_uint8(start + 1)
    at = start + 2
    if kind == 47:
        while at < end and load_uint8(at) != 10 and load_uint8(at) != 13:
            at += 1
        return at
    if kind != 42:
        return -1
    while end - at >= 2:
        if load_uint8(at) == 42 and load_uint8(at + 1) == 47:
            return at + 2
        at += 1
    return -1


@inlined
def plain_end(start: int, end: int, limit: int, quote: int) -> Any:
    """Return the position of the first quote, backslash or control character, or ``end``."""
    quotes = np.uint64(quote) * ONES
    at = start
    while limit - at >= 8 and at < end:
        word = load_uint64(at)
        quoted = word ^ quotes
        escaped = word ^ BACKSLASHES
        # In the lowest byte that is marked, no borrow has come from a lower one.
        found = ((quoted - ONES) & ~quoted) | ((escaped - ONES) & ~escaped)
        found = (found | ((word - SPACES) & ~word)) & HIGH_BITS
        if found:
            return min(at + (trailing_zeros(found) >> 3), end)
        at += 8
    while at < end:
        byte = load_uint8(at)
        if byte == quote or byte == BACKSLASH or byte < 32:
            return at
        at += 1
    return end


@inlined
def text_end(context: int, start: int, end: int, quote: int) -> Any:
    """Return the position of the closing quote; ``start`` is behind the opening one."""
    limit = load_int64(context + words.LIMIT)
    at = start
    while True:
        at = plain_end(at, end, limit, quote)
        if at >= end:
            return -TRUNCATED
        byte = load_uint8(at)
        if byte == quote:
            return at
        if byte == BACKSLASH:
            at = _escape_end(context, at + 1, end)
            if at < 0:
                return at
        elif load_int64(context + words.FLAGS) & words.CONTROL_CHARACTERS:
            at += 1
        else:
            return -MALFORMED


@inlined
def _escape_end(context: int, start: int, end: int) -> Any:
    """Return the position behind an escape; ``start`` is behind its backslash."""
    if start >= end:
        return -TRUNCATED
    byte = load_uint8(start)
    if byte == 117:
        if end - start < 5:
            return -TRUNCATED
        return start + 5 if _hexadecimal(start + 1) >= 0 else -MALFORMED
    if _unescaped(byte) != 0:
        return start + 1
    flags = load_int64(context + words.FLAGS)
    if byte == APOSTROPHE and flags & words.SINGLE_QUOTES:
        return start + 1
    return start + 1 if flags & words.ANY_ESCAPE else -MALFORMED


@inlined
def _unescaped(byte: int) -> Any:
    """Return the character of an escape of one letter, or 0; branches are faster than a table."""
    if byte == QUOTE or byte == BACKSLASH or byte == 47:
        return np.int64(byte)
    if byte == 110:
        return 10
    if byte == 116:
        return 9
    if byte == 114:
        return 13
    if byte == 98:
        return 8
    if byte == 102:
        return 12
    return 0


@inlined
def _hexadecimal(at: int) -> Any:
    """Return the number of four hexadecimal digits, or -1."""
    number: Any = 0
    for place in range(at, at + 4):
        byte = np.int64(load_uint8(place))
        letter = byte | 0x20
        if 48 <= byte <= 57:
            number = number * 16 + byte - 48
        elif 97 <= letter <= 102:
            number = number * 16 + letter - 87
        else:
            return -1
    return number


@inlined
def next_character(start: int) -> Any:
    """Return where a character of a valid text ends, and its UTF-16 unit if it is escaped.

    The unit is -1 for a byte that is not escaped.
    """
    if load_uint8(start) != BACKSLASH:
        return start + 1, -1
    byte = load_uint8(start + 1)
    if byte == 117:
        return start + 6, _hexadecimal(start + 2)
    unit = _unescaped(byte)
    # Other characters stand for themselves; one of several bytes is taken over byte by byte.
    return (start + 2, unit) if unit else (start + 1, -2)


@inlined
def unescape(start: int, end: int, limit: int, target: int) -> Any:
    """Write a valid text without its escapes, in UTF-8, and return where it ends.

    Half of a surrogate pair becomes a question mark, as when Java encodes it. The result is not
    longer than the text.
    """
    at = start
    place = target
    while at < end:
        after = plain_end(at, end, limit, BACKSLASH)
        if after == at and load_uint8(at) < 32:
            after += 1
        copy_memory(place, at, after - at)
        place += after - at
        at = after
        if at >= end:
            break
        if load_uint8(at) != BACKSLASH:
            continue
        at, unit = next_character(at)
        if unit == -2:
            store_uint8(place, load_uint8(at))
            at += 1
            place += 1
            continue
        if _HIGH_SURROGATE <= unit < _LOW_SURROGATE and at < end:
            after, low = next_character(at)
            if _LOW_SURROGATE <= low < _AFTER_SURROGATES:
                unit = 0x10000 + ((unit - _HIGH_SURROGATE) << 10) + low - _LOW_SURROGATE
                at = after
        if _HIGH_SURROGATE <= unit < _AFTER_SURROGATES:
            unit = _REPLACEMENT
        place = put_utf8(place, unit)
    return place


@inlined
def put_utf8(place: int, point: int) -> Any:
    """Write a character, and return where it ends."""
    if point < 0x80:
        store_uint8(place, np.uint8(point))
        return place + 1
    if point < 0x800:
        store_uint8(place, np.uint8(0xC0 | point >> 6))
    elif point < 0x10000:
        store_uint8(place, np.uint8(0xE0 | point >> 12))
        store_uint8(place + 1, np.uint8(0x80 | point >> 6 & 0x3F))
        place += 1
    else:
        store_uint8(place, np.uint8(0xF0 | point >> 18))
        store_uint8(place + 1, np.uint8(0x80 | point >> 12 & 0x3F))
        store_uint8(place + 2, np.uint8(0x80 | point >> 6 & 0x3F))
        place += 2
    store_uint8(place + 1, np.uint8(0x80 | point & 0x3F))
    return place + 2


@inlined
def has_word(at: int, end: int, word: Any, size: int) -> Any:
    """Return whether the ``size`` bytes at a position are those of a word of at most 8 bytes."""
    if end - at < size:
        return False
    for place in range(size):
        if np.uint64(load_uint8(at + place)) != (word >> np.uint64(8 * place)) & np.uint64(0xFF):
            return False
    return True


_PADDING: Final = 61
ALPHABET: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_INVALID: Final = 255
_VALUES: Final = np.array(
    [ALPHABET.index(byte) if byte in ALPHABET else _INVALID for byte in range(256)], np.uint8
)


@inlined
def decode_base64(start: int, end: int, target: int) -> Any:
    """Write the bytes of a base64 text, and return where they end; or -1 if it is invalid.

    ``target`` may be ``start``. White space may stand between groups of four, and the padding must
    be there.
    """
    place = target
    at = start
    while True:
        while at < end and load_uint8(at) <= 32:
            at += 1
        if at >= end:
            return place
        if end - at < 4:
            return -1
        one, two = _value(at), _value(at + 1)
        three, four = _value(at + 2), _value(at + 3)
        if one == _INVALID or two == _INVALID:
            return -1
        padding = 0
        if load_uint8(at + 3) == _PADDING:
            padding = 2 if load_uint8(at + 2) == _PADDING else 1
        if (three == _INVALID and padding < 2) or (four == _INVALID and padding < 1):
            return -1
        at += 4
        store_uint8(place, np.uint8((one << 2 | two >> 4) & 0xFF))
        if padding < 2:
            store_uint8(place + 1, np.uint8((two << 4 | three >> 2) & 0xFF))
        if padding < 1:
            store_uint8(place + 2, np.uint8((three << 6 | four) & 0xFF))
        place += 3 - padding


@inlined
def _value(at: int) -> Any:
    return np.int64(_VALUES[load_uint8(at)])
