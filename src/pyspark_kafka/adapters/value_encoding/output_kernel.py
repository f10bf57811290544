"""What kernels that encode rows write in more than one format."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..kernels.memory import load_int64, load_uint8, store_uint8
from ..kernels.parts import inlined

U = np.uint64


@inlined
def put_varint(at: int, number: Any) -> Any:
    """Write an unsigned 64-bit number as a varint, and return where it ends: at most 10 bytes."""
    while number > U(0x7F):
        store_uint8(at, np.uint8((number & U(0x7F)) | U(0x80)))
        at += 1
        number >>= U(7)
    store_uint8(at, np.uint8(number))
    return at + 1


@inlined
def find_symbol(offsets: int, count: int, source: int, size: int) -> Any:
    """Return the place of a text among an enum's symbols, or -1.

    ``offsets`` is the address of ``count + 1`` 64-bit offsets, with the texts behind them.
    """
    texts = offsets + 8 * (count + 1)
    for number in range(count):
        start = load_int64(offsets + 8 * number)
        if load_int64(offsets + 8 * number + 8) - start == size:
            place = 0
            while place < size and load_uint8(texts + start + place) == load_uint8(source + place):
                place += 1
            if place == size:
                return number
    return -1
