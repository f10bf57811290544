"""The local times of timestamps in a time zone."""

from __future__ import annotations

import datetime as dt
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from ..kernels.arrays import Int64Array

UTC: Final = "UTC"

_SECOND: Final = 1_000_000
_WEEK_S: Final = 7 * 86_400
_CYCLE_S: Final = 146_097 * 86_400
"""After 400 years, the weekdays of the calendar are the same again, and with them the rules."""


def _seconds(year: int) -> int:
    return int(dt.datetime(year, 1, 1, tzinfo=dt.UTC).timestamp())


_RULES_START: Final = _seconds(2037)
_RULES_END: Final = _seconds(2500)


def local_times(times: pa.Array[Any], zone: str) -> pa.Array[Any]:
    """Return timestamps in microseconds as the times that clocks of a time zone show.

    :raises pa.ArrowInvalid: if Arrow does not know the time zone.
    """
    array: Any = times.cast(pa.timestamp("us", zone))
    if zone == UTC:
        return times.cast(pa.timestamp("us", zone))
    if zone[0] in "+-":
        # Arrow itself knows such time zones from version 22 on.
        in_utc: Any = array.cast(pa.timestamp("us", UTC)).cast(pa.timestamp("us"))
        shifted: pa.Array[Any] = pc.add(in_utc, _fixed(zone))
        return shifted
    local: pa.Array[Any] = pc.local_timestamp(array)
    if not len(array):
        return local
    utc = _micros(array)
    far = utc >= _RULES_START * _SECOND
    # Values of null slots are arbitrary, and do no harm.
    return _with_rules(local, utc, far, zone) if far.any() else local


def _fixed(zone: str) -> dt.timedelta:
    """Return the offset that a time zone such as ``-03:30`` has."""
    offset = dt.timedelta(hours=int(zone[1:3]), minutes=int(zone[4:6]))
    return -offset if zone[0] == "-" else offset


def _with_rules(local: pa.Array[Any], utc: Int64Array, far: Any, zone: str) -> pa.Array[Any]:
    """Return the local times by the time zone's rules: Arrow ignores them from 2038 on."""
    seconds = utc[far] // _SECOND
    beyond = np.maximum(seconds - _RULES_END, -1) // _CYCLE_S + 1
    starts, offsets = _rules(zone)
    places = np.searchsorted(starts, seconds - beyond * _CYCLE_S, side="right") - 1
    micros = _micros(local).copy()
    micros[far] = utc[far] + offsets[places] * _SECOND
    data = pa.py_buffer(micros)  # type: ignore[arg-type]  # the stubs know bytes only
    return pa.Array.from_buffers(pa.timestamp("us"), len(utc), [None, data])


@lru_cache(maxsize=16)
def _rules(zone: str) -> tuple[Int64Array, Int64Array]:
    """Return when offsets begin to apply from 2037 to 2500, and the offsets, in seconds."""
    info = ZoneInfo(zone)
    starts, offsets = [_RULES_START], [_offset(info, _RULES_START)]
    for end in range(_RULES_START + _WEEK_S, _RULES_END + _WEEK_S, _WEEK_S):
        offset = _offset(info, end)
        if offset != offsets[-1]:
            starts.append(_change(info, end - _WEEK_S, end))
            offsets.append(offset)
    return np.array(starts, np.int64), np.array(offsets, np.int64)


def _change(info: ZoneInfo, start: int, end: int) -> int:
    """Return the second from which the offset at ``end`` applies; it does not at ``start``."""
    offset = _offset(info, end)
    while end - start > 1:
        middle = (start + end) // 2
        if _offset(info, middle) == offset:
            end = middle
        else:
            start = middle
    return end


def _offset(info: ZoneInfo, second: int) -> int:
    offset = dt.datetime.fromtimestamp(second, info).utcoffset()
    return int(offset.total_seconds()) if offset is not None else 0


def _micros(array: pa.Array[Any]) -> Int64Array:
    data: Any = array.buffers()[1]
    return np.frombuffer(data, np.int64, len(array), array.offset * 8)
