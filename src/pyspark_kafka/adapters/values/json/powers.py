"""The powers of ten that kernels multiply with."""

from __future__ import annotations

from typing import Final

import numpy as np

MIN_FIVE: Final = -342
MAX_FIVE: Final = 308
"""The exponents of ten that a double can have, with a mantissa of up to 19 digits."""

MIN_TEN: Final = -324
_MAX_TEN: Final = 292
_MIN_ROUNDED_UP: Final = -27


def _first_bits(power: int, bits: int) -> int:
    """Return the first bits of ``10 ** power``, truncated."""
    exact = int(10 ** abs(power))
    if power < 0:
        return (1 << (exact.bit_length() + bits - 1)) // exact
    places = bits - exact.bit_length()
    return exact << places if places >= 0 else exact >> -places


FIVES: Final = np.array(
    [
        divmod(_first_bits(power, 128) + (_MIN_ROUNDED_UP <= power < 0), 2**64)
        for power in range(MIN_FIVE, MAX_FIVE + 1)
    ],
    np.uint64,
)
"""``5 ** q`` for each q, upper half first, normalized to 128 bits.

They are truncated, except from -27 to -1, where they are rounded up: so the algorithm of
https://arxiv.org/abs/2101.11408 needs no fallback.
"""

TENS: Final = np.array(
    [divmod(_first_bits(-power, 126) + 1, 2**63) for power in range(MIN_TEN, _MAX_TEN + 1)],
    np.uint64,
)
"""The upper and lower 63 bits of ``10 ** -k``, scaled to 126 bits, for each k."""
