"""The Gregorian calendar, extended to all years, in days since 1970-01-01."""

from __future__ import annotations

from typing import Any

from ..kernels.parts import inlined


@inlined
def days_of(year: int, month: int, day: int) -> Any:
    """Return the days since 1970-01-01 of a date in the Gregorian calendar, extended backwards."""
    # Years begin in March: then the day that leap years add is the last one.
    shifted = year - (month <= 2)
    era = shifted // 400
    year_of_era = shifted - era * 400
    day_of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return era * 146_097 + day_of_era - 719_468


@inlined
def is_date(year: int, month: int, day: int) -> Any:
    """Return whether a month has a day."""
    if month < 1 or month > 12 or day < 1:
        return False
    if month == 2:
        is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
        return day <= 28 + is_leap
    return day <= 30 + ((month + (month > 7)) & 1)
