"""Numbers of 64 and 32 bits from decimal digits, correctly rounded."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ..kernels.memory import (
    bits_of_double,
    double_of_bits,
    high_product,
    leading_zeros,
    load_int64,
    load_uint64,
)
from ..kernels.parts import inlined
from . import context as at
from .big_number_kernel import compare_with_number
from .number_text_kernel import MAX_MANTISSA_DIGITS
from .powers import MAX_FIVE, MIN_FIVE

_ZERO: Final = np.uint64(0)
_ONE: Final = np.uint64(1)
_THREE: Final = np.uint64(3)
_MANTISSA_BITS: Final = 52
_INFINITE_EXPONENT: Final = 0x7FF
_INFINITY: Final = np.uint64(0x7FF0000000000000)
_HIDDEN: Final = np.uint64(1 << 52)
_FRACTION: Final = np.uint64((1 << 52) - 1)
_LOW_NINE: Final = np.uint64(0x1FF)
_MAX_EXACT: Final = np.uint64(1 << 53)
_MAX_EXACT_TEN: Final = 22
_TENS: Final = np.array([10.0**power for power in range(_MAX_EXACT_TEN + 1)])
_FLOAT_OVERFLOW: Final = float(2**128 - 2**103)
"""Halfway between the largest float and the next power of two: from here on it is infinite."""


@inlined
def double_of(context: int, start: int, end: int, mantissa: Any, exponent: int, digits: int) -> Any:
    """Return the double of a number without its sign, whose text is ``[start, end)``.

    The other arguments are what ``scan_number`` returns for it.
    """
    if digits <= MAX_MANTISSA_DIGITS:
        return short_double_of(context, mantissa, exponent)
    low = _rounded(context, mantissa, exponent)
    high = _rounded(context, mantissa + _ONE, exponent)
    if low != high:
        # Between two neighbours: compare with the number halfway, of one more bit.
        mantissa, power = _parts(low)
        order = compare_with_number(context, start, end, mantissa + mantissa + _ONE, power - 1)
        if order > 0 or (order == 0 and low & _ONE):
            low = high
    return double_of_bits(low)


@inlined
def short_double_of(context: int, mantissa: Any, exponent: int) -> Any:
    """Return the double of a number whose digits are all in the mantissa."""
    if mantissa <= _MAX_EXACT and -_MAX_EXACT_TEN <= exponent <= 0:
        # Both are exact doubles: one division rounds once.
        return np.float64(mantissa) / _TENS[-exponent]
    return double_of_bits(_rounded(context, mantissa, exponent))


@inlined
def float_of(context: int, start: int, end: int, double: Any) -> Any:
    """Return the float nearest to a text, whose nearest double is known.

    Rounding twice is wrong only where the double is halfway between two floats and the text is not.
    """
    if double >= _FLOAT_OVERFLOW:
        if double > _FLOAT_OVERFLOW:
            return np.float32(np.inf)
        nearest = np.float32(np.inf)
        other = np.float64(_FLOAT_OVERFLOW) - np.float64(2.0**103)
        is_halfway = True
    else:
        nearest = np.float32(double)
        rounded = np.float64(nearest)
        other = double + (double - rounded)
        # The double beyond ``double`` at the same distance is a float only if it is halfway.
        is_halfway = rounded != double and np.float64(np.float32(other)) == other
    if not is_halfway:
        return nearest
    mantissa, power = _parts(bits_of_double(double))
    order = compare_with_number(context, start, end, mantissa, power)
    is_up = np.float64(nearest) > double
    if (order > 0 and not is_up) or (order < 0 and is_up):
        return np.float32(other)
    return nearest


@inlined
def _parts(bits: Any) -> Any:
    """Return the mantissa as an integer, and its power of two, of a finite double's bits."""
    biased = np.int64(bits >> np.uint64(_MANTISSA_BITS))
    if biased == 0:
        return bits & _FRACTION, -1074
    return (bits & _FRACTION) | _HIDDEN, biased - 1075


@inlined
def _rounded(context: int, mantissa: Any, exponent: int) -> Any:
    """Return the bits of the double nearest to ``mantissa * 10 ** exponent``.

    The algorithm of Eisel and Lemire: https://arxiv.org/abs/2101.11408. No fallback is needed for
    the exponents in the table: https://arxiv.org/abs/2212.06644.
    """
    if mantissa == _ZERO or exponent < MIN_FIVE:
        return _ZERO
    if exponent > MAX_FIVE:
        return _INFINITY
    shift = leading_zeros(mantissa)
    normal = mantissa << np.uint64(shift)
    power = load_int64(context + at.FIVES) + 16 * (exponent - MIN_FIVE)
    five = load_uint64(power)
    low = normal * five
    high = high_product(normal, five)
    if high & _LOW_NINE == _LOW_NINE:
        correction = high_product(normal, load_uint64(power + 8))
        low += correction
        if correction > low:
            high += _ONE
    top = np.int64(high >> np.uint64(63))
    cut = np.uint64(top + 64 - _MANTISSA_BITS - 3)
    result = high >> cut
    # 217706 / 2**16 is log2(10), close enough for these exponents.
    biased = ((217706 * exponent) >> 16) + 63 + top - shift + 1023
    if biased <= 0:
        if biased <= -63:
            return _ZERO
        result >>= np.uint64(1 - biased)
        # The carry into bit 52 makes it the smallest normal number.
        return (result + (result & _ONE)) >> _ONE
    is_tie = low <= _ONE and -4 <= exponent <= 23 and result & _THREE == _ONE
    if is_tie and result << cut == high:
        result &= ~_ONE
    result = (result + (result & _ONE)) >> _ONE
    if result >= _HIDDEN << _ONE:
        result = _HIDDEN
        biased += 1
    if biased >= _INFINITE_EXPONENT:
        return _INFINITY
    return (result & _FRACTION) | np.uint64(biased) << np.uint64(_MANTISSA_BITS)
