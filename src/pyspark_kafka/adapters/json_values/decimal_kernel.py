"""Decimals from the text of a number."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ..kernels.memory import high_product, load_uint8
from ..kernels.parts import inlined
from .number_text_kernel import digit_at, is_digit

_ZERO: Final = np.uint64(0)
_ONE: Final = np.uint64(1)
_TEN: Final = np.uint64(10)
_COMMA: Final = 44
_POINT: Final = 46
_MAX_DIGITS: Final = 38
_MAX_EXPONENT_DIGITS: Final = 10
_MAX_INT32: Final = 2**31 - 1
_LIMITS: Final = np.array(
    [(10**power >> 64, 10**power & (2**64 - 1)) for power in range(_MAX_DIGITS + 1)], np.uint64
)

NOT_A_DECIMAL: Final = -1
TOO_LARGE: Final = 0
DECIMAL: Final = 1


@inlined
def parse_decimal(start: int, end: int, precision: int, scale: int) -> Any:
    """Return what a text is, and the halves of the unscaled decimal, the lower one first.

    The text is as Java's ``BigDecimal`` takes it, but for commas anywhere, which Spark removes from
    texts in quotes. Further digits are rounded half up.
    """
    at = start
    is_negative = False
    while at < end and load_uint8(at) == _COMMA:
        at += 1
    if at < end and (load_uint8(at) == 45 or load_uint8(at) == 43):
        is_negative = load_uint8(at) == 45
        at += 1
    mantissa_end, first, point, count = _scan_mantissa(at, end)
    is_number, exponent = _scan_exponent(mantissa_end, end)
    if count == 0 or not is_number:
        return NOT_A_DECIMAL, _ZERO, _ZERO
    if first < 0:
        return DECIMAL, _ZERO, _ZERO
    # The number is 0.digits * 10**point: this many digits remain at the scale.
    kept = point + exponent + scale
    if kept > _MAX_DIGITS:
        return TOO_LARGE, _ZERO, _ZERO
    low, high = _rounded(first, mantissa_end, kept)
    limit = _LIMITS[precision]
    if high > limit[0] or (high == limit[0] and low >= limit[1]):
        return TOO_LARGE, _ZERO, _ZERO
    if is_negative:
        low = ~low + _ONE
        high = ~high + np.uint64(low == _ZERO)
    return DECIMAL, low, high


@inlined
def _scan_mantissa(start: int, end: int) -> Any:
    """Return where it ends, its first significant digit or -1, a power of ten, and a count.

    The number is ``0.digits * 10 ** power``; the count is of all digits.
    """
    at = start
    first = -1
    count = 0
    power = 0
    is_fraction = False
    while at < end:
        byte = load_uint8(at)
        if is_digit(byte):
            count += 1
            if first < 0 and byte != 48:
                first = at
            if first < 0:
                power -= is_fraction
            else:
                power += not is_fraction
        elif byte == _POINT and not is_fraction:
            is_fraction = True
        elif byte != _COMMA:
            break
        at += 1
    return at, first, power, count


@inlined
def _scan_exponent(start: int, end: int) -> Any:
    """Return whether a text is an exponent or nothing, and its number."""
    if start >= end:
        return True, 0
    if load_uint8(start) | 0x20 != 101:
        return False, 0
    at = start + 1
    is_negative = False
    power = 0
    count = 0
    while at < end:
        byte = load_uint8(at)
        if is_digit(byte):
            count += count > 0 or byte != 48
            if count > _MAX_EXPONENT_DIGITS:
                return False, 0
            power = power * 10 + digit_at(at)
        elif byte != _COMMA:
            is_sign = byte == 43 or byte == 45
            if not is_sign or load_uint8(at - 1) | 0x20 != 101:
                return False, 0
            is_negative = byte == 45
        at += 1
    has_digits = is_digit(load_uint8(end - 1)) or load_uint8(end - 1) == _COMMA
    return has_digits and power <= _MAX_INT32, -power if is_negative else power


@inlined
def _rounded(first: int, end: int, kept: int) -> Any:
    """Return the integer of the first digits, as many as are kept, rounded by the next one."""
    low = high = _ZERO
    digits = 0
    at = first
    while digits < kept:
        digit = _ZERO
        if at < end:
            byte = load_uint8(at)
            at += 1
            if not is_digit(byte):
                continue
            digit = np.uint64(byte - 48)
        carry = high_product(low, _TEN)
        high = high * _TEN + carry
        low = low * _TEN + digit
        high += np.uint64(low < digit)
        digits += 1
    while at < end and not is_digit(load_uint8(at)):
        at += 1
    if kept >= 0 and at < end and load_uint8(at) >= 53:
        low += _ONE
        high += np.uint64(low == _ZERO)
    return low, high
