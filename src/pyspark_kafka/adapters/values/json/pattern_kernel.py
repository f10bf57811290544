"""Dates and timestamps as texts of a pattern, as Java's strict ``DateTimeFormatter``.

Spark's ``DateTimeFormatterHelper`` has the defaults of fields that a pattern lacks.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ...kernels.memory import load_int64, load_uint8, store_uint8
from ...kernels.parts import inlined
from . import patterns as step
from .calendar_kernel import date_of, days_of, is_date
from .number_reading_kernel import digit_at, is_digit, scan_digits
from .number_writing_kernel import U, put_digits, put_unsigned

_PLUS, _MINUS, _COLON = b"+-:"
_MAX_VALUE_DIGITS: Final = 9
_CASE: Final = 0x20

DAY_SECONDS: Final = 86_400
MICROS_PER_SECOND: Final = 1_000_000
MICROS_PER_DAY: Final = DAY_SECONDS * MICROS_PER_SECOND
MAX_OFFSET: Final = 18 * 3_600

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
            after, micros = scan_fraction(at, end, field)
            at = after if after > at else 0
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
    seconds = days_of(year, month, day) * DAY_SECONDS + hour * 3_600 + minute * 60 + second
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
    _, value = scan_digits(first, at)
    if sign < 0 and value == 0:
        return 0, 0
    if kind == step.YEAR and sign >= 0 and (width > min_width) != (sign > 0):
        return 0, 0
    if kind == step.SHORT_YEAR:
        value += 2_000
    return at, -value if sign < 0 else value


@inlined
def scan_fraction(start: int, end: int, max_digits: int) -> Any:
    """Return where at most ``max_digits`` digits end, and their microseconds."""
    at = start
    micros = 0
    unit = 100_000
    while at < end and at - start < max_digits and is_digit(load_uint8(at)):
        micros += digit_at(at) * unit
        unit //= 10
        at += 1
    return at, micros


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
    if at == 0 or minutes > 59 or seconds > MAX_OFFSET:
        return 0, 0
    return at, -seconds if sign == _MINUS else seconds


@inlined
def _two_digits(start: int, end: int) -> Any:
    if end - start < 2 or not is_digit(load_uint8(start)) or not is_digit(load_uint8(start + 1)):
        return 0, 0
    return start + 2, 10 * digit_at(start) + digit_at(start + 1)


@inlined
def put_time(at: int, steps: int, count: int, days: Any, micros: int, offset_s: int) -> Any:
    """Write a local time: days since 1970, microseconds, and its offset from UTC."""
    year, month, day = date_of(days)
    seconds = micros // MICROS_PER_SECOND
    hour, minute, second = seconds // 3600, seconds // 60 % 60, seconds % 60
    for place in range(steps, steps + count * step.STRIDE, step.STRIDE):
        kind, argument = load_int64(place + step.KIND), load_int64(place + step.FIELD)
        width = load_int64(place + step.MIN_WIDTH)
        if kind == step.LITERAL:
            store_uint8(at, np.uint8(argument))
            at += 1
        elif kind == step.NUMBER and argument == step.YEARS:
            at = _put_year(at, year, width)
        elif kind == step.NUMBER:
            value = second
            if argument == step.MONTHS:
                value = month
            elif argument == step.DAYS:
                value = day
            elif argument == step.HOURS:
                value = hour
            elif argument == step.MINUTES:
                value = minute
            at = put_digits(at, value, 2 if value >= 10 else width)
        elif kind == step.FRACTION:
            at = _put_fraction(at, micros % MICROS_PER_SECOND, argument)
        else:
            at = _put_offset(at, offset_s, argument)
    return at


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
    if form & step.HAS_SECONDS == 0:
        seconds -= seconds % 60
    if seconds == 0 and form & step.HAS_Z:
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
