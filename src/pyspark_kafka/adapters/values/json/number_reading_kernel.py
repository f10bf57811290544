"""Doubles, floats and decimals from the text of a number.

Functions that parse return a position, or the negative of a ``FailureReason``.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ...kernels.memory import (
    bits_of_double,
    double_of_bits,
    high_product,
    leading_zeros,
    load_int64,
    load_uint8,
    load_uint64,
    store_int64,
    store_uint64,
)
from ...kernels.parts import inlined
from ..columns.decoding import MALFORMED, OUT_OF_RANGE, TOO_LARGE, TRUNCATED, TYPE_MISMATCH
from . import context as words
from .powers import FIVES, MAX_FIVE, MIN_FIVE

MAX_MANTISSA_DIGITS: Final = 19
"""Any number of 19 digits is less than 2^64."""

_MINUS: Final = 45
_MAX_INT32: Final = 2**31 - 1
_ZERO: Final = np.uint64(0)
_ONE: Final = np.uint64(1)
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
def scan_digits(start: int, end: int) -> Any:
    """Return where digits end, and their number; one beyond 32 bits is any other such number."""
    at = start
    number = 0
    while at < end and is_digit(load_uint8(at)):
        if number <= _MAX_INT32:
            number = number * 10 + digit_at(at)
        at += 1
    return at, number


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
    if is_zero_first and load_int64(context + words.FLAGS) & words.LEADING_ZEROS == 0:
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
    maximum = load_int64(context + words.MAX_DIGITS)
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
    at, power = scan_digits(first, end)
    return first, at, -power if is_negative else power


_LOW: Final = np.uint64(0xFFFFFFFF)
_BITS: Final = np.uint64(32)
_BILLION: Final = np.uint64(1_000_000_000)
_FIVES: Final = np.array([5**power for power in range(14)], np.uint64)
_TENS_OF_WORDS: Final = np.array([10**power for power in range(10)], np.uint64)


@inlined
def compare_with_number(context: int, start: int, end: int, mantissa: Any, power: int) -> Any:
    """Return the sign of the text's number minus ``mantissa * 2 ** power``.

    The text has no sign and more than one significant digit; the numbers are of similar size.
    """
    left = load_int64(context + words.BIG_NUMBER)
    right = load_int64(context + words.OTHER_BIG_NUMBER)
    exponent = _read(left, start, end)
    store_int64(right, 2 if mantissa >> _BITS else 1)
    store_uint64(right + 8, mantissa & _LOW)
    store_uint64(right + 16, mantissa >> _BITS)
    # 10**e is 5**e * 2**e: keep all factors on the side where they are integers.
    _multiply_by_fives(left if exponent > 0 else right, abs(exponent))
    twos = exponent - power
    _shift_left(left if twos > 0 else right, abs(twos))
    return _compare(left, right)


@inlined
def _read(number: int, start: int, end: int) -> Any:
    """Read the digits of a text as an integer, and return the power of ten that it lacks."""
    store_int64(number, 0)
    exponent = 0
    is_fraction = False
    group = np.uint64(0)
    digits = 0
    at = start
    while at < end:
        byte = load_uint8(at)
        at += 1
        if byte == 46:
            is_fraction = True
            continue
        if byte < 48 or byte > 57:
            break
        group = group * np.uint64(10) + np.uint64(byte - 48)
        digits += 1
        exponent -= is_fraction
        if digits == 9:
            _multiply_add(number, _BILLION, group)
            group = np.uint64(0)
            digits = 0
    if digits > 0:
        _multiply_add(number, _TENS_OF_WORDS[digits], group)
    _, _, power = _scan_exponent(at, end)
    return exponent + power


@inlined
def _multiply_add(number: int, factor: Any, summand: Any) -> None:
    count = load_int64(number)
    carry = summand
    place = number + 8
    for _ in range(count):
        word = load_uint64(place) * factor + carry
        store_uint64(place, word & _LOW)
        carry = word >> _BITS
        place += 8
    if carry:
        store_uint64(place, carry)
        store_int64(number, count + 1)


@inlined
def _multiply_by_fives(number: int, power: int) -> None:
    left = power
    while left > 13:
        _multiply_add(number, _FIVES[13], np.uint64(0))
        left -= 13
    _multiply_add(number, _FIVES[left], np.uint64(0))


@inlined
def _shift_left(number: int, places: int) -> None:
    """Multiply by ``2 ** places``."""
    count = load_int64(number)
    words = places // 32
    bits = np.uint64(places % 32)
    above = np.uint64(0)
    place = number + 8 * count
    for _ in range(count):
        word = load_uint64(place) << bits
        store_uint64(place + 8 * (words + 1), (word >> _BITS) | above)
        above = word & _LOW
        place -= 8
    store_uint64(place + 8 * (words + 1), above)
    for _ in range(words):
        place += 8
        store_uint64(place, np.uint64(0))
    count += words + 1
    while count > 0 and load_uint64(number + 8 * count) == 0:
        count -= 1
    store_int64(number, count)


@inlined
def _compare(left: int, right: int) -> Any:
    count = load_int64(left)
    other = load_int64(right)
    if count != other:
        return 1 if count > other else -1
    for place in range(count, 0, -1):
        one = load_uint64(left + 8 * place)
        two = load_uint64(right + 8 * place)
        if one != two:
            return 1 if one > two else -1
    return 0


_THREE: Final = np.uint64(3)
_MANTISSA_BITS: Final = 52
_INFINITE_EXPONENT: Final = 0x7FF
_INFINITY: Final = np.uint64(0x7FF0000000000000)
_HIDDEN: Final = np.uint64(1 << 52)
_FRACTION: Final = np.uint64((1 << 52) - 1)
_LOW_NINE: Final = np.uint64(0x1FF)
_MAX_EXACT: Final = np.uint64(1 << 53)
_MAX_EXACT_TEN: Final = 22
_EXACT_TENS: Final = np.array([10.0**power for power in range(_MAX_EXACT_TEN + 1)])
_FLOAT_OVERFLOW: Final = float(2**128 - 2**103)
"""Halfway between the largest float and the next power of two: from here on it is infinite."""


@inlined
def double_of(context: int, start: int, end: int, mantissa: Any, exponent: int, digits: int) -> Any:
    """Return the double of a number without its sign, whose text is ``[start, end)``.

    The other arguments are what ``scan_number`` returns for it.
    """
    if digits <= MAX_MANTISSA_DIGITS:
        return short_double_of(mantissa, exponent)
    low = _rounded(mantissa, exponent)
    high = _rounded(mantissa + _ONE, exponent)
    if low != high:
        # Between two neighbours: compare with the number halfway, of one more bit.
        mantissa, power = _parts(low)
        order = compare_with_number(context, start, end, mantissa + mantissa + _ONE, power - 1)
        if order > 0 or (order == 0 and low & _ONE):
            low = high
    return double_of_bits(low)


@inlined
def short_double_of(mantissa: Any, exponent: int) -> Any:
    """Return the double of a number whose digits are all in the mantissa."""
    if mantissa <= _MAX_EXACT and -_MAX_EXACT_TEN <= exponent <= 0:
        # Both are exact doubles: one division rounds once.
        return np.float64(mantissa) / _EXACT_TENS[-exponent]
    return double_of_bits(_rounded(mantissa, exponent))


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
def _rounded(mantissa: Any, exponent: int) -> Any:
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
    power = exponent - MIN_FIVE
    five = FIVES[power, 0]
    low = normal * five
    high = high_product(normal, five)
    if high & _LOW_NINE == _LOW_NINE:
        correction = high_product(normal, FIVES[power, 1])
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


_COMMA: Final = 44
_POINT: Final = 46
_MAX_DECIMAL_DIGITS: Final = 38
_MAX_EXPONENT_DIGITS: Final = 10
_LIMITS: Final = np.array(
    [divmod(10**power, 2**64) for power in range(_MAX_DECIMAL_DIGITS + 1)], np.uint64
)


@inlined
def parse_decimal(start: int, end: int, precision: int, scale: int) -> Any:
    """Return 1 and the halves of the unscaled decimal, the lower one first, or a negative reason.

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
    is_number, exponent = _scan_decimal_exponent(mantissa_end, end)
    if count == 0 or not is_number:
        return -TYPE_MISMATCH, _ZERO, _ZERO
    if first < 0:
        return 1, _ZERO, _ZERO
    # The number is 0.digits * 10**point: this many digits remain at the scale.
    kept = point + exponent + scale
    if kept > _MAX_DECIMAL_DIGITS:
        return -OUT_OF_RANGE, _ZERO, _ZERO
    low, high = _rounded_decimal(first, mantissa_end, kept)
    limit = _LIMITS[precision]
    if high > limit[0] or (high == limit[0] and low >= limit[1]):
        return -OUT_OF_RANGE, _ZERO, _ZERO
    if is_negative:
        low = ~low + _ONE
        high = ~high + np.uint64(low == _ZERO)
    return 1, low, high


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
def _scan_decimal_exponent(start: int, end: int) -> Any:
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
def _rounded_decimal(first: int, end: int, kept: int) -> Any:
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
