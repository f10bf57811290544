"""Lies that an answer of any API may tell."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from .hostile_broker import Lie, Line, framed

if TYPE_CHECKING:
    from collections.abc import Callable

INT32_MAX: Final = 2**31 - 1
UNKNOWN_ERROR_CODE: Final = 32_000
DAYS_MS: Final = 20 * 86_400_000


def another_correlation(frame: bytes) -> bytes:
    """Return an answer as one to another request."""
    return struct.pack(">i", struct.unpack_from(">i", frame)[0] + 1_000) + frame[4:]


def first_half(frame: bytes) -> bytes:
    """Return a frame that ends in the middle, and says so."""
    return frame[: 4 + (len(frame) - 4) // 2]


def with_size(size: int) -> Callable[[Line, bytes], None]:
    """Announce a frame of a size, and send the bytes of an honest one."""

    def send(line: Line, frame: bytes) -> None:
        line.send(struct.pack(">i", size) + frame)

    return send


def reset_within(line: Line, frame: bytes) -> None:
    """Reset the connection in the middle of a frame."""
    line.send(framed(frame)[: 4 + len(frame) // 2])
    line.reset()


def close_within(line: Line, frame: bytes) -> None:
    """End the connection in the middle of a frame."""
    line.send(framed(frame)[: 4 + len(frame) // 2])
    raise ConnectionAbortedError


def twice(line: Line, frame: bytes) -> None:
    """Send an answer two times."""
    line.send(framed(frame) * 2)


def trickled(line: Line, frame: bytes) -> None:
    """Send a byte now and then: no pause is as long as a time-out."""
    line.trickle(framed(frame), 0.1)


FRAMES: Final = {
    "another correlation id": Lie("", frame=another_correlation),
    "cut off": Lie("", frame=first_half),
    "nothing behind the correlation id": Lie("", frame=lambda frame: frame[:4]),
    "no correlation id": Lie("", frame=lambda frame: frame[:2]),
    "an empty frame": Lie("", frame=lambda _: b""),
    "0xFF everywhere": Lie("", frame=lambda frame: frame[:4] + b"\xff" * (len(frame) - 4)),
    "0x7F everywhere": Lie("", frame=lambda frame: frame[:4] + b"\x7f" * (len(frame) - 4)),
    "a frame of 2 GiB": Lie("", send=with_size(INT32_MAX)),
    "a frame of a negative size": Lie("", send=with_size(-2)),
    "a reset in the frame": Lie("", send=reset_within),
    "an end in the frame": Lie("", send=close_within),
    "the answer twice": Lie("", send=twice),
    "a byte now and then": Lie("", send=trickled),
}
"""Lies about frames by name, without the API."""
