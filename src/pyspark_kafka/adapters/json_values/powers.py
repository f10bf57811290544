"""The powers of five that number kernels multiply with, in 128 bits each."""

from __future__ import annotations

from typing import Final

import numpy as np

MIN_FIVE: Final = -342
MAX_FIVE: Final = 308
"""The exponents of ten that a double can have, with a mantissa of up to 19 digits."""

MIN_ROUNDED_UP: Final = -27

_WORD: Final = 2**64 - 1


def fives() -> np.ndarray[tuple[int, int], np.dtype[np.uint64]]:
    """Return ``5 ** q`` for each q, upper half first, normalized to 128 bits.

    They are truncated, except from -27 to -1, where they are rounded up: so the algorithm of
    https://arxiv.org/abs/2101.11408 needs no fallback.
    """
    return _halves([_five(power) for power in range(MIN_FIVE, MAX_FIVE + 1)])


def _five(power: int) -> int:
    if power >= 0:
        exact = int(5**power)
        return _shifted(exact, 128 - exact.bit_length())
    divisor = int(5**-power)
    rounded_up = power >= MIN_ROUNDED_UP
    return (1 << (divisor.bit_length() + 127)) // divisor + rounded_up


def _shifted(number: int, places: int) -> int:
    return number << places if places >= 0 else number >> -places


def _halves(numbers: list[int]) -> np.ndarray[tuple[int, int], np.dtype[np.uint64]]:
    return np.array([(number >> 64, number & _WORD) for number in numbers], np.uint64)
