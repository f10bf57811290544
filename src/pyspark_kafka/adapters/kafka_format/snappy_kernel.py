"""Large blocks of snappy, decompressed piece by piece.

The format: https://github.com/google/snappy/blob/main/format_description.txt. Snappy's libraries
decompress a block as a whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ..kernels.kernel import kernel
from ..kernels.memory import copy_bytes
from ..kernels.parts import inlined
from .bounded_reads import byte_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..kernels.arrays import Int64Array, UInt8Array

PIECE_BYTES: Final = 1024 * 1024

MAX_DISTANCE: Final = 1024 * 1024
"""How far back a copy may refer. Snappy's compressors refer back by less than 64 kB: after as many
bytes they start a new block."""

_POSITION: Final = 0
_FILLED: Final = 1
_LITERAL: Final = 2
_COPY: Final = 3
_DISTANCE: Final = 4
_FIELD_COUNT: Final = 5
"""The state between calls: the bytes that were read and written, the rest of the element that was
begun, and how far back it refers."""

_DONE: Final = 0
_CORRUPT: Final = 1

_MAX_SHORT_LITERAL: Final = 60
"""A longer literal has its length in 1 to 4 separate bytes."""


def decompress_snappy(block: memoryview, size: int) -> Iterator[bytes]:
    """Yield the pieces of a block that declares a size, which comes before ``block``.

    :raises ValueError: if it is corrupt, or has another size.
    """
    source = np.frombuffer(block, np.uint8)
    window: UInt8Array = np.empty(MAX_DISTANCE + PIECE_BYTES, np.uint8)
    state: Int64Array = np.zeros(_FIELD_COUNT, np.int64)
    yielded = 0
    while True:
        kept = int(state[_FILLED])
        if decompress(source, window, state) != _DONE:
            raise ValueError("a block is corrupt")
        filled = int(state[_FILLED])
        yielded += filled - kept
        if yielded > size or (filled == kept and yielded < size):
            raise ValueError("a block has another size than it declares")
        if filled == kept:
            return
        yield window[kept:filled].tobytes()
        history = window[max(0, filled - MAX_DISTANCE) : filled].copy()
        window[: len(history)] = history
        state[_FILLED] = len(history)


@kernel("const uint8[]", "uint8[]", "int64[]")
def decompress(source: Any, window: Any, state: Any) -> int:
    """Fill the window; what it holds already may be referred to. Return whether that failed."""
    position, filled, literal, copy, distance = state
    result = _DONE
    while filled < len(window):
        if literal > 0:
            length = min(literal, len(window) - filled)
            if position + length > len(source):
                result = _CORRUPT
                break
            copy_bytes(window, filled, source, position, length)
            position += length
            literal -= length
            filled += length
        elif copy > 0:
            if not 0 < distance <= filled:
                result = _CORRUPT
                break
            length = min(copy, len(window) - filled)
            # Byte by byte: a copy may refer to what it writes.
            for place in range(filled, filled + length):
                window[place] = window[place - distance]
            copy -= length
            filled += length
        elif position < len(source):
            position, literal, copy, distance = _element(source, position)
            if position < 0:
                result = _CORRUPT
                break
        else:
            break
    state[_POSITION] = position
    state[_FILLED] = filled
    state[_LITERAL] = literal
    state[_COPY] = copy
    state[_DISTANCE] = distance
    return result


@inlined
def _element(source: Any, position: Any) -> Any:
    """Read an element's head.

    Return the position after it, -1 if it is truncated, and the length of a literal, or the length
    and the distance of a copy.
    """
    tag = np.int64(byte_at(source, position))
    kind = tag & 3
    upper = tag >> 2
    position += 1
    none = np.int64(0)
    size = max(none, upper - _MAX_SHORT_LITERAL + 1) if kind == 0 else np.int64(1 << (kind - 1))
    if position + size > len(source):
        return np.int64(-1), none, none, none
    number = none
    for place in range(size):
        number |= np.int64(byte_at(source, position + place)) << (8 * place)
    position += size
    if kind == 0:
        return position, (number if size else upper) + 1, none, none
    if kind == 1:
        return position, none, (upper & 7) + 4, ((tag >> 5) << 8) | number
    return position, none, upper + 1, number
