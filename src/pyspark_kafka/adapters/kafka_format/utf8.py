"""Decoding text that may not be valid UTF-8."""

from __future__ import annotations

import re
from typing import Any, Final

import pyarrow as pa

_SURROGATE: Final = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
"""A lone UTF-16 surrogate, encoded: one U+FFFD in Java, and three in Python."""


def valid_utf8(binary: pa.Array[Any]) -> pa.Array[Any]:
    """Decode bytes as UTF-8, with U+FFFD for invalid sequences, as Java's ``String`` does.

    Valid UTF-8 is not copied.
    """
    try:
        return binary.cast(pa.string())
    except pa.ArrowInvalid:
        texts = [_SURROGATE.sub(b"\xff", value or b"") for value in binary.to_pylist()]
        return pa.array([text.decode(errors="replace") for text in texts], pa.string())
