"""Patterns of Java's ``DateTimeFormatter``, as the steps by which kernels parse and write times.

A step is four 64-bit words, at these offsets in bytes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...kernels.arrays import Int64Array

STRIDE: Final = 32
KIND, FIELD, MIN_WIDTH, MAX_WIDTH = range(0, STRIDE, 8)
"""The parts of a step after its kind:

- A literal: a byte. A fraction: its maximum of digits.
- A number: its field, its minimum of digits, and its maximum or the negative of how many of
  them the numbers take that follow.
- An offset to parse: whether it has a colon, and whether ``Z`` stands for it. To write: ``HAS_Z``
  and ``HAS_SECONDS``.
- An optional part: the index of the step behind its end.
"""

LITERAL, NUMBER, YEAR, SHORT_YEAR, FRACTION, OFFSET, HOUR_OFFSET, OPTIONAL, OPTIONAL_END = range(9)
"""The kinds. A year has at least four digits, and a plus sign if it has more (``EXCEEDS_PAD``); a
short one has two, from 2000 to 2099. An offset of hours may have minutes (``X``)."""

YEARS, MONTHS, DAYS, HOURS, MINUTES, SECONDS = range(6)
HAS_Z: Final = 1
HAS_SECONDS: Final = 2
"""Whether an offset is written as ``Z`` if it is zero, and with its seconds unless they are."""

MAX_DIGITS: Final = 19
"""The digits of a number without a width in Java."""

# Without an option, Spark writes the seconds of an offset (`DateTimeFormatter.ISO_DATE_TIME`).
TIMESTAMP_PATTERN: Final = "yyyy-MM-dd'T'HH:mm:ss[.SSS][XXXXX]"
TIMESTAMP_NTZ_PATTERN: Final = "yyyy-MM-dd'T'HH:mm:ss[.SSS]"
DATE_PATTERN: Final = "yyyy-MM-dd"
"""The defaults of ``to_json`` (``JSONOptions``)."""

Step = tuple[int, int, int, int]

_TOKEN: Final = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|.", re.DOTALL)
_RESERVED: Final = "{}#'"
_FIELDS: Final = {
    "y": YEARS,
    "u": YEARS,
    "M": MONTHS,
    "d": DAYS,
    "H": HOURS,
    "m": MINUTES,
    "s": SECONDS,
}
_DATE_FIELDS: Final = "yuMd"
_MAX_YEAR_WIDTH: Final = 6
_MAX_FRACTION: Final = 9


def parsing_steps(pattern: str) -> Int64Array:
    """Return the steps by which a pattern is parsed, as Spark extends it.

    A fraction of seconds may have fewer digits than letters.

    :raises ValueError: if it is invalid, or has a letter that is not supported.
    """
    steps: list[Step] = []
    start = -1
    for text, literal in _tokens(pattern):
        if text == "[":
            _check(start < 0, "an optional part inside of another one is not supported")
            start = len(steps)
            steps.append((OPTIONAL, 0, 0, 0))
        elif text == "]":
            _check(start >= 0, "']' has no '['")
            steps.append((OPTIONAL_END, 0, 0, 0))
            steps[start] = (OPTIONAL, len(steps), 0, 0)
            start = -1
        elif text:
            _add_field(steps, text)
        steps += _literal(literal)
    if start >= 0:
        steps[start] = (OPTIONAL, len(steps), 0, 0)
    _check(len(steps) > 0, "it is empty")
    return np.array(steps, np.int64)


def writing_steps(pattern: str, *, has_time: bool = True, has_offset: bool = False) -> Int64Array:
    """Return the steps by which a pattern is written.

    Brackets, which mean that a part may be absent in what is parsed, have no effect.

    :raises ValueError: if it has a letter that is not supported, or that the type lacks, or a
        reserved character.
    """
    steps: list[Step] = []
    for text, literal in _tokens(pattern):
        if text and text not in "[]":
            steps.append(_written_field(text, has_time=has_time, has_offset=has_offset))
        steps += _literal(literal)
    return np.array(steps, np.int64)


def _tokens(pattern: str) -> Iterator[tuple[str, str]]:
    """Yield a row of the same letter or a bracket, or else a literal text, each beside ``""``."""
    for token in _TOKEN.finditer(pattern):
        text, quoted = token[0], token[1]
        if quoted is not None:
            yield "", quoted.replace("''", "'") or "'"
        elif token[2] or text in "[]":
            yield text, ""
        else:
            _check(text not in _RESERVED, f"{text!r} is reserved; quote it")
            yield "", text


def _check(is_valid: bool, problem: str) -> None:
    if not is_valid:
        raise ValueError(problem)


def _literal(text: str) -> list[Step]:
    return [(LITERAL, byte, 0, 0) for byte in text.encode()]


def _add_field(steps: list[Step], text: str) -> None:
    letter, width = text[0], len(text)
    if letter in _FIELDS:
        kind, min_width, max_width = _widths(text)
        if min_width == max_width:
            _reserve(steps, max_width)
        steps.append((kind, _FIELDS[letter], min_width, max_width))
    elif letter == "S" and width <= _MAX_FRACTION:
        steps.append((FRACTION, width, 0, 0))
    elif text in {"X", "x"}:
        steps.append((HOUR_OFFSET, 0, text == "X", 0))
    elif text in {"XX", "XXX", "xx", "xxx"}:
        steps.append((OFFSET, width == 3, letter == "X", 0))
    elif text in {"Z", "ZZ", "ZZZ"}:
        steps.append((OFFSET, 0, 0, 0))
    else:
        raise _unsupported(text)


def _widths(text: str) -> tuple[int, int, int]:
    """Return the kind of a number, and its minimum and maximum of digits."""
    letter, width = text[0], len(text)
    if letter in "yu":
        if width == 2:
            return SHORT_YEAR, 2, 2
        if width > _MAX_YEAR_WIDTH:
            raise _unsupported(text)
        return YEAR if width >= 4 else NUMBER, width, MAX_DIGITS
    if width > 2:
        raise _unsupported(text)
    return (NUMBER, 1, MAX_DIGITS) if width == 1 else (NUMBER, 2, 2)


def _reserve(steps: list[Step], width: int) -> None:
    """Let the number that begins a row of numbers leave digits to one more of a fixed width."""
    place = len(steps) - 1
    while (
        place >= 0
        and steps[place][0] in {NUMBER, SHORT_YEAR}
        and (steps[place][2] == steps[place][3])
    ):
        place -= 1
    if place >= 0 and steps[place][0] in {NUMBER, YEAR}:
        kind, field, min_width, max_width = steps[place]
        steps[place] = (kind, field, min_width, min(max_width, 0) - width)


def _unsupported(text: str) -> ValueError:
    return ValueError(
        f"{text!r} is not supported: a pattern to read may have y, M, d, H, m, s, S, X, x and Z as "
        "numbers, literals and optional parts"
    )


def _written_field(text: str, *, has_time: bool, has_offset: bool) -> Step:
    letter, width = text[0], len(text)
    if has_offset and letter in "Xx" and width in {3, 5}:
        form = HAS_Z if letter == "X" else 0
        return OFFSET, form | (HAS_SECONDS if width == 5 else 0), 0, 0
    if has_time and letter == "S" and width <= _MAX_FRACTION:
        return FRACTION, width, 0, 0
    is_known = letter in _FIELDS and (has_time or letter in _DATE_FIELDS)
    is_year = letter in "yu"
    is_two_digit_year = is_year and width == 2
    if is_known and not is_two_digit_year and width <= (_MAX_YEAR_WIDTH if is_year else 2):
        return NUMBER, _FIELDS[letter], width, 0
    raise ValueError(
        f"'{text}' is not supported: a pattern to write may have yyyy, MM, dd, HH, mm, ss, SSS, "
        "XXX, XXXXX, xxx, xxxxx and literals, as far as the type has them"
    )
