"""The offsets of time zones, for the kernel."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Final, final
from zoneinfo import ZoneInfo

import numpy as np

from . import context
from . import zone_table as at

if TYPE_CHECKING:
    from ..kernels.arrays import Int64Array
    from .memory import KernelMemory

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
# Files beside the zones, of which Java knows nothing.
_NO_ZONES: Final = re.compile(r"(posix|right)/.*|Factory|localtime|posixrules")

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST: Final = datetime(1800, 1, 1, tzinfo=UTC)
"""Before any zone's first change."""

_LAST: Final = datetime(2438, 1, 1, tzinfo=UTC)
_RULES_ONLY: Final = datetime(2038, 1, 1, tzinfo=UTC)
"""From here on, zones change at most twice a year, or for the month of Ramadan."""

_SINGLE_HOUR: Final = re.compile(r"([+-])(\d):")
_SINGLE_MINUTE: Final = re.compile(r"([+-]\d\d):(\d)$")
_OFFSET: Final = re.compile(
    r"(?:UTC|GMT|UT)?(?:(?P<sign>[+-])(?:(?P<h>\d\d?)|(?P<hh>\d\d)(?P<c>:?)(?P<mm>[0-5]\d)"
    r"(?:(?P=c)(?P<ss>[0-5]\d))?))?"
)
_MAX_OFFSET: Final = timedelta(hours=18)


@cache
def offsets_of(name: str) -> tuple[tuple[int, int], ...] | None:
    """Return the offsets of a zone as ``zone_table`` describes them; None if there is none.

    Names are those of Java's ``ZoneId.of``. Of a local time that a clock shows twice, the offset is
    the earlier one; a local time that it skips has the offset before it, as in Java.
    """
    fixed = _fixed_offset(name)
    if fixed is not None:
        return ((0, fixed),)
    name = _SHORT_IDS.get(name, name)
    if not _NAME.fullmatch(name) or _NO_ZONES.fullmatch(name):
        return None
    try:
        return tuple(_offsets(ZoneInfo(name)))
    except (ValueError, OSError):
        # ZoneInfoNotFoundError is a KeyError; a directory is an OSError.
        return None
    except KeyError:
        return None


def _fixed_offset(name: str) -> int | None:
    if name == "Z":
        return 0
    if name in _SHORT_OFFSETS:
        return 3_600 * _SHORT_OFFSETS[name]
    spelled = _SINGLE_MINUTE.sub(r"\1:0\2", _SINGLE_HOUR.sub(r"\g<1>0\2:", name, count=1))
    found = _OFFSET.fullmatch(spelled)
    if not found or not name:
        return None
    hours = int(found["h"] or found["hh"] or 0)
    offset = timedelta(hours=hours, minutes=int(found["mm"] or 0), seconds=int(found["ss"] or 0))
    if offset > _MAX_OFFSET:
        return None
    return int(offset.total_seconds()) * (-1 if found["sign"] == "-" else 1)


def _offsets(zone: ZoneInfo) -> list[tuple[int, int]]:
    before = _offset(zone, _FIRST)
    found = [(-(2**62), before)]
    moment = _FIRST
    while moment < _LAST:
        following = moment + timedelta(days=1 if moment < _RULES_ONLY else 14)
        after = _offset(zone, following)
        if after != before:
            change = _change(zone, moment, following, before)
            found.append((change + max(before, after), after))
            before = after
        moment = following
    return found


def _change(zone: ZoneInfo, moment: datetime, following: datetime, before: int) -> int:
    """Return the second since 1970 at which an offset ends."""
    low, high = _seconds(moment), _seconds(following)
    while high - low > 1:
        middle = (low + high) // 2
        if _offset(zone, _EPOCH + timedelta(seconds=middle)) == before:
            low = middle
        else:
            high = middle
    return high


def _offset(zone: ZoneInfo, moment: datetime) -> int:
    offset = moment.astimezone(zone).utcoffset()
    assert offset is not None  # noqa: S101  # a ZoneInfo has one for each moment
    return int(offset.total_seconds())


def _seconds(moment: datetime) -> int:
    return int((moment - _EPOCH).total_seconds())


@final
class ZoneTable:
    """The zones that values have named so far, in a kernel's memory; the first is the default."""

    def __init__(self, memory: KernelMemory, default: str) -> None:
        self._memory = memory
        self._default = default
        self._table: Int64Array = np.zeros((at.MAX_ZONES, at.STRIDE // 8), np.int64)
        self._kept: list[object] = []
        memory.point(context.ZONES, self._table)
        self.add(default.encode())

    def add(self, name: bytes) -> None:
        """Let the kernel know a zone, or that there is none of a name."""
        count = self._memory[context.ZONE_COUNT]
        if count == at.MAX_ZONES:
            self._kept.clear()
            self._memory[context.ZONE_COUNT] = 0
            self.add(self._default.encode())
            count = 1
        found = offsets_of(name.decode(errors="replace"))
        text = np.frombuffer(name, np.uint8)
        offsets = np.array(found or (), np.int64)
        entry = self._table[count]
        entry[at.NAME // 8], entry[at.NAME_BYTES // 8] = text.ctypes.data, len(text)
        entry[at.OFFSETS // 8] = offsets.ctypes.data
        entry[at.COUNT // 8] = -1 if found is None else len(offsets)
        self._kept += [text, offsets]
        self._memory[context.ZONE_COUNT] = count + 1
