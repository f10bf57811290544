"""Writing numbers as text in kernels.

Each function writes at an address and returns the address behind the text. Callers make sure of
``NUMBER_ROOM`` bytes: a function may write some bytes more than its text has.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from ...kernels.memory import (
    high_product,
    load_uint8,
    load_uint64,
    store_uint8,
    store_uint64,
    trailing_zeros,
)
from ...kernels.parts import inlined
from .powers import MIN_TEN, TENS

NUMBER_ROOM: Final = 80
"""The bytes for the longest number: 38 digits, a sign, a point, six zeros and an exponent."""

SCRATCH_BYTES: Final = 64
"""The memory for the digits of a number."""

U = np.uint64

_ASCII_ZEROS: Final = U(0x3030303030303030)
_EIGHT_DIGITS: Final = 100_000_000
_TRUE: Final = U(int.from_bytes(b"true", "little"))
_FALSE: Final = U(int.from_bytes(b"false", "little"))
_NAN: Final = U(int.from_bytes(b"NaN", "little"))
_INFINITY: Final = U(int.from_bytes(b"Infinity", "little"))


@inlined
def eight_digits(number: Any) -> Any:
    """Return the eight decimal digits of a number below 10^8, the first in the lowest byte."""
    halves = (number // U(10_000)) | ((number % U(10_000)) << U(32))
    # Division by constants through multiplication: x * 10486 >> 20 is x / 100 below 10^4, and
    # x * 103 >> 10 is x / 10 below 100.
    hundreds = ((halves * U(10_486)) >> U(20)) & U(0x0000007F0000007F)
    pairs = hundreds | ((halves - U(100) * hundreds) << U(16))
    tens = ((pairs * U(103)) >> U(10)) & U(0x000F000F000F000F)
    return tens | ((pairs - U(10) * tens) << U(8))


@inlined
def put_short(at: int, number: Any) -> Any:
    """Write a number below 10^8."""
    digits = eight_digits(number)
    zeros = trailing_zeros(digits | (U(1) << U(56))) >> 3
    store_uint64(at, (digits | _ASCII_ZEROS) >> U(8 * zeros))
    return at + 8 - zeros


@inlined
def put_eight(at: int, number: Any) -> Any:
    """Write a number below 10^8 with eight digits."""
    store_uint64(at, eight_digits(number) | _ASCII_ZEROS)
    return at + 8


@inlined
def put_unsigned(at: int, number: Any) -> Any:
    """Write an unsigned number of 64 bits."""
    step = U(_EIGHT_DIGITS)
    if number < step:
        return put_short(at, number)
    upper = number // step
    if upper < step:
        at = put_short(at, upper)
    else:
        at = put_short(at, upper // step)
        at = put_eight(at, upper % step)
    return put_eight(at, number % step)


@inlined
def put_signed(at: int, number: Any) -> Any:
    """Write a signed number of 64 bits."""
    if number < 0:
        store_uint8(at, np.uint8(45))
        # The unsigned difference is right for the minimum, too.
        return put_unsigned(at + 1, U(0) - U(number))
    return put_unsigned(at, U(number))


@inlined
def put_digits(at: int, number: int, width: int) -> Any:
    """Write a number that is not negative with at least ``width`` digits, at most eight."""
    digits = eight_digits(U(number)) | _ASCII_ZEROS
    store_uint64(at, digits >> U(8 * (8 - width)))
    return at + width


@inlined
def put_decimal(at: int, scratch: int, low: Any, high: int, scale: int) -> Any:
    """Write an unscaled number of 128 bits as Java's ``BigDecimal.toString``."""
    if high < 0:
        store_uint8(at, np.uint8(45))
        at += 1
        low = ~low + U(1)
        high = ~high + (1 if low == U(0) else 0)
    size = _put_unscaled(scratch, low, U(high)) - scratch
    if scale == 0:
        return _copy(at, scratch, size)
    point = size - scale
    if point > -6:
        return _put_plain(at, scratch, size, point)
    return _put_scientific(at, scratch, size, point - 1)


@inlined
def _put_unscaled(at: int, low: Any, high: Any) -> Any:
    if high == U(0):
        return put_unsigned(at, low)
    # Long division by 10^8 in digits of 32 bits, from the last eight decimal digits on.
    limbs_0, limbs_1 = low & U(0xFFFFFFFF), low >> U(32)
    limbs_2, limbs_3 = high & U(0xFFFFFFFF), high >> U(32)
    step = U(_EIGHT_DIGITS)
    end = at + 40
    start = end
    while limbs_0 | limbs_1 | limbs_2 | limbs_3:
        rest = limbs_3 % step
        limbs_3 //= step
        limbs_2 |= rest << U(32)
        rest = limbs_2 % step
        limbs_2 //= step
        limbs_1 |= rest << U(32)
        rest = limbs_1 % step
        limbs_1 //= step
        limbs_0 |= rest << U(32)
        rest = limbs_0 % step
        limbs_0 //= step
        start -= 8
        put_eight(start, rest)
    while load_uint8(start) == 48:
        start += 1
    return _copy(at, start, end - start)


@inlined
def _copy(at: int, source: int, size: int) -> Any:
    """Copy to a lower or another address, eight bytes at a time."""
    done = 0
    while done < size:
        store_uint64(at + done, load_uint64(source + done))
        done += 8
    return at + size


@inlined
def _put_point(at: int) -> Any:
    store_uint8(at, np.uint8(46))
    return at + 1


@inlined
def _put_plain(at: int, digits: int, size: int, point: int) -> Any:
    """Write digits with the point behind the first ``point`` ones, or with zeros before them."""
    if point <= 0:
        store_uint8(at, np.uint8(48))
        at = _put_point(at + 1)
        # There are five at the most.
        store_uint64(at, _ASCII_ZEROS)
        return _copy(at - point, digits, size)
    at = _put_point(_copy(at, digits, point))
    return _copy(at, digits + point, size - point)


@inlined
def _put_scientific(at: int, digits: int, size: int, exponent: int) -> Any:
    """Write one digit, the others behind a point, and the exponent."""
    store_uint8(at, load_uint8(digits))
    at += 1
    if size > 1:
        at = _copy(_put_point(at), digits + 1, size - 1)
    store_uint8(at, np.uint8(69))
    return put_signed(at + 1, exponent)


@inlined
def put_bool(at: int, value: bool) -> Any:
    """Write ``true`` or ``false``."""
    store_uint64(at, _TRUE if value else _FALSE)
    return at + (4 if value else 5)


@inlined
def _put_special(at: int, is_negative: Any, fraction: Any, is_quoted: bool) -> Any:
    if is_quoted:
        store_uint8(at, np.uint8(34))
        at += 1
    if fraction:
        store_uint64(at, _NAN)
        at += 3
    else:
        if is_negative:
            store_uint8(at, np.uint8(45))
            at += 1
        store_uint64(at, _INFINITY)
        at += 8
    if is_quoted:
        store_uint8(at, np.uint8(34))
        at += 1
    return at


# Floating-point numbers, by Raffaello Giulietti's "The Schubfach way to render doubles", as the
# JDK has since release 19 (JDK-4511638).

_LOG10_OF_2: Final = int(math.log10(2) * 2**41)
_LOG10_OF_3_4: Final = math.floor(math.log10(0.75) * 2**41)
_LOG2_OF_10: Final = int(math.log2(10) * 2**38)
_LOW_63: Final = U(2**63 - 1)


@inlined
def put_float(at: int, scratch: int, bits: Any, is_quoted: bool) -> Any:
    """Write a 32-bit floating-point number as Java's ``Float.toString``.

    One that is not finite is in quotes, unless it is a key, which has them already.
    """
    return _put_binary(at, scratch, U(bits), 23, -149, is_quoted)


@inlined
def put_double(at: int, scratch: int, bits: Any, is_quoted: bool) -> Any:
    """Write a 64-bit floating-point number as Java's ``Double.toString``, as ``put_float`` does."""
    return _put_binary(at, scratch, bits, 52, -1074, is_quoted)


@inlined
def _put_binary(
    at: int, scratch: int, bits: Any, width: int, min_exponent: int, is_quoted: bool
) -> Any:
    is_double = width == 52
    sign = bits >> U(63 if is_double else 31)
    fraction = bits & ((U(1) << U(width)) - U(1))
    infinite = 0x7FF if is_double else 0xFF
    exponent: Any = np.int64((bits >> U(width)) & U(infinite))
    if exponent == infinite:
        return _put_special(at, sign, fraction, is_quoted)
    if sign:
        store_uint8(at, np.uint8(45))
        at += 1
    hidden = U(1) << U(width)
    if exponent == 0 and fraction == U(0):
        return _put_java(at, scratch, U(0), 0)
    shift = 0
    if exponent > 0:
        fraction |= hidden
        exponent += min_exponent - 1
        whole = -exponent
        if 0 < whole <= width and (fraction >> U(whole)) << U(whole) == fraction:
            return _put_java(at, scratch, fraction >> U(whole), 0)
    else:
        exponent = min_exponent
        # The smallest numbers have fewer than the two digits that Java writes.
        if fraction < (U(3) if is_double else U(8)):
            fraction *= U(10)
            shift = -1
    digits, power = _shortest(fraction, exponent, hidden, min_exponent)
    return _put_java(at, scratch, digits, power + shift)


@inlined
def _shortest(fraction: Any, exponent: int, hidden: Any, min_exponent: int) -> Any:
    """Return the number and power of ten that is the shortest in the interval of roundings."""
    odd = fraction & U(1)
    middle = fraction << U(2)
    upper = middle + U(2)
    if fraction != hidden or exponent == min_exponent:
        lower = middle - U(2)
        power = (exponent * _LOG10_OF_2) >> 41
    else:
        lower = middle - U(1)
        power = (exponent * _LOG10_OF_2 + _LOG10_OF_3_4) >> 41
    shift = U(exponent + ((-power * _LOG2_OF_10) >> 38) + 2)
    high, low = TENS[power - MIN_TEN, 0], TENS[power - MIN_TEN, 1]
    value = _product(high, low, middle << shift)
    lower = _product(high, low, lower << shift) + odd
    upper = _product(high, low, upper << shift)
    digits = value >> U(2)
    if digits >= U(100):
        tens = (digits // U(10)) * U(10)
        is_below = lower <= tens << U(2)
        is_above = ((tens + U(10)) << U(2)) + odd <= upper
        if is_below != is_above:
            return (tens if is_below else tens + U(10)), power
    is_below = lower <= digits << U(2)
    is_above = ((digits + U(1)) << U(2)) + odd <= upper
    if is_below != is_above:
        return (digits if is_below else digits + U(1)), power
    distance = np.int64(value - ((digits + digits + U(1)) << U(1)))
    is_nearer = distance < 0 or (distance == 0 and digits & U(1) == U(0))
    return (digits if is_nearer else digits + U(1)), power


@inlined
def _product(high: Any, low: Any, number: Any) -> Any:
    """Return the upper bits of a product with a power of ten; the last bit is sticky."""
    carried = (high * number >> U(1)) + high_product(low, number)
    upper = high_product(high, number) + (carried >> U(63))
    return upper | (((carried & _LOW_63) + _LOW_63) >> U(63))


@inlined
def _put_java(at: int, scratch: int, digits: Any, power: int) -> Any:
    """Write ``digits * 10^power``: plain from 10^-3 to 10^7, with a digit behind the point."""
    if digits == U(0):
        size, point = 1, 1
        store_uint8(scratch, np.uint8(48))
    else:
        for zeros in (8, 4, 2, 1):
            step = U(
                100_000_000 if zeros == 8 else 10_000 if zeros == 4 else 100 if zeros == 2 else 10
            )
            while digits % step == U(0):
                digits //= step
                power += zeros
        size = put_unsigned(scratch, digits) - scratch
        point = size + power
    # A zero behind the digits stands for those that are missing.
    store_uint64(scratch + size, _ASCII_ZEROS)
    if -3 < point <= 7:
        return _put_plain(at, scratch, max(size, point + 1), point)
    return _put_scientific(at, scratch, max(size, 2), point - 1)
