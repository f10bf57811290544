"""Bytes from base64, as Jackson's ``MIME_NO_LINEFEEDS`` reads it."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ..kernels.memory import load_uint8, store_uint8
from ..kernels.parts import inlined

_PADDING: Final = 61
_ALPHABET: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_INVALID: Final = 255
_VALUES: Final = np.array(
    [_ALPHABET.index(byte) if byte in _ALPHABET else _INVALID for byte in range(256)], np.uint8
)


@inlined
def decode_base64(start: int, end: int, target: int) -> Any:
    """Write the bytes of a base64 text, and return where they end; or -1 if it is invalid.

    ``target`` may be ``start``. White space may stand between groups of four, and the padding must
    be there.
    """
    place = target
    at = start
    while True:
        while at < end and load_uint8(at) <= 32:
            at += 1
        if at >= end:
            return place
        if end - at < 4:
            return -1
        one, two = _value(at), _value(at + 1)
        three, four = _value(at + 2), _value(at + 3)
        if one == _INVALID or two == _INVALID:
            return -1
        padding = 0
        if load_uint8(at + 3) == _PADDING:
            padding = 2 if load_uint8(at + 2) == _PADDING else 1
        if (three == _INVALID and padding < 2) or (four == _INVALID and padding < 1):
            return -1
        at += 4
        store_uint8(place, np.uint8((one << 2 | two >> 4) & 0xFF))
        if padding < 2:
            store_uint8(place + 1, np.uint8((two << 4 | three >> 2) & 0xFF))
        if padding < 1:
            store_uint8(place + 2, np.uint8((three << 6 | four) & 0xFF))
        place += 3 - padding


@inlined
def _value(at: int) -> Any:
    return np.int64(_VALUES[load_uint8(at)])
