"""Texts that may hold bytes of no text."""

from __future__ import annotations

import re
from typing import Any, Final

import pyarrow as pa

_SURROGATE: Final = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
"""Half of a pair of UTF-16 that somebody encoded by itself: one U+FFFD to the JVM, three here."""


def valid_utf8(binary: pa.Array[Any]) -> pa.Array[Any]:
    """Take bytes for UTF-8, with U+FFFD for what is not, as the JVM's ``String`` has it.

    Nothing is copied where all of it is UTF-8.
    """
    try:
        return binary.cast(pa.string())
    except pa.ArrowInvalid:
        texts = [_SURROGATE.sub(b"\xff", value or b"") for value in binary.to_pylist()]
        return pa.array([text.decode(errors="replace") for text in texts], pa.string())
