"""Where the batches of a fetched stretch of a log begin, and what their headers say.

The formats: https://kafka.apache.org/documentation/#recordbatch and ``#messageset``. Headers are
read in Python: there is one to some hundred records, and a kernel for them took longer to load
than it ever saved.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from . import status

if TYPE_CHECKING:
    from collections.abc import Iterator

MAGIC_2: Final = 2

PREFIX: Final = 17
"""The bytes up to the magic number, which all formats have alike."""

HEADER: Final = 61
"""The bytes before the records of a batch of format 2."""

_PREFIX: Final = struct.Struct(">qiib")
_BATCH: Final = struct.Struct(">Ihiqqqhii")
_MESSAGE: Final = (struct.Struct(">Ibb"), struct.Struct(">Ibbq"))
_MARKER: Final = struct.Struct(">xxxxbhh")
"""A control record up to its key: what comes before is one byte each, as its batch has no other
record and its value is short (``EndTransactionMarker``)."""

_LENGTH_AFTER: Final = 12
"""The bytes of an offset and of a length, which the length does not count."""

_MIN_LENGTH: Final = (14, 22, HEADER - _LENGTH_AFTER)
"""The least length that each format can have."""

_MAX_OFFSET: Final = 2**63 - 2
_CONTROL: Final = 0x20
_KEY_OF_FOUR: Final = 8
"""A key's length of four, as a zigzag number."""


class BatchHeader(NamedTuple):
    """The header of a batch, or of a message of the formats before."""

    start: int
    end: int
    magic: int
    base_offset: int
    last_offset: int
    checksum: int
    attributes: int
    base_timestamp: int = -1
    max_timestamp: int = -1
    producer_id: int = -1
    records: int = 0
    marker: int | None = None
    """A control batch's kind: 0 for an abort, 1 for a commit."""

    @property
    def codec(self) -> int:
        return self.attributes & 0x07

    @property
    def is_log_append_time(self) -> bool:
        return self.magic > 0 and bool(self.attributes & 0x08)

    @property
    def is_transactional(self) -> bool:
        return self.magic == MAGIC_2 and bool(self.attributes & 0x10)

    @property
    def is_control(self) -> bool:
        return self.magic == MAGIC_2 and bool(self.attributes & _CONTROL)


class BatchIndex(NamedTuple):
    """The whole batches of a fetched stretch; what is cut off at its end is left out.

    ``problem`` is the ``status`` of the bytes behind them, which may be those of no batch.
    """

    batches: list[BatchHeader]
    problem: int


class _NoBatchError(Exception):
    """The bytes at a position are not those of a batch."""

    def __init__(self, problem: int) -> None:
        super().__init__(problem)
        self.problem = problem


def index_batches(view: memoryview) -> BatchIndex:
    """Read the headers of a stretch of a log."""
    found: list[BatchHeader] = []
    try:
        found.extend(_headers(view))
    except _NoBatchError as error:
        return BatchIndex(found, error.problem)
    return BatchIndex(found, status.DONE)


def _headers(view: memoryview) -> Iterator[BatchHeader]:
    start, size = 0, len(view)
    while start + PREFIX <= size:
        offset, length, _, magic = _PREFIX.unpack_from(view, start)
        if not 0 <= magic <= MAGIC_2:
            raise _NoBatchError(status.BAD_MAGIC)
        if length < _MIN_LENGTH[magic]:
            raise _NoBatchError(status.BAD_SIZE)
        end = start + _LENGTH_AFTER + length
        if end > size:
            return
        if magic == MAGIC_2:
            header = _batch(view, start, end, offset)
        else:
            header = BatchHeader(
                start, end, magic, offset, offset, *_message(view, start + PREFIX - 5, magic)
            )
        if not 0 <= offset <= header.last_offset <= _MAX_OFFSET or header.records < 0:
            raise _NoBatchError(status.BAD_OFFSET)
        yield header
        start = end


def _batch(view: memoryview, start: int, end: int, offset: int) -> BatchHeader:
    checksum, attributes, delta, base_timestamp, max_timestamp, producer_id, _, _, count = (
        _BATCH.unpack_from(view, start + PREFIX)
    )
    return BatchHeader(
        start,
        end,
        MAGIC_2,
        offset,
        offset + delta,
        checksum,
        attributes,
        base_timestamp,
        max_timestamp,
        producer_id,
        count,
        _marker(view, start + HEADER, end) if attributes & _CONTROL else None,
    )


def _message(view: memoryview, start: int, magic: int) -> tuple[int, int, int, int]:
    checksum, _, attributes, *timestamp = _MESSAGE[magic].unpack_from(view, start)
    time = timestamp[0] if timestamp else -1
    return checksum, attributes, time, time


def _marker(view: memoryview, start: int, end: int) -> int | None:
    if end - start < _MARKER.size:
        return None
    key_length, _version, kind = _MARKER.unpack_from(view, start)
    return kind if key_length == _KEY_OF_FOUR else None
