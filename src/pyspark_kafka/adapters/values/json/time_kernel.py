"""Dates and timestamps from texts, as Spark casts strings.

The rules are in Spark's ``SparkDateTimeUtils``: ``stringToDate``, ``parseTimestampString`` and
``stringToTimestamp``. Functions return whether a text is valid, or a negative number, and a value.
A text of the time alone is not valid: Spark adds the date on which it parses the text.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ...kernels.memory import copy_memory, load_int64, load_uint8, store_int64
from ...kernels.parts import inlined
from ..columns.decoding import OUT_OF_RANGE, TYPE_MISMATCH
from ..encoding.time_zones import CHANGES_END, CYCLE_S
from . import context as words
from . import zones as zone
from .calendar_kernel import days_of, days_of_julian, is_date
from .context import NEEDS_ZONE
from .number_reading_kernel import scan_digits
from .pattern_kernel import (
    DAY_SECONDS,
    MAX_OFFSET,
    MICROS_PER_SECOND,
    NO_OFFSET,
    parse_pattern,
    scan_fraction,
)

_PLUS, _MINUS, _COLON, _T = b"+-:T"
_MAX_INT32: Final = 2**31 - 1
_LAST_SECOND, _LAST_MICROS = divmod(2**63 - 1, MICROS_PER_SECOND)
_MAX_DATE_YEAR_DIGITS: Final = 7
_MAX_TIMESTAMP_YEAR_DIGITS: Final = 6
_GREGORIAN_START: Final = -141_427
"""1582-10-15, in days since 1970."""


@inlined
def _is_int32(number: int) -> Any:
    return -_MAX_INT32 - 1 <= number <= _MAX_INT32


@inlined
def _is_blank(byte: int) -> Any:
    return byte <= 32 or byte == 127


@inlined
def _trimmed(start: int, end: int) -> Any:
    while start < end and _is_blank(load_uint8(start)):
        start += 1
    while end > start and _is_blank(load_uint8(end - 1)):
        end -= 1
    return start, end


@inlined
def _pair(start: int, end: int) -> Any:
    """Return where one or two digits end, and their number; or 0."""
    at, number = scan_digits(start, end)
    return (at if 1 <= at - start <= 2 else 0), number


@inlined
def _scan_date(start: int, end: int, max_year_digits: int) -> Any:
    """Return where a date ends, year, month and day; or 0."""
    at = start
    sign = 1
    if load_uint8(at) == _MINUS or load_uint8(at) == _PLUS:
        sign = -1 if load_uint8(at) == _MINUS else 1
        at += 1
    first = at
    month = day = 1
    at, year = scan_digits(at, end)
    year *= sign
    if at - first < 4 or at - first > max_year_digits:
        return 0, 0, 0, 0
    if at < end and load_uint8(at) == _MINUS:
        at, month = _pair(at + 1, end)
        if at > 0 and at < end and load_uint8(at) == _MINUS:
            at, day = _pair(at + 1, end)
            return at, year, month, day
    # Without a day, nothing may follow.
    return (at if at == end else 0), year, month, day


@inlined
def parse_date(context: int, start: int, end: int) -> Any:
    """Return 1 and the days since 1970 of a text, or a negative reason."""
    steps = load_int64(context + words.DATE_STEPS)
    if steps:
        count = load_int64(context + words.DATE_STEP_COUNT)
        is_valid, seconds, _, _ = parse_pattern(steps, count, start, end)
        days = seconds // DAY_SECONDS
        is_valid = is_valid and _is_int32(days)
    else:
        is_valid, days = _date(start, end)
    if is_valid or load_int64(context + words.FLAGS) & words.DATES_HAVE_FALLBACK == 0:
        return (1 if is_valid else -TYPE_MISMATCH), days
    first, last = _without_gmt(context, start, end)
    if last > first:
        is_valid, days = _date(first, last)
        if is_valid:
            return 1, days
    return _day_number(start, end)


@inlined
def _date(start: int, end: int) -> Any:
    start, end = _trimmed(start, end)
    if start == end:
        return False, 0
    at, year, month, day = _scan_date(start, end, _MAX_DATE_YEAR_DIGITS)
    if at == 0 or not is_date(year, month, day):
        return False, 0
    # Behind a whole date, Spark ignores what follows a space or a T.
    if at < end and load_uint8(at) != 32 and load_uint8(at) != _T:
        return False, 0
    days = days_of(year, month, day)
    return _is_int32(days), days


@inlined
def _day_number(start: int, end: int) -> Any:
    """Parse the number of days since 1970, as Spark 1.5 wrote dates."""
    at = start
    is_negative = at < end and load_uint8(at) == _MINUS
    if at < end and (load_uint8(at) == _MINUS or load_uint8(at) == _PLUS):
        at += 1
    first = at
    at, number = scan_digits(first, end)
    if at == first or at < end:
        return -TYPE_MISMATCH, 0
    number = -number if is_negative else number
    if not _is_int32(number):
        return -TYPE_MISMATCH, 0
    return 1, days_of_julian(number) if number < _GREGORIAN_START else number


@inlined
def _without_gmt(context: int, start: int, end: int) -> Any:
    """Return a copy of a text without its first ``GMT``, or an empty one if it has none."""
    scratch = load_int64(context + words.SCRATCH) + words.MAX_TEXT_BYTES
    if end - start > words.MAX_TEXT_BYTES:
        return scratch, scratch
    for at in range(start, end - 2):
        if load_uint8(at) == 71 and load_uint8(at + 1) == 77 and load_uint8(at + 2) == 84:
            copy_memory(scratch, start, at - start)
            copy_memory(scratch + at - start, at + 3, end - at - 3)
            return scratch, scratch + end - start - 3
    return scratch, scratch


@inlined
def parse_timestamp(context: int, start: int, end: int) -> Any:
    """Return 1 and the microseconds since 1970 in UTC of a text, or a negative number."""
    result, micros = _parsed(context, words.TIMESTAMP_STEPS, start, end, True)
    if result > 0 or result == NEEDS_ZONE:
        return result, micros
    if load_int64(context + words.FLAGS) & words.TIMESTAMPS_HAVE_FALLBACK == 0:
        return result, micros
    first, last = _without_gmt(context, start, end)
    if last > first:
        return _timestamp(context, first, last, True)
    return result, micros


@inlined
def parse_timestamp_ntz(context: int, start: int, end: int) -> Any:
    """Return 1 and the microseconds of a text without a time zone, or a negative reason."""
    return _parsed(context, words.NTZ_STEPS, start, end, False)


@inlined
def _parsed(context: int, place: int, start: int, end: int, has_zone: bool) -> Any:
    """Parse a text by the pattern whose steps are at a place of the context, if there is one."""
    steps = load_int64(context + place)
    if steps == 0:
        return _timestamp(context, start, end, has_zone)
    count = load_int64(context + place + 8)
    is_valid, seconds, micros, offset = parse_pattern(steps, count, start, end)
    if not is_valid or (offset != NO_OFFSET and not has_zone):
        return -TYPE_MISMATCH, 0
    if not has_zone:
        offset = 0
    elif offset == NO_OFFSET:
        offset = _default_offset(context, seconds)
    return _micros_of(seconds - offset, micros)


@inlined
def _default_offset(context: int, seconds: int) -> Any:
    return _offset_at(load_int64(context + words.DEFAULT_ZONE), seconds)


@inlined
def _timestamp(context: int, start: int, end: int, has_zone: bool) -> Any:
    start, end = _trimmed(start, end)
    if start == end:
        return -TYPE_MISMATCH, 0
    at, year, month, day = _scan_date(start, end, _MAX_TIMESTAMP_YEAR_DIGITS)
    if at == 0 or not is_date(year, month, day):
        return -TYPE_MISMATCH, 0
    seconds = days_of(year, month, day) * DAY_SECONDS
    micros = 0
    if at < end:
        if load_uint8(at) != 32 and load_uint8(at) != _T:
            return -TYPE_MISMATCH, 0
        at, time, micros = _scan_time(at + 1, end)
        if at == 0:
            return -TYPE_MISMATCH, 0
        seconds += time
    if not has_zone:
        return _micros_of(seconds, micros) if at == end else (-TYPE_MISMATCH, 0)
    if at < end:
        result, offset = _zone_offset(context, at, end, seconds)
        if result < 0:
            return result, 0
    else:
        offset = _default_offset(context, seconds)
    return _micros_of(seconds - offset, micros)


@inlined
def _scan_time(start: int, end: int) -> Any:
    """Return where a time ends, its seconds and its microseconds; or 0.

    Minutes and seconds are optional, and a time zone may follow seconds only.
    """
    minute = second = micros = 0
    at, hour = _pair(start, end)
    if at > 0 and at < end:
        at, minute = _pair(at + 1, end) if load_uint8(at) == _COLON else (0, 0)
        if at > 0 and at < end:
            at, second = _pair(at + 1, end) if load_uint8(at) == _COLON else (0, 0)
            if at > 0 and at < end and load_uint8(at) == 46:
                at, micros = scan_fraction(at + 1, end, end)
    if hour > 23 or minute > 59 or second > 59:
        return 0, 0, 0
    return at, hour * 3_600 + minute * 60 + second, micros


@inlined
def _micros_of(seconds: int, micros: int) -> Any:
    # The first and the last second of 64 bits are not whole.
    is_before = seconds == -_LAST_SECOND - 1 and micros < MICROS_PER_SECOND - _LAST_MICROS - 1
    is_behind = seconds == _LAST_SECOND and micros > _LAST_MICROS
    if is_before or is_behind or not -_LAST_SECOND - 1 <= seconds <= _LAST_SECOND:
        return -OUT_OF_RANGE, 0
    return 1, seconds * MICROS_PER_SECOND + micros


@inlined
def _zone_offset(context: int, start: int, end: int, seconds: int) -> Any:
    """Return 1 and the offset of a zone at a local time, or a negative number.

    The forms are those of Java's ``ZoneId.of``, and ``+h:mm`` and ``+hh:m`` of older Sparks.
    """
    start, end = _trimmed(start, end)
    size = end - start
    if size == 0:
        return -TYPE_MISMATCH, 0
    first = load_uint8(start)
    if size == 1:
        return (1, 0) if first == 90 else (-TYPE_MISMATCH, 0)
    prefix = _utc_prefix(start, size)
    if size == prefix:
        return 1, 0
    sign = load_uint8(start + prefix)
    if sign == _PLUS or sign == _MINUS:
        offset = _offset_of(start + prefix + 1, end)
        if offset < 0:
            return -TYPE_MISMATCH, 0
        return 1, -offset if sign == _MINUS else offset
    return _named_offset(context, start, end, seconds)


@inlined
def _utc_prefix(start: int, size: int) -> Any:
    """Return the size of a leading UTC, GMT or UT, or 0."""
    one, two = load_uint8(start), load_uint8(start + 1)
    three = load_uint8(start + 2) if size > 2 else 0
    if one == 85 and two == 84:
        return 3 if three == 67 else 2
    return 3 if one == 71 and two == 77 and three == 84 else 0


@inlined
def _offset_of(start: int, end: int) -> Any:
    """Return the seconds of an offset without its sign, or -1.

    It is h, hh, hhmm or hhmmss, or has colons; then hours and the last minutes may have one digit.
    """
    at, number = scan_digits(start, end)
    count = at - start
    minutes = seconds = 0
    if at == end:
        if count == 4:
            number, minutes = number // 100, number % 100
        elif count == 6:
            number, minutes, seconds = number // 10_000, number // 100 % 100, number % 100
        elif count != 2 and count != 1:
            return -1
    else:
        if count > 2 or count == 0 or load_uint8(at) != _COLON:
            return -1
        first = at + 1
        at, minutes = scan_digits(first, end)
        if at - first != 2 and (at - first != 1 or at < end):
            return -1
        if at < end:
            first = at + 1
            if load_uint8(at) != _COLON:
                return -1
            at, seconds = scan_digits(first, end)
            if at - first != 2 or at < end:
                return -1
    total = number * 3_600 + minutes * 60 + seconds
    return -1 if minutes > 59 or seconds > 59 or total > MAX_OFFSET else total


@inlined
def _named_offset(context: int, start: int, end: int, seconds: int) -> Any:
    entry = load_int64(context + words.LAST_ZONE)
    if entry == 0 or _order(entry, start, end) != 0:
        count = load_int64(context + words.ZONE_COUNT)
        entry = _zone_of(load_int64(context + words.ZONES), count, start, end)
        if entry == 0 and count > 0:
            return -TYPE_MISMATCH, 0
        if entry == 0 or load_int64(entry + zone.COUNT) == 0:
            store_int64(context + words.ZONE_TEXT, start)
            store_int64(context + words.ZONE_TEXT_BYTES, end - start)
            return NEEDS_ZONE, 0
        store_int64(context + words.LAST_ZONE, entry)
    if load_int64(entry + zone.COUNT) < 0:
        return -TYPE_MISMATCH, 0
    return 1, _offset_at(entry, seconds)


@inlined
def _zone_of(zones: int, count: int, start: int, end: int) -> Any:
    """Return the address of the entry that has a name, or 0."""
    low = 0
    high = count
    while low < high:
        middle = (low + high) >> 1
        entry = zones + zone.STRIDE * middle
        order = _order(entry, start, end)
        if order == 0:
            return entry
        if order < 0:
            low = middle + 1
        else:
            high = middle
    return 0


@inlined
def _order(entry: int, start: int, end: int) -> Any:
    """Return a number below 0 if a zone's name is less than a text, and 0 if they are equal."""
    name = load_int64(entry + zone.NAME)
    size = load_int64(entry + zone.NAME_BYTES)
    for place in range(min(size, end - start)):
        order = np.int64(load_uint8(name + place)) - np.int64(load_uint8(start + place))
        if order != 0:
            return order
    return size - (end - start)


@inlined
def _offset_at(entry: int, seconds: int) -> Any:
    """Return the offset of a zone at a local time."""
    if seconds >= CHANGES_END:
        seconds -= ((seconds - CHANGES_END) // CYCLE_S + 1) * CYCLE_S
    offsets = load_int64(entry + zone.OFFSETS)
    low = 0
    high = load_int64(entry + zone.COUNT)
    while high - low > 1:
        middle = (low + high) >> 1
        if load_int64(offsets + 16 * middle) <= seconds:
            low = middle
        else:
            high = middle
    return load_int64(offsets + 16 * low + 8)
