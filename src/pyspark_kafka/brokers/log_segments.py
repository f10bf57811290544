"""The files of a partition's log, which tests damage."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import BinaryIO, Final

_HEADER: Final = struct.Struct(">qi")
"""The first offset of a record batch, and the number of bytes after this."""

_LAST_OFFSET_DELTA: Final = struct.Struct(">i")
_LAST_OFFSET_DELTA_AT: Final = 23
"""Where a batch says how far its last offset is from its first (record format 2)."""


def corrupt_batch(log: Path, offset: int) -> bool:
    """Invert the last byte of the record batch with an offset; return whether the log has one.

    ``log`` is the directory of a partition. The batch's checksum is then wrong.
    """
    return any(_corrupt_in_segment(segment, offset) for segment in sorted(log.glob("*.log")))


def _corrupt_in_segment(segment: Path, offset: int) -> bool:
    with segment.open("r+b") as file:
        while header := _read(file, _HEADER):
            first, size = header
            start = file.tell() - _HEADER.size
            end = start + _HEADER.size + size
            file.seek(start + _LAST_OFFSET_DELTA_AT)
            delta = _read(file, _LAST_OFFSET_DELTA)
            if delta and first <= offset <= first + delta[0]:
                file.seek(end - 1)
                [last] = file.read(1)
                file.seek(end - 1)
                file.write(bytes([last ^ 0xFF]))
                return True
            file.seek(end)
    return False


def _read(file: BinaryIO, field: struct.Struct) -> tuple[int, ...]:
    """Return the integers at the current position; none at the end of the file."""
    found = file.read(field.size)
    return field.unpack(found) if len(found) == field.size else ()
