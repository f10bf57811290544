"""Time zones by Java's names, when their offsets from UTC change, and the times of their clocks."""

from __future__ import annotations

import re
import struct
from datetime import UTC, datetime
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from zoneinfo import TZPATH, ZoneInfo, available_timezones

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from ...kernels.arrays import Int64Array

# https://docs.oracle.com/en/java/javase/17/docs/api/java.base/java/time/ZoneId.html#SHORT_IDS
_SHORT_IDS: Final = {
    "ACT": "Australia/Darwin",
    "AET": "Australia/Sydney",
    "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo",
    "AST": "America/Anchorage",
    "BET": "America/Sao_Paulo",
    "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare",
    "CNT": "America/St_Johns",
    "CST": "America/Chicago",
    "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa",
    "ECT": "Europe/Paris",
    "IET": "America/Indiana/Indianapolis",
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    "MIT": "Pacific/Apia",
    "NET": "Asia/Yerevan",
    "NST": "Pacific/Auckland",
    "PLT": "Asia/Karachi",
    "PNT": "America/Phoenix",
    "PRT": "America/Puerto_Rico",
    "PST": "America/Los_Angeles",
    "SST": "Pacific/Guadalcanal",
    "VST": "Asia/Ho_Chi_Minh",
}
_SHORT_OFFSETS: Final = {"EST": -5, "MST": -7, "HST": -10}
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9~/._+-]+")
# Files beside the zones, which Java does not know.
_NO_ZONES: Final = re.compile(r"(posix|right)/.*|Factory|localtime|posixrules")

NOT_A_ZONE: Final = "is not a time zone of this machine"
"""The problem of a name that ``find_zone`` does not find."""

_SINGLE_HOUR: Final = re.compile(r"([+-])(\d):")
_SINGLE_MINUTE: Final = re.compile(r"([+-]\d\d):(\d)$")
_OFFSET: Final = re.compile(
    r"(?:UTC|GMT|UT)?(?:(?P<sign>[+-])(?:(?P<h>\d\d?)|(?P<hh>\d\d)(?P<c>:?)(?P<mm>[0-5]\d)"
    r"(?:(?P=c)(?P<ss>[0-5]\d))?))?"
)
_MAX_OFFSET: Final = 18 * 3_600
_MICROS: Final = 1_000_000


def _seconds(year: int) -> int:
    return int(datetime(year, 1, 1, tzinfo=UTC).timestamp())


_FIRST: Final = _seconds(1800)
"""Before any zone's first change."""

_LAST_YEAR: Final = 2499
CHANGES_END: Final = _seconds(_LAST_YEAR + 1)
CYCLE_S: Final = 146_097 * 86_400
"""After 400 years, the weekdays of the calendar are the same again, and with them the rules."""

_WEEK_S: Final = 7 * 86_400
_STEP_S: Final = 4 * _WEEK_S
"""A rule has two changes a year; the others are in a zone's file."""


def find_zone(name: str) -> ZoneInfo | int | None:
    """Return a time zone, or its seconds from UTC if it is an offset; None if there is none.

    Names are those of Java's ``ZoneId.of``.
    """
    offset = _fixed_offset(name)
    if offset is not None:
        return offset
    name = _SHORT_IDS.get(name, name)
    if not _NAME.fullmatch(name) or _NO_ZONES.fullmatch(name):
        return None
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        # ZoneInfoNotFoundError is a KeyError; a directory is an OSError.
        return None


@cache
def zone_names() -> tuple[str, ...]:
    """Return the names of this machine's zones that are no offsets from UTC, and Java's own."""
    found = available_timezones()
    regions = [name for name in found if _NAME.fullmatch(name) and not _NO_ZONES.fullmatch(name)]
    short = [name for name, region in _SHORT_IDS.items() if region in found]
    return tuple(sorted({*regions, *short, *_SHORT_OFFSETS}))


def local_times(times: pa.Array[Any], zone: str) -> Int64Array:
    """Return the microseconds since 1970 that clocks of a time zone show; those of nulls are any.

    :raises ValueError: if there is no such time zone.
    """
    array: Any = times.cast(pa.timestamp("us", "UTC"))
    data = array.buffers()[1]
    # Arrays without values may have no buffers.
    utc = (
        np.frombuffer(data, np.int64, len(array), array.offset * 8)
        if data
        else np.empty(0, np.int64)
    )
    found = find_zone(zone)
    if found is None:
        raise ValueError(f"{zone!r} {NOT_A_ZONE}")
    if isinstance(found, int):
        return utc + found * _MICROS
    starts, offsets = offset_changes(found).T
    seconds = utc // _MICROS
    beyond = np.maximum(seconds - CHANGES_END, -1) // CYCLE_S + 1
    places = np.searchsorted(starts, seconds - beyond * CYCLE_S, side="right") - 1
    local: Int64Array = utc + offsets[np.maximum(places, 0)] * _MICROS
    return local


@lru_cache(maxsize=64)
def offset_changes(zone: ZoneInfo) -> Int64Array:
    """Return rows of a second of UTC and the offset from then on, in seconds, as ZoneInfo has it.

    The first offset is that of all earlier times. The last row is before ``CHANGES_END``.
    """
    data = _file(zone.key)
    found = [(_FIRST, _offset(zone, _FIRST))]
    seconds = _transitions(data)
    seconds = seconds[(seconds > _FIRST) & (seconds < CHANGES_END)]
    found += [(second, _offset(zone, second)) for second in seconds.tolist()]
    # The last line has a comma if summer times continue by a rule.
    if b"," in data.rstrip().rpartition(b"\n")[2]:
        last = found[-1][0]
        year = datetime.fromtimestamp(last, UTC).year
        found += _changes(zone, last, _seconds(year + 1))
        found += _changes_by_rule(zone, year + 1)
    return np.array(found, np.int64)


def _changes_by_rule(zone: ZoneInfo, first_year: int) -> list[tuple[int, int]]:
    """Return the changes after the last one in the zone's file, which has a rule for them.

    Years are alike that have the same number of days and begin on the same weekday.
    """
    found: list[tuple[int, int]] = []
    alike: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for year in range(first_year, _LAST_YEAR + 1):
        start, end = _seconds(year), _seconds(year + 1)
        kind = (end - start, start % _WEEK_S)
        if kind not in alike:
            alike[kind] = [(at - start, offset) for at, offset in _changes(zone, start, end)]
        found += [(start + at, offset) for at, offset in alike[kind]]
    return found


def _changes(zone: ZoneInfo, start: int, end: int) -> list[tuple[int, int]]:
    """Return the changes by a zone's rule after one time up to another."""
    found = []
    before = _offset(zone, start)
    while start < end:
        following = min(start + _STEP_S, end)
        after = _offset(zone, following)
        if after != before:
            found.append((_change(zone, start, following), after))
            before = after
        start = following
    return found


def _change(zone: ZoneInfo, start: int, end: int) -> int:
    """Return the second from which the offset at ``end`` applies; it does not at ``start``."""
    offset = _offset(zone, end)
    while end - start > 1:
        middle = (start + end) // 2
        if _offset(zone, middle) == offset:
            end = middle
        else:
            start = middle
    return end


def _offset(zone: ZoneInfo, second: int) -> int:
    offset = datetime.fromtimestamp(second, zone).utcoffset()
    assert offset is not None  # noqa: S101  # a ZoneInfo has one for each moment
    return int(offset.total_seconds())


def _transitions(data: bytes) -> Int64Array:
    """Return the seconds at which a zone's file has a change (RFC 8536)."""
    is_utc, is_std, leaps, times, types, chars = struct.unpack_from(">6I", data, 20)
    if not data[4]:
        return np.frombuffer(data, ">i4", times, 44).astype(np.int64)
    # The data of version 1 are followed by another header, for 64-bit times.
    header = 44 + 5 * times + 6 * types + chars + 8 * leaps + is_std + is_utc
    (times,) = struct.unpack_from(">I", data, header + 32)
    return np.frombuffer(data, ">i8", times, header + 44).astype(np.int64)


def _file(key: str) -> bytes:
    """Return the file that ZoneInfo reads."""
    for folder in TZPATH:
        path = Path(folder, key)
        if path.is_file():
            return path.read_bytes()
    return files("tzdata.zoneinfo").joinpath(*key.split("/")).read_bytes()


def _fixed_offset(name: str) -> int | None:
    if name == "Z":
        return 0
    if name in _SHORT_OFFSETS:
        return 3_600 * _SHORT_OFFSETS[name]
    spelled = _SINGLE_MINUTE.sub(r"\1:0\2", _SINGLE_HOUR.sub(r"\g<1>0\2:", name, count=1))
    found = _OFFSET.fullmatch(spelled)
    if not found or not name:
        return None
    seconds = int(found["mm"] or 0) * 60 + int(found["ss"] or 0)
    offset = int(found["h"] or found["hh"] or 0) * 3_600 + seconds
    if offset > _MAX_OFFSET:
        return None
    return -offset if found["sign"] == "-" else offset
