"""Big-endian numbers of any length, for kernels, as decimals of 128 bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..kernels.memory import high_product, load_uint8
from ..kernels.parts import inlined


@inlined
def word(start: int, first: int, last: int) -> Any:
    """Return bytes ``first`` to ``last`` from an address as 64 bits; before 0, the sign."""
    bits = np.uint64(0)
    sign = np.uint64(255) if load_uint8(start) > 127 else np.uint64(0)
    for place in range(first, last):
        byte = np.uint64(load_uint8(start + place)) if place >= 0 else sign
        bits = bits << np.uint64(8) | byte
    return bits


@inlined
def low_word(start: int, size: int) -> Any:
    """Return the lower 64 bits of a number of ``size`` bytes."""
    return word(start, size - 8, size)


@inlined
def high_word(start: int, size: int) -> Any:
    """Return the upper 64 of the 128 bits of a number of ``size`` bytes."""
    return np.int64(word(start, size - 16, size - 8))


@inlined
def is_wider(start: int, size: int) -> Any:
    """Return whether a number of ``size`` bytes has more than 128 bits."""
    if size <= 16:
        return False
    sign = 255 if load_uint8(start + size - 16) > 127 else 0
    place = 0
    while place < size - 16 and load_uint8(start + place) == sign:
        place += 1
    return place < size - 16


@inlined
def is_below(low: Any, high: int, limit_low: Any, limit_high: Any) -> Any:
    """Return whether the absolute value of 128 bits is below a limit."""
    upper = np.uint64(high)
    lower = low
    if high < 0:
        lower = np.uint64(0) - low
        upper = ~upper + (np.uint64(1) if low == 0 else np.uint64(0))
    return upper < limit_high or (upper == limit_high and lower < limit_low)


@inlined
def high_of_product(low: Any, high: int, factor_low: Any, factor_high: int) -> Any:
    """Return the upper 64 of the lower 128 bits of a product, which fits in them."""
    upper = high_product(low, factor_low)
    upper += low * np.uint64(factor_high) + np.uint64(high) * factor_low
    return np.int64(upper)
