"""Writing dates and timestamps as text in kernels, by a program made of a pattern."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ..kernels.memory import load_int64, store_uint8
from ..kernels.parts import inlined
from .number_writing_kernel import U, put_digits, put_unsigned

# A step of a program is one of these, and 256 times its argument.
LITERAL: Final = 0
"""A character."""

YEAR: Final = 1
"""The proleptic year with at least as many digits as the argument; with a sign if it has more."""

MONTH: Final = 2
DAY: Final = 3
HOUR: Final = 4
MINUTE: Final = 5
SECOND: Final = 6
FRACTION: Final = 7
"""As many digits of the fraction of a second as the argument, truncated."""

OFFSET: Final = 8
"""The offset from UTC, ``+hh:mm``; the argument has bits of what is written else."""

HAS_Z: Final = 1
"""``Z`` if the offset is zero."""

HAS_SECONDS: Final = 2
"""The seconds of the offset, unless they are zero."""

MICROS_PER_DAY: Final = 86_400_000_000
_MICROS_PER_SECOND: Final = 1_000_000


@inlined
def put_time(at: int, program: int, steps: int, days: Any, micros: int, offset_s: int) -> Any:
    """Write a local time: days since 1970, microseconds, and its offset from UTC."""
    year, month, day = _civil(days)
    seconds = micros // _MICROS_PER_SECOND
    for number in range(steps):
        step = load_int64(program + 8 * number)
        kind, argument = step & 255, step >> 8
        if kind == LITERAL:
            store_uint8(at, np.uint8(argument))
            at += 1
        elif kind == YEAR:
            at = _put_year(at, year, argument)
        elif kind == MONTH:
            at = _put_field(at, month, argument)
        elif kind == DAY:
            at = _put_field(at, day, argument)
        elif kind == HOUR:
            at = _put_field(at, seconds // 3600, argument)
        elif kind == MINUTE:
            at = _put_field(at, seconds // 60 % 60, argument)
        elif kind == SECOND:
            at = _put_field(at, seconds % 60, argument)
        elif kind == FRACTION:
            at = _put_fraction(at, micros % _MICROS_PER_SECOND, argument)
        else:
            at = _put_offset(at, offset_s, argument)
    return at


@inlined
def _civil(days: int) -> Any:
    """Return year, month and day of a number of days since 1970-01-01.

    Years begin in March here, so that the leap day is their last one; 400 years are 146,097 days.
    """
    since = days + 719_468
    era = since // 146_097
    day_of_era = since - era * 146_097
    years = (day_of_era - day_of_era // 1_460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * years + years // 4 - years // 100)
    shifted = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted + 2) // 5 + 1
    month = shifted + 3 if shifted < 10 else shifted - 9
    return era * 400 + years + (1 if month <= 2 else 0), month, day


@inlined
def _put_field(at: int, value: int, width: int) -> Any:
    """Write a number below 100 with at least ``width`` digits, 1 or 2."""
    return put_digits(at, value, 2 if value >= 10 else width)


@inlined
def _put_year(at: int, year: int, width: int) -> Any:
    positive = year if year >= 0 else -year
    bound = 10
    for _ in range(1, width):
        bound *= 10
    if year < 0:
        store_uint8(at, np.uint8(45))
        at += 1
    elif year >= bound:
        store_uint8(at, np.uint8(43))
        at += 1
    if positive >= bound:
        return put_unsigned(at, U(positive))
    return put_digits(at, positive, width)


@inlined
def _put_fraction(at: int, micros: int, width: int) -> Any:
    put_digits(at, micros, 6)
    # Java has nine digits.
    for number in range(6, width):
        store_uint8(at + number, np.uint8(48))
    return at + width


@inlined
def _put_offset(at: int, offset_s: int, form: int) -> Any:
    seconds = -offset_s if offset_s < 0 else offset_s
    if form & HAS_SECONDS == 0:
        seconds -= seconds % 60
    if seconds == 0 and form & HAS_Z:
        store_uint8(at, np.uint8(90))
        return at + 1
    store_uint8(at, np.uint8(45 if offset_s < 0 and seconds > 0 else 43))
    at = put_digits(at + 1, seconds // 3600, 2)
    store_uint8(at, np.uint8(58))
    at = put_digits(at + 1, seconds // 60 % 60, 2)
    if seconds % 60:
        store_uint8(at, np.uint8(58))
        at = put_digits(at + 1, seconds % 60, 2)
    return at
