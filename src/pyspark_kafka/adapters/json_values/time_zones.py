"""Names of time zones in Spark's spelling."""

from __future__ import annotations

import re
from typing import Final

import pyarrow as pa

from ...domain.errors import OptionsError
from ..value_encoding.local_times import local_times

_FIXED: Final = re.compile(r"(?:UTC|GMT|UT)?(?:([+-])(\d{1,2})(?::?(\d{2}))?)?")
_ZULU: Final = frozenset({"Z", "UTC", "GMT", "UT", "Etc/UTC"})


def arrow_time_zone(name: str) -> str:
    """Return the name by which Arrow knows a time zone: a region, or ``UTC``, or ``+hh:mm``.

    :raises OptionsError: if there is no such time zone.
    """
    if name in _ZULU:
        return "UTC"
    fixed = _FIXED.fullmatch(name)
    if fixed and fixed[1]:
        return f"{fixed[1]}{int(fixed[2]):02d}:{fixed[3] or '00'}"
    try:
        local_times(pa.array([0], pa.timestamp("us", name)), name)
    except pa.ArrowInvalid as error:
        raise OptionsError([f"'timeZone' is '{name}', which is not a known time zone"]) from error
    return name
