"""Patterns of dates and times, compiled to the steps by which the kernel parses."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np

from . import pattern_table as at

if TYPE_CHECKING:
    from ..kernels.arrays import Int64Array

Step = tuple[int, int, int, int]

_TOKEN: Final = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|.", re.DOTALL)
_FIELDS: Final = {
    "y": at.YEARS,
    "u": at.YEARS,
    "M": at.MONTHS,
    "d": at.DAYS,
    "H": at.HOURS,
    "m": at.MINUTES,
    "s": at.SECONDS,
}
RESERVED: Final = "{}#'"
_MAX_YEAR_WIDTH: Final = 6
_MAX_FRACTION: Final = 9


def compile_pattern(pattern: str) -> Int64Array:
    """Return the steps of a pattern of Java's ``DateTimeFormatter``, as Spark extends it.

    A fraction of seconds may have fewer digits than letters.

    :raises ValueError: if it is invalid, or has a letter that is not supported.
    """
    steps: list[Step] = []
    start = -1
    for token in _TOKEN.finditer(pattern):
        text = token[0]
        if text == "[":
            _check(start < 0, "an optional part inside of another one is not supported")
            start = len(steps)
            steps.append((at.OPTIONAL, 0, 0, 0))
        elif text == "]":
            _check(start >= 0, "']' has no '['")
            steps.append((at.OPTIONAL_END, 0, 0, 0))
            steps[start] = (at.OPTIONAL, len(steps), 0, 0)
            start = -1
        elif token[2]:
            _add_field(steps, text)
        else:
            _check(text not in RESERVED, f"{text!r} is reserved; quote it")
            quoted = token[1]
            steps += _literal(text if quoted is None else quoted.replace("''", "'") or "'")
    if start >= 0:
        steps[start] = (at.OPTIONAL, len(steps), 0, 0)
    _check(len(steps) > 0, "it is empty")
    return np.array(steps, np.int64)


def _check(is_valid: bool, problem: str) -> None:
    if not is_valid:
        raise ValueError(problem)


def _literal(text: str) -> list[Step]:
    return [(at.LITERAL, byte, 0, 0) for byte in text.encode()]


def _add_field(steps: list[Step], text: str) -> None:
    letter, width = text[0], len(text)
    if letter in _FIELDS:
        kind, least, most = _widths(text)
        if least == most:
            _reserve(steps, most)
        steps.append((kind, _FIELDS[letter], least, most))
    elif letter == "S" and width <= _MAX_FRACTION:
        steps.append((at.FRACTION, width, 0, 0))
    elif text in {"X", "x"}:
        steps.append((at.HOUR_OFFSET, 0, text == "X", 0))
    elif text in {"XX", "XXX", "xx", "xxx"}:
        steps.append((at.OFFSET, width == 3, letter == "X", 0))
    elif text in {"Z", "ZZ", "ZZZ"}:
        steps.append((at.OFFSET, 0, 0, 0))
    else:
        raise _unsupported(text)


def _widths(text: str) -> tuple[int, int, int]:
    """Return the kind of a number, and its least and most digits."""
    letter, width = text[0], len(text)
    if letter in "yu":
        if width == 2:
            return at.SHORT_YEAR, 2, 2
        if width > _MAX_YEAR_WIDTH:
            raise _unsupported(text)
        return at.YEAR if width >= 4 else at.NUMBER, width, at.MAX_DIGITS
    if width > 2:
        raise _unsupported(text)
    return (at.NUMBER, 1, at.MAX_DIGITS) if width == 1 else (at.NUMBER, 2, 2)


def _reserve(steps: list[Step], width: int) -> None:
    """Let the number that begins a row of numbers leave digits to one more of a fixed width."""
    place = len(steps) - 1
    while (
        place >= 0
        and steps[place][0] in {at.NUMBER, at.SHORT_YEAR}
        and (steps[place][2] == steps[place][3])
    ):
        place -= 1
    if place >= 0 and steps[place][0] in {at.NUMBER, at.YEAR}:
        kind, field, least, most = steps[place]
        steps[place] = (kind, field, least, min(most, 0) - width)


def _unsupported(text: str) -> ValueError:
    return ValueError(
        f"{text!r} is not supported: a pattern to read may have y, M, d, H, m, s, S, X, x and Z as "
        "numbers, literals and optional parts"
    )
