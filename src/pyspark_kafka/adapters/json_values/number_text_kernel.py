"""The digits of a number's text.

Functions that parse return a position, or the negative of a ``FailureReason``.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ..kernels.memory import load_int64, load_uint8
from ..kernels.parts import inlined
from . import context as at_
from .reasons import MALFORMED, TOO_LARGE, TRUNCATED

MAX_MANTISSA_DIGITS: Final = 19
"""Any number of 19 digits is less than 2^64."""

_MINUS: Final = 45
_MAX_EXPONENT: Final = 1_000_000_000
_TEN: Final = np.uint64(10)


@inlined
def is_digit(byte: int) -> Any:
    """Return whether a byte is an ASCII digit."""
    return 48 <= byte <= 57


@inlined
def is_number(byte: int) -> Any:
    """Return whether a byte begins a number."""
    return is_digit(byte) or byte == _MINUS


@inlined
def digit_at(place: int) -> Any:
    """Return the number of the ASCII digit at a position."""
    return np.int64(load_uint8(place)) - 48


@inlined
def scan_number(context: int, start: int, end: int) -> Any:
    """Return the end, the mantissa, its exponent, its digits and whether it is an integer.

    The number is ``mantissa * 10 ** exponent``, without its sign. Of more than 19 significant
    digits, the mantissa has the first 19, and the exponent is the exponent of those. ``end`` is
    where the value ends. A number of too many digits is ``TOO_LARGE``, as Jackson has it.
    """
    at = start + (load_uint8(start) == 45)
    mantissa = np.uint64(0)
    digits = 0
    exponent = 0
    is_integer = True
    first = at
    while at < end:
        byte = load_uint8(at)
        if not is_digit(byte):
            break
        if digits < MAX_MANTISSA_DIGITS:
            mantissa = mantissa * _TEN + np.uint64(byte - 48)
            digits += digits > 0 or byte != 48
        else:
            digits += 1
            exponent += 1
        at += 1
    count = at - first
    if count == 0:
        return (-TRUNCATED if at >= end else -MALFORMED), mantissa, 0, 0, True
    is_zero_first = load_uint8(first) == 48 and count > 1
    if is_zero_first and load_int64(context + at_.FLAGS) & at_.LEADING_ZEROS == 0:
        return -MALFORMED, mantissa, 0, 0, True
    if at < end and load_uint8(at) == 46:
        is_integer = False
        at += 1
        first = at
        while at < end:
            byte = load_uint8(at)
            if not is_digit(byte):
                break
            if digits < MAX_MANTISSA_DIGITS:
                mantissa = mantissa * _TEN + np.uint64(byte - 48)
                digits += digits > 0 or byte != 48
                exponent -= 1
            else:
                digits += 1
            at += 1
        count += at - first
        if at == first:
            return (-TRUNCATED if at >= end else -MALFORMED), mantissa, 0, 0, True
    if at < end and (load_uint8(at) | 0x20) == 101:
        is_integer = False
        first, at, power = _scan_exponent(at + 1, end)
        if at == first:
            return (-TRUNCATED if at >= end else -MALFORMED), mantissa, 0, 0, True
        exponent += power
        count += at - first
    maximum = load_int64(context + at_.MAX_DIGITS)
    if count > maximum and count - _uncounted(start, at) > maximum:
        return -TOO_LARGE, mantissa, 0, 0, True
    return at, mantissa, exponent, digits, is_integer


@inlined
def _uncounted(start: int, end: int) -> Any:
    """Return 1 for a number of one zero before a fraction or an exponent, but not both.

    That zero is no digit to Jackson (``ReaderBasedJsonParser``).
    """
    zero = start + (load_uint8(start) == 45)
    if load_uint8(zero) != 48 or is_digit(load_uint8(zero + 1)):
        return 0
    if load_uint8(zero + 1) == 46:
        for at in range(zero + 2, end):
            if not is_digit(load_uint8(at)):
                return 0
    return 1


@inlined
def _scan_exponent(start: int, end: int) -> Any:
    """Return where the digits begin, where they end, and the exponent; the sign is optional."""
    at = start
    is_negative = False
    if at < end and (load_uint8(at) == 45 or load_uint8(at) == 43):
        is_negative = load_uint8(at) == 45
        at += 1
    first = at
    power = 0
    while at < end:
        if not is_digit(load_uint8(at)):
            break
        if power < _MAX_EXPONENT:
            power = power * 10 + digit_at(at)
        at += 1
    return first, at, -power if is_negative else power
