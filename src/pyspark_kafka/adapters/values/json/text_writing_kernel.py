"""Writing strings and binaries as JSON in kernels.

The functions return the address behind what they wrote, or ``NO_ROOM``.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ...kernels.memory import (
    load_uint8,
    load_uint32,
    load_uint64,
    store_uint8,
    store_uint32,
    store_uint64,
)
from ...kernels.parts import inlined
from ..columns.utf8 import HIGH_BITS, sequence_length
from .text_kernel import ALPHABET, BACKSLASH, BACKSLASHES, ONES, QUOTE, SPACES, put_utf8

NO_ROOM: Final = -1

U = np.uint64
_QUOTES: Final = U(0x2222222222222222)
_ESCAPES: Final = dict(zip(b'"\\\b\t\n\f\r', b'"\\btnfr', strict=True))
_LETTERS: Final = np.array([_ESCAPES.get(byte, 0) for byte in range(128)], np.uint8)
"""The letter by which a character is escaped, or 0."""

_BASE64: Final = np.frombuffer(ALPHABET, np.uint8)
_REPLACEMENT: Final = 0xFFFD
_PADDING: Final = np.uint8(61)
_MAX_ESCAPED: Final = 12
"""The bytes of the longest character: two escaped surrogates."""

_QUOTE: Final = np.uint8(QUOTE)


@inlined
def put_string(at: int, limit: int, source: int, size: int, is_ascii: int) -> Any:
    """Write a string in quotes, with Jackson's escapes; with ``is_ascii``, in ASCII alone.

    Bytes that are not UTF-8 become U+FFFD, as in Java's ``new String(bytes, UTF_8)``.
    """
    if limit - at < 2:
        return NO_ROOM
    store_uint8(at, _QUOTE)
    at += 1
    end = source + size
    while source < end:
        while end - source >= 8 and limit - at >= 8:
            word = load_uint64(source)
            if _needs_care(word):
                break
            store_uint64(at, word)
            at += 8
            source += 8
        if source == end:
            break
        if limit - at < _MAX_ESCAPED:
            return NO_ROOM
        rest = end - source
        if rest < 8:
            word = _load_tail(source, rest)
            if not _needs_care(word):
                store_uint64(at, word)
                at += rest
                break
        first = load_uint8(source)
        if first < 0x80:
            at = put_ascii(at, first)
            source += 1
        else:
            width = sequence_length(source, end)
            if width == 0:
                width = _malformed_length(source, end)
                at = put_escape(at, _REPLACEMENT) if is_ascii else put_utf8(at, _REPLACEMENT)
            elif is_ascii:
                at = put_escaped(at, source, width)
            else:
                for number in range(width):
                    store_uint8(at + number, load_uint8(source + number))
                at += width
            source += width
    if limit - at < 1:
        return NO_ROOM
    store_uint8(at, _QUOTE)
    return at + 1


@inlined
def _load_tail(source: int, size: int) -> Any:
    """Return 1 to 7 bytes, followed by spaces; no byte behind them is read."""
    if size >= 4:
        word = U(load_uint32(source))
        word |= U(load_uint32(source + size - 4)) << U(8 * (size - 4))
    else:
        middle = size // 2
        word = U(load_uint8(source)) | U(load_uint8(source + middle)) << U(8 * middle)
        word |= U(load_uint8(source + size - 1)) << U(8 * (size - 1))
    return word | SPACES << U(8 * size)


@inlined
def _needs_care(word: Any) -> Any:
    """Return whether one of eight bytes is a quote, a backslash, a control or not ASCII."""
    quotes, slashes = word ^ _QUOTES, word ^ BACKSLASHES
    found = (quotes - ONES) & ~quotes
    found |= (slashes - ONES) & ~slashes
    found |= word - ONES * U(0x20)
    return (found | word) & HIGH_BITS != U(0)


@inlined
def put_ascii(at: int, character: Any) -> Any:
    """Write an ASCII character, escaped if it must be: at most six bytes."""
    if character >= 0x20 and character not in (QUOTE, BACKSLASH):
        store_uint8(at, character)
        return at + 1
    letter = _LETTERS[character]
    if letter == 0:
        return put_escape(at, np.int64(character))
    store_uint8(at, np.uint8(BACKSLASH))
    store_uint8(at + 1, letter)
    return at + 2


@inlined
def put_escape(at: int, unit: Any) -> Any:
    """Write the escape of a UTF-16 unit."""
    store_uint8(at, np.uint8(92))
    store_uint8(at + 1, np.uint8(117))
    for number in range(4):
        digit = (unit >> (12 - 4 * number)) & 15
        store_uint8(at + 2 + number, np.uint8(digit + (48 if digit < 10 else 55)))
    return at + 6


@inlined
def put_escaped(at: int, source: int, width: int) -> Any:
    """Write the escapes of a character of ``width`` bytes."""
    code_point = _code_point(source, width)
    if code_point < 0x10000:
        return put_escape(at, code_point)
    above = code_point - 0x10000
    at = put_escape(at, 0xD800 + (above >> 10))
    return put_escape(at, 0xDC00 + (above & 0x3FF))


@inlined
def _code_point(source: int, width: int) -> Any:
    value = np.int64(load_uint8(source)) & (0x7F >> width)
    for number in range(1, width):
        value = (value << 6) | (np.int64(load_uint8(source + number)) & 0x3F)
    return value


@inlined
def _malformed_length(source: int, end: int) -> Any:
    """Return how many bytes Java replaces by one U+FFFD.

    It is the beginning of a valid sequence; three bytes that encode a surrogate are one, too.
    """
    first = load_uint8(source)
    width = 1 + (first >= 0xC2) + (first >= 0xE0) + (first >= 0xF0)
    if first > 0xF4:
        width = 1
    length = 1
    while length < width and source + length < end:
        byte = load_uint8(source + length)
        if byte & 0xC0 != 0x80:
            break
        if length == 1 and (
            (first == 0xE0 and byte < 0xA0)
            or (first == 0xF0 and byte < 0x90)
            or (first == 0xF4 and byte > 0x8F)
        ):
            break
        length += 1
    return length


@inlined
def put_base64(at: int, limit: int, source: int, size: int) -> Any:
    """Write a binary in quotes, in base64 with padding and without line feeds."""
    groups = (size + 2) // 3
    if limit - at < 4 * groups + 2:
        return NO_ROOM
    store_uint8(at, _QUOTE)
    at += 1
    whole = size // 3
    for number in range(whole):
        place = source + 3 * number
        store_uint32(at, _base64_group(_triple(place, 3)))
        at += 4
    rest = size - 3 * whole
    if rest:
        store_uint32(at, _base64_group(_triple(source + 3 * whole, rest)))
        at += 4
        store_uint8(at - 1, _PADDING)
        if rest == 1:
            store_uint8(at - 2, _PADDING)
    store_uint8(at, _QUOTE)
    return at + 1


@inlined
def _triple(source: int, size: int) -> Any:
    value = np.int64(load_uint8(source)) << 16
    if size > 1:
        value |= np.int64(load_uint8(source + 1)) << 8
    if size > 2:
        value |= np.int64(load_uint8(source + 2))
    return value


@inlined
def _base64_group(triple: int) -> Any:
    group = np.uint32(0)
    for number in range(4):
        character = _BASE64[(triple >> (18 - 6 * number)) & 63]
        group |= np.uint32(character) << np.uint32(8 * number)
    return group
