"""Sizes and texts as requests hold them, with and without compact fields (KIP-482)."""

from __future__ import annotations

import struct
from typing import Final

NO_TAGS: Final = b"\0"
"""The end of a compact structure without tagged fields."""


def encode_count(count: int, *, is_compact: bool = False) -> bytes:
    """Return the size of an array."""
    if not is_compact:
        return struct.pack(">i", count)
    value, encoded = count + 1, bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def encode_text(value: str | None, *, is_compact: bool = False) -> bytes:
    """Return a text with its length before it; null is the length -1."""
    if value is None:
        return encode_count(-1, is_compact=True) if is_compact else struct.pack(">h", -1)
    encoded = value.encode()
    size = len(encoded)
    return (
        encode_count(size, is_compact=True) if is_compact else struct.pack(">h", size)
    ) + encoded
