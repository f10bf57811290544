"""Texts as requests without compact fields hold them."""

from __future__ import annotations

import struct


def encode_text(value: str | None) -> bytes:
    """Return a text with its length before it; null is the length -1."""
    if value is None:
        return struct.pack(">h", -1)
    encoded = value.encode()
    return struct.pack(">h", len(encoded)) + encoded
