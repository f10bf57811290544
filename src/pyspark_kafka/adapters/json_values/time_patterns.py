"""Patterns of dates and times, as the steps by which kernels write them."""

from __future__ import annotations

import re
from typing import Final

import numpy as np

from ..kernels.arrays import Int64Array
from . import time_writing_kernel
from .patterns import RESERVED

# Without an option, Spark writes the seconds of an offset (`DateTimeFormatter.ISO_DATE_TIME`).
TIMESTAMP_PATTERN: Final = "yyyy-MM-dd'T'HH:mm:ss[.SSS][XXXXX]"
TIMESTAMP_NTZ_PATTERN: Final = "yyyy-MM-dd'T'HH:mm:ss[.SSS]"
DATE_PATTERN: Final = "yyyy-MM-dd"
"""The defaults of ``to_json`` (``JSONOptions``)."""

_TOKEN: Final = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[\[\]]|.", re.DOTALL)

_FIELDS: Final = {
    "y": time_writing_kernel.YEAR,
    "u": time_writing_kernel.YEAR,
    "M": time_writing_kernel.MONTH,
    "d": time_writing_kernel.DAY,
    "H": time_writing_kernel.HOUR,
    "m": time_writing_kernel.MINUTE,
    "s": time_writing_kernel.SECOND,
}
_MAX_WIDTHS: Final = {"y": 6, "u": 6}
_DATE_FIELDS: Final = "yuMd"


def time_steps(pattern: str, *, has_time: bool = True, has_offset: bool = False) -> Int64Array:
    """Return the steps of a pattern of Java's ``DateTimeFormatter``.

    Brackets, which mean that a part may be absent in what is parsed, have no effect.

    :raises ValueError: if it has a letter that is not supported, or that the type lacks, or a
        reserved character.
    """
    steps: list[int] = []
    for token in _TOKEN.finditer(pattern):
        text, quoted = token[0], token[1]
        if quoted is not None:
            steps += _literal(quoted.replace("''", "'") or "'")
        elif text in {"[", "]"}:
            continue
        elif text[0].isascii() and text[0].isalpha():
            steps.append(_field(text, has_time=has_time, has_offset=has_offset))
        elif text in RESERVED:
            raise ValueError(f"{text!r} is reserved; quote it")
        else:
            steps += _literal(text)
    return np.array(steps, np.int64)


def _field(text: str, *, has_time: bool, has_offset: bool) -> int:
    letter, width = text[0], len(text)
    if has_offset and letter in "Xx" and width in {3, 5}:
        form = time_writing_kernel.HAS_Z if letter == "X" else 0
        form |= time_writing_kernel.HAS_SECONDS if width == 5 else 0
        return time_writing_kernel.OFFSET | form << 8
    if has_time and letter == "S" and width <= 9:
        return time_writing_kernel.FRACTION | width << 8
    is_two_digit_year = letter in "yu" and width == 2
    is_known = letter in _FIELDS and (has_time or letter in _DATE_FIELDS)
    if is_known and not is_two_digit_year and width <= _MAX_WIDTHS.get(letter, 2):
        return _FIELDS[letter] | width << 8
    raise ValueError(
        f"'{text}' is not supported: a pattern to write may have yyyy, MM, dd, HH, mm, ss, SSS, "
        "XXX, XXXXX, xxx, xxxxx and literals, as far as the type has them"
    )


def _literal(text: str) -> list[int]:
    return [time_writing_kernel.LITERAL | byte << 8 for byte in text.encode()]
