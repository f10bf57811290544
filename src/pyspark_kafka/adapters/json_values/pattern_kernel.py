"""Dates and timestamps from texts of a pattern, as Java's strict ``DateTimeFormatter``.

Spark's ``DateTimeFormatterHelper`` has the defaults of fields that a pattern lacks.
"""

from __future__ import annotations

from typing import Any, Final

from ..kernels.memory import load_int64, load_uint8
from ..kernels.parts import inlined
from . import pattern_table as step
from .calendar_kernel import days_of, is_date
from .number_reading_kernel import digit_at, is_digit

_PLUS: Final = 43
_MINUS: Final = 45
_COLON: Final = 58
_MAX_VALUE_DIGITS: Final = 9
_DAY_SECONDS: Final = 86_400
_MAX_OFFSET: Final = 18 * 3_600
_CASE: Final = 0x20

NO_OFFSET: Final = 1 << 40
"""Instead of the seconds of an offset, where a text has none."""


@inlined
def parse_pattern(steps: int, count: int, start: int, end: int) -> Any:
    """Return whether a text has a pattern, its seconds, its microseconds, and its offset.

    The seconds are local, since 1970, and the offset is in seconds or ``NO_OFFSET``.
    """
    at = start
    number = 0
    year, month, day = 1970, 1, 1
    hour = minute = second = micros = 0
    offset = NO_OFFSET
    # The state at the start of an optional part, and where it ends.
    behind = -1
    kept_at = kept_year = kept_month = kept_day = 0
    kept_hour = kept_minute = kept_second = kept_micros = kept_offset = 0
    while number < count:
        place = steps + number * step.STRIDE
        kind = load_int64(place + step.KIND)
        field = load_int64(place + step.FIELD)
        number += 1
        if kind == step.OPTIONAL:
            behind = field
            kept_at, kept_year, kept_month, kept_day = at, year, month, day
            kept_hour, kept_minute, kept_second = hour, minute, second
            kept_micros, kept_offset = micros, offset
            continue
        if kind == step.OPTIONAL_END:
            behind = -1
            continue
        if kind == step.LITERAL:
            at = at + 1 if at < end and _is_same_letter(load_uint8(at), field) else 0
        elif kind == step.FRACTION:
            at, micros = _fraction(at, end, field)
        elif kind == step.OFFSET or kind == step.HOUR_OFFSET:
            has_zulu = load_int64(place + step.MIN_WIDTH) != 0
            at, offset = _offset(at, end, kind, field != 0, has_zulu)
        else:
            min_width = load_int64(place + step.MIN_WIDTH)
            at, value = _number(at, end, kind, min_width, load_int64(place + step.MAX_WIDTH))
            if field == step.YEARS:
                year = value
            elif field == step.MONTHS:
                month = value
            elif field == step.DAYS:
                day = value
            elif field == step.HOURS:
                hour = value
            elif field == step.MINUTES:
                minute = value
            else:
                second = value
        if at == 0:
            if behind < 0:
                return False, 0, 0, 0
            number = behind
            behind = -1
            at, year, month, day = kept_at, kept_year, kept_month, kept_day
            hour, minute, second = kept_hour, kept_minute, kept_second
            micros, offset = kept_micros, kept_offset
    is_time = 0 <= hour <= 23 and 0 <= minute <= 59 and 0 <= second <= 59
    if at < end or not is_time or not is_date(year, month, day):
        return False, 0, 0, 0
    seconds = days_of(year, month, day) * _DAY_SECONDS + hour * 3_600 + minute * 60 + second
    return True, seconds, micros, offset


@inlined
def _is_same_letter(byte: int, other: int) -> Any:
    if byte == other:
        return True
    letter = byte | _CASE
    return letter == other | _CASE and 97 <= letter <= 122


@inlined
def _number(start: int, end: int, kind: int, min_width: int, max_width: int) -> Any:
    """Return where a number ends and the number; or 0."""
    at = start
    sign = 0
    if at < end and (load_uint8(at) == _PLUS or load_uint8(at) == _MINUS):
        sign = 1 if load_uint8(at) == _PLUS else -1
        is_free = min_width != max_width and kind == step.NUMBER and max_width > 0
        # Only years may have a plus, and numbers of a fixed width have no sign.
        if kind != step.YEAR and (sign > 0 or not is_free):
            return 0, 0
        at += 1
    first = at
    stop = min(end, first + (max_width if max_width > 0 else step.MAX_DIGITS - max_width))
    while at < stop and is_digit(load_uint8(at)):
        at += 1
    if max_width < 0:
        # The numbers that follow without a separator have their digits of this one.
        at = min(at, first + max(min_width, at - first + max_width))
    width = at - first
    if width < min_width or width > _MAX_VALUE_DIGITS:
        return 0, 0
    value = 0
    for place in range(first, at):
        value = value * 10 + digit_at(place)
    if sign < 0 and value == 0:
        return 0, 0
    if kind == step.YEAR and sign >= 0 and (width > min_width) != (sign > 0):
        return 0, 0
    if kind == step.SHORT_YEAR:
        value += 2_000
    return at, -value if sign < 0 else value


@inlined
def _fraction(start: int, end: int, max_digits: int) -> Any:
    """Return where one to ``max_digits`` digits end, and their microseconds; or 0."""
    at = start
    micros = 0
    unit = 100_000
    while at < end and at - start < max_digits and is_digit(load_uint8(at)):
        micros += digit_at(at) * unit
        unit //= 10
        at += 1
    return (at if at > start else 0), micros


@inlined
def _offset(start: int, end: int, kind: int, has_colon: bool, has_zulu: bool) -> Any:
    """Return where an offset ends and its seconds; or 0."""
    if start >= end:
        return 0, 0
    sign = load_uint8(start)
    if has_zulu and (sign | _CASE) == 122:
        return start + 1, 0
    if sign != _PLUS and sign != _MINUS:
        return 0, 0
    at, hours = _two_digits(start + 1, end)
    minutes = 0
    if at > 0 and kind == step.OFFSET:
        if has_colon:
            at = at + 1 if at < end and load_uint8(at) == _COLON else 0
        if at > 0:
            at, minutes = _two_digits(at, end)
    elif at > 0:
        after, more = _two_digits(at, end)
        if after > 0:
            at, minutes = after, more
    seconds = hours * 3_600 + minutes * 60
    if at == 0 or minutes > 59 or seconds > _MAX_OFFSET:
        return 0, 0
    return at, -seconds if sign == _MINUS else seconds


@inlined
def _two_digits(start: int, end: int) -> Any:
    if end - start < 2 or not is_digit(load_uint8(start)) or not is_digit(load_uint8(start + 1)):
        return 0, 0
    return start + 2, 10 * digit_at(start) + digit_at(start + 1)
