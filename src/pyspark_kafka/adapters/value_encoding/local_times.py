"""The local times of timestamps in a time zone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from .time_zones import CHANGES_END, CYCLE_S, NOT_A_ZONE, find_zone, offset_changes

if TYPE_CHECKING:
    from ..kernels.arrays import Int64Array

_SECOND: Final = 1_000_000
_NONE: Final = np.empty(0, np.int64)


def local_times(times: pa.Array[Any], zone: str) -> Int64Array:
    """Return the microseconds since 1970 that clocks of a time zone show; those of nulls are any.

    :raises ValueError: if there is no such time zone.
    """
    array: Any = times.cast(pa.timestamp("us", "UTC"))
    data = array.buffers()[1]
    # Arrays without values may have no buffers.
    utc = np.frombuffer(data, np.int64, len(array), array.offset * 8) if data else _NONE
    found = find_zone(zone)
    if found is None:
        raise ValueError(f"{zone!r} {NOT_A_ZONE}")
    if isinstance(found, int):
        return utc + found * _SECOND
    starts, offsets = offset_changes(found).T
    seconds = utc // _SECOND
    beyond = np.maximum(seconds - CHANGES_END, -1) // CYCLE_S + 1
    places = np.searchsorted(starts, seconds - beyond * CYCLE_S, side="right") - 1
    local: Int64Array = utc + offsets[np.maximum(places, 0)] * _SECOND
    return local
