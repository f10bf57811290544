"""Parsing durations as Spark's ``JavaUtils.timeStringAsMs`` does."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from .option_values import INT64_MAX, INT64_MIN, integer

if TYPE_CHECKING:
    from collections.abc import Mapping

_MICROSECONDS: Final[Mapping[str, int]] = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "m": 60_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
}
_JAVA_SPACE: Final = "".join(map(chr, range(ord(" ") + 1)))
_HELP: Final = (
    "Time must be specified as seconds (s), milliseconds (ms), microseconds (us), "
    "minutes (m or min), hour (h), or day (d). E.g. 50s, 100ms, or 250us."
)


def milliseconds(text: str) -> int:
    """Return the milliseconds of ``15m``, ``5s``, ``100ms`` or a plain number of milliseconds.

    Case and surrounding blanks are ignored, a blank inside is an error. Fractions of a millisecond
    are truncated, and values beyond a JVM ``long`` are clamped.

    :raises ValueError: with the message of ``JavaUtils``, if it is not a duration.
    """
    try:
        microseconds = _microseconds(text)
    except ValueError as error:
        raise ValueError(f"{_HELP}\n{error}") from error
    truncated = abs(microseconds) // 1_000
    return max(INT64_MIN, min(INT64_MAX, truncated if microseconds >= 0 else -truncated))


def _microseconds(text: str) -> int:
    found = re.fullmatch("(-?[0-9]+)([a-z]+)?", text.lower().strip(_JAVA_SPACE))
    if found is None:
        raise ValueError(f"Failed to parse time string: {text}")
    number = integer(found[1])
    suffix = found[2] or "ms"
    if suffix not in _MICROSECONDS:
        raise ValueError(f'Invalid suffix: "{suffix}"')
    return number * _MICROSECONDS[suffix]
