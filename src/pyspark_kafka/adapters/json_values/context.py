"""The memory that the functions of the kernel share: 64-bit words at one address.

A kernel takes the address of a context. Offsets are in bytes.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final, final

import numpy as np

from ...domain.values.errors import FailureReason
from .number_writing_kernel import SCRATCH_BYTES as DIGITS_BYTES
from .number_writing_kernel import powers_of_ten
from .powers import fives

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..kernels.arrays import Array, Int64Array

PROGRAM: Final = 0
"""The address of the program: an entry for each column, as ``program`` describes it."""

FLAGS: Final = 8
"""The options of the tokenizer: bits of ``flags``."""

LIMIT: Final = 16
"""The end of the memory that may be read: of all values, not of one."""

MAX_DEPTH: Final = 24
MAX_DIGITS: Final = 32

BRACKETS: Final = 40
"""The address of a byte for each level of nesting, up to ``MAX_DEPTH``."""

STACK: Final = 48
"""The address of a frame for each nested column that is being decoded."""

SCRATCH: Final = 56
"""The address of ``SCRATCH_BYTES`` bytes for a text without its escapes."""

BIG_NUMBER: Final = 64
"""The address of a number of ``number_reading_kernel``."""

FIVES: Final = 72
"""The address of the powers of five for ``number_reading_kernel``."""

TENS: Final = 80
"""The address of the powers of ten for ``number_writing_kernel``."""

ZONES: Final = 88
"""The address of the table of ``zones``."""

ZONE_COUNT: Final = 96
"""How many there are; 0 until a timestamp names one."""

DEFAULT_ZONE: Final = 104
"""The address of the entry of the zone of timestamps that name none."""

FULL_COLUMN: Final = 112
"""The column that has no room, for ``FULL``."""

FULL_BYTES: Final = 120
"""The bytes that its texts have no room for; 0 if it is elements that it has no room for."""

ZONE_TEXT: Final = 128
"""The address of the name of a zone whose offsets are needed, for ``NEEDS_ZONE``."""

ZONE_TEXT_BYTES: Final = 136

REASON: Final = 144
"""Why the first field of a row that is bad could not be decoded."""

FIELD: Final = 152
"""The column of that field."""

OTHER_BIG_NUMBER: Final = 160

DEPTH: Final = 168
"""How many objects and arrays are around the value that is being decoded."""

STARTS: Final = 176
ENDS: Final = 184
VALUES: Final = 192
"""The address of the bytes into which ``STARTS`` and ``ENDS`` point."""

REASONS: Final = 200
FIELDS: Final = 208
STATUS: Final = 216
"""Why a kernel stopped before the last row: ``FULL`` or ``NEEDS_ZONE``."""

NUMBER_SCRATCH: Final = 224
"""The address of the scratch of ``number_writing_kernel``."""

DATE_STEPS: Final = 232
"""The address of the steps of a pattern of dates (``patterns``), or 0."""

DATE_STEP_COUNT: Final = 240
TIMESTAMP_STEPS: Final = 248
TIMESTAMP_STEP_COUNT: Final = 256
NTZ_STEPS: Final = 264
NTZ_STEP_COUNT: Final = 272

LAST_ZONE: Final = 280
"""The address of the entry of the zone that was named last, or 0."""

WORDS: Final = 36
SCRATCH_BYTES: Final = 8192
MAX_TEXT_BYTES: Final = SCRATCH_BYTES // 2
"""The longest text with escapes that may be a date, a timestamp or a decimal, or name a field."""

FULL: Final = -1000
"""A column has no room for a value."""

NEEDS_ZONE: Final = -1001
"""A timestamp names a time zone, and the table has not its offsets yet, or no names."""

COMMENTS: Final = 1
UNQUOTED_NAMES: Final = 2
SINGLE_QUOTES: Final = 4
LEADING_ZEROS: Final = 8
NOT_A_NUMBER: Final = 16
ANY_ESCAPE: Final = 32
CONTROL_CHARACTERS: Final = 64
DATES_HAVE_FALLBACK: Final = 128
TIMESTAMPS_HAVE_FALLBACK: Final = 256

MALFORMED: Final = int(FailureReason.MALFORMED)
TRUNCATED: Final = int(FailureReason.TRUNCATED)
BAD_UTF8: Final = int(FailureReason.BAD_UTF8)
TYPE_MISMATCH: Final = int(FailureReason.TYPE_MISMATCH)
OUT_OF_RANGE: Final = int(FailureReason.OUT_OF_RANGE)
TOO_DEEP: Final = int(FailureReason.TOO_DEEP)
TOO_LARGE: Final = int(FailureReason.TOO_LARGE)


def big_number_bytes(max_digits: int) -> int:
    """Return the size of a big number's memory, for texts of so many digits.

    A number in the range of doubles has up to 345 zeros before its digits or behind them; the other
    number is shifted by up to 1100 bits, and 10 is less than 2**3.4.
    """
    bits = 34 * (max_digits + 345) // 10 + 1200
    return 8 * (bits // 32 + 8)


@cache
def _tables() -> tuple[Array, Array]:
    return fives(), powers_of_ten()


@final
class KernelMemory:
    """A context, with the memory to which its addresses point."""

    def __init__(self, flags: int, max_depth: int, max_digits: int) -> None:
        self._words: Int64Array = np.zeros(WORDS, np.int64)
        self._arrays: list[Array] = [*_tables()]
        self[FLAGS], self[MAX_DEPTH], self[MAX_DIGITS] = flags, max_depth, max_digits
        self[FIVES], self[TENS] = (table.ctypes.data for table in self._arrays)
        size = big_number_bytes(max_digits)
        for place, count in (
            (BIG_NUMBER, size),
            (OTHER_BIG_NUMBER, size),
            (BRACKETS, max_depth + 2),
            (SCRATCH, SCRATCH_BYTES),
            (NUMBER_SCRATCH, DIGITS_BYTES),
        ):
            self.point(place, np.zeros(count, np.uint8))

    @property
    def address(self) -> int:
        """The address of the context."""
        return self._words.ctypes.data

    def point(self, place: int, array: Array) -> None:
        """Let a word be the address of an array, which is kept alive."""
        self._arrays.append(array)
        self[place] = array.ctypes.data

    def keep(self, arrays: Sequence[Array]) -> None:
        """Keep arrays alive to which others point."""
        self._arrays += arrays

    def __getitem__(self, place: int) -> int:
        return int(self._words[place // 8])

    def __setitem__(self, place: int, number: int) -> None:
        self._words[place // 8] = number
