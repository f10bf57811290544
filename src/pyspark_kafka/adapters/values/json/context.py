"""The memory that the functions of the kernel share: 64-bit words at one address.

A kernel takes the address of a context. Offsets are in bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

import numpy as np

from ..columns import decoding
from .number_writing_kernel import SCRATCH_BYTES as DIGITS_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...kernels.arrays import Array, Int64Array

WORDS: Final = decoding.HEAD_BYTES // 8 + 26
(
    PROGRAM,
    STACK,
    FLAGS,
    LIMIT,
    MAX_DEPTH,
    MAX_DIGITS,
    BRACKETS,
    SCRATCH,
    NUMBER_SCRATCH,
    BIG_NUMBER,
    OTHER_BIG_NUMBER,
    ZONES,
    ZONE_COUNT,
    DEFAULT_ZONE,
    LAST_ZONE,
    DATE_STEPS,
    DATE_STEP_COUNT,
    TIMESTAMP_STEPS,
    TIMESTAMP_STEP_COUNT,
    NTZ_STEPS,
    NTZ_STEP_COUNT,
    DEPTH,
    REASON,
    FIELD,
    ZONE_TEXT,
    ZONE_TEXT_BYTES,
) = range(decoding.HEAD_BYTES, 8 * WORDS, 8)
"""The words behind those of each decoder.

- Of the schema: the addresses of an entry for each column (``decode_table``), and of a frame for
  each nested column that is being decoded.
- Of the options: their bits, as below; the end of the memory that may be read, which is that of
  all values; the bounds of nesting and of the digits of a number.
- Addresses of memory: a byte for each level of nesting, ``SCRATCH_BYTES`` for a text without its
  escapes, the digits of a number that is written, and two big numbers (``number_reading_kernel``).
- Of time zones: the table and its length (``zones``), 0 until a timestamp names one; the addresses
  of the entries of timestamps that name none, and of the zone that was named last, or 0.
- Of patterns: the addresses of their steps (``patterns``) or 0, and their counts.
- Of a row: how many objects and arrays are around the value that is being decoded; why the first
  field that is bad could not be, or 0, and its column.
- The address and the size of the name of the zone that the kernel needs, if it is not room.
"""

SCRATCH_BYTES: Final = 8192
MAX_TEXT_BYTES: Final = SCRATCH_BYTES // 2
"""The longest text with escapes that may be a date, a timestamp or a decimal, or name a field."""

FULL: Final = -1000
"""A column has no room for a value."""

NEEDS_ZONE: Final = -1001
"""A timestamp names a time zone, and the table has not its offsets yet, or no names."""

(
    COMMENTS,
    UNQUOTED_NAMES,
    SINGLE_QUOTES,
    LEADING_ZEROS,
    NOT_A_NUMBER,
    ANY_ESCAPE,
    CONTROL_CHARACTERS,
    DATES_HAVE_FALLBACK,
    TIMESTAMPS_HAVE_FALLBACK,
) = (1 << bit for bit in range(9))


def big_number_bytes(max_digits: int) -> int:
    """Return the size of a big number's memory, for texts of so many digits.

    A number in the range of doubles has up to 345 zeros before its digits or behind them; the other
    number is shifted by up to 1100 bits, and 10 is less than 2**3.4.
    """
    bits = 34 * (max_digits + 345) // 10 + 1200
    return 8 * (bits // 32 + 8)


@final
class KernelMemory:
    """A context, with the memory to which its addresses point."""

    def __init__(self, flags: int, max_depth: int, max_digits: int) -> None:
        self.words: Int64Array = np.zeros(WORDS, np.int64)
        self._arrays: list[Array] = []
        self[FLAGS], self[MAX_DEPTH], self[MAX_DIGITS] = flags, max_depth, max_digits
        size = big_number_bytes(max_digits)
        for place, count in (
            (BIG_NUMBER, size),
            (OTHER_BIG_NUMBER, size),
            (BRACKETS, max_depth + 2),
            (SCRATCH, SCRATCH_BYTES),
            (NUMBER_SCRATCH, DIGITS_BYTES),
        ):
            self.point(place, np.zeros(count, np.uint8))

    def point(self, place: int, array: Array) -> None:
        """Let a word be the address of an array, which is kept alive."""
        self._arrays.append(array)
        self[place] = array.ctypes.data

    def keep(self, arrays: Sequence[Array]) -> None:
        """Keep arrays alive to which others point."""
        self._arrays += arrays

    def __getitem__(self, place: int) -> int:
        return int(self.words[place // 8])

    def __setitem__(self, place: int, number: int) -> None:
        self.words[place // 8] = number
