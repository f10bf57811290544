"""Comparing a number's text with a binary number, exactly.

A big number is a count of words, then the words, lowest first: 32 bits of each word of 64.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ..kernels.memory import load_int64, load_uint8, load_uint64, store_int64, store_uint64
from ..kernels.parts import inlined
from . import context as at_
from .number_text_kernel import digit_at

_LOW: Final = np.uint64(0xFFFFFFFF)
_BITS: Final = np.uint64(32)
_BILLION: Final = np.uint64(1_000_000_000)
_FIVES: Final = np.array([5**power for power in range(14)], np.uint64)
_TENS: Final = np.array([10**power for power in range(10)], np.uint64)


def big_number_bytes(max_digits: int) -> int:
    """Return the size of a big number's memory, for texts of so many digits.

    A number in the range of doubles has up to 345 zeros before its digits or behind them; the other
    number is shifted by up to 1100 bits, and 10 is less than 2**3.4.
    """
    bits = 34 * (max_digits + 345) // 10 + 1200
    return 8 * (bits // 32 + 8)


@inlined
def compare_with_number(context: int, start: int, end: int, mantissa: Any, power: int) -> Any:
    """Return the sign of the text's number minus ``mantissa * 2 ** power``.

    The text has no sign and more than one significant digit; the numbers are of similar size.
    """
    left = load_int64(context + at_.BIG_NUMBER)
    right = load_int64(context + at_.OTHER_BIG_NUMBER)
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
        _multiply_add(number, _TENS[digits], group)
    return exponent + _exponent(at, end)


@inlined
def _exponent(start: int, end: int) -> Any:
    """Return the number behind an ``e``, if there is one."""
    at = start
    is_negative = False
    if at < end and (load_uint8(at) == 45 or load_uint8(at) == 43):
        is_negative = load_uint8(at) == 45
        at += 1
    power = 0
    while at < end:
        power = power * 10 + digit_at(at)
        at += 1
    return -power if is_negative else power


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
