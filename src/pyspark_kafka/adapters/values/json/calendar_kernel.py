"""The Gregorian calendar, extended to all years, in days since 1970-01-01.

Years begin in March in it: then the day that leap years add is their last one, and 400 years are
146,097 days.
"""

from __future__ import annotations

from typing import Any

from ...kernels.parts import inlined


@inlined
def days_of(year: int, month: int, day: int) -> Any:
    """Return the days since 1970-01-01 of a date in the Gregorian calendar, extended backwards."""
    shifted = year - (month <= 2)
    era = shifted // 400
    year_of_era = shifted - era * 400
    day_of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return era * 146_097 + day_of_era - 719_468


@inlined
def date_of(days: int) -> Any:
    """Return year, month and day of a number of days since 1970-01-01."""
    since = days + 719_468
    era = since // 146_097
    day_of_era = since - era * 146_097
    years = (day_of_era - day_of_era // 1_460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    return _date(era * 400 + years, day_of_era - (365 * years + years // 4 - years // 100))


@inlined
def days_of_julian(days: int) -> Any:
    """Return the days of the same date in the Gregorian calendar, of days in the Julian one."""
    # Days since 0000-03-01 in the Julian calendar, whose cycle is four years.
    shifted = days + 719_470
    cycle = shifted // 1461
    day_of_cycle = shifted - cycle * 1461
    year_of_cycle = min(day_of_cycle // 365, 3)
    year, month, day = _date(cycle * 4 + year_of_cycle, day_of_cycle - 365 * year_of_cycle)
    return days_of(year, month, day)


@inlined
def _date(year: int, day_of_year: int) -> Any:
    """Return year, month and day of a day of a year that begins in March."""
    shifted = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted + 2) // 5 + 1
    month = shifted + 3 if shifted < 10 else shifted - 9
    return year + (month <= 2), month, day


@inlined
def is_date(year: int, month: int, day: int) -> Any:
    """Return whether a month has a day."""
    if month < 1 or month > 12 or day < 1:
        return False
    if month == 2:
        is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
        return day <= 28 + is_leap
    return day <= 30 + ((month + (month > 7)) & 1)
