"""The check of UTF-8 in kernels."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ...kernels.memory import load_uint8, load_uint64
from ...kernels.parts import inlined

HIGH_BITS: Final = np.uint64(0x8080808080808080)


@inlined
def is_utf8(start: int, size: int) -> Any:
    """Return whether ``size`` bytes at an address are UTF-8 (RFC 3629): no surrogates."""
    at = start
    end = start + size
    while end - at >= 8:
        if load_uint64(at) & HIGH_BITS:
            break
        at += 8
    while at < end:
        first = load_uint8(at)
        if first < 0x80:
            at += 1
            continue
        width = sequence_length(at, end)
        if width == 0:
            return False
        at += width
        while end - at >= 8 and not load_uint64(at) & HIGH_BITS:
            at += 8
    return True


@inlined
def sequence_length(at: int, end: int) -> Any:
    """Return the bytes of the sequence of two to four at ``at``, or 0 if it is invalid."""
    first = load_uint8(at)
    if first < 0xC2 or first > 0xF4:
        return 0
    width = 2 + (first >= 0xE0) + (first >= 0xF0)
    if end - at < width:
        return 0
    second = load_uint8(at + 1)
    low = 0xA0 if first == 0xE0 else 0x90 if first == 0xF0 else 0x80
    high = 0x9F if first == 0xED else 0x8F if first == 0xF4 else 0xBF
    if second < low or second > high:
        return 0
    for number in range(2, width):
        if load_uint8(at + number) & 0xC0 != 0x80:
            return 0
    return width
