"""The steps of a pattern of dates and times, as the kernel interprets them.

A step is four 64-bit words: a kind and its arguments. Offsets are in bytes.
"""

from __future__ import annotations

from typing import Final

STRIDE: Final = 32
KIND: Final = 0
FIELD: Final = 8
"""Of a number: its field. Of a literal: a byte. Of an optional part: the index of the step behind
its end. Of an offset: 1 if it has a colon, and of a fraction, the most digits."""

MIN_WIDTH: Final = 16
"""Of a number. Of an offset: whether ``Z`` stands for it."""

MAX_WIDTH: Final = 24
"""Of a number: the most digits, or the negative of how many its followers take of them."""

LITERAL: Final = 0
NUMBER: Final = 1
YEAR: Final = 2
"""A year of at least four digits, with a plus sign if it has more (``EXCEEDS_PAD``)."""

SHORT_YEAR: Final = 3
"""Two digits, from 2000 to 2099."""

FRACTION: Final = 4
OFFSET: Final = 5
HOUR_OFFSET: Final = 6
"""An offset of hours, perhaps with minutes (``X``)."""

OPTIONAL: Final = 7
OPTIONAL_END: Final = 8

YEARS: Final = 0
MONTHS: Final = 1
DAYS: Final = 2
HOURS: Final = 3
MINUTES: Final = 4
SECONDS: Final = 5

MAX_DIGITS: Final = 19
"""The digits of a number without a width in Java."""
