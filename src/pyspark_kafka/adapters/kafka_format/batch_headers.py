"""The headers of the record batches in a fetched part of a log.

The formats: https://kafka.apache.org/documentation/#recordbatch and ``#messageset``. Headers are
parsed in Python: there is one per some hundred records, and a kernel for them took longer to load
than it ever saved.
"""

from __future__ import annotations

import heapq
import struct
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple, final

from ...domain.reading.leader_epochs import NO_EPOCH
from . import status

MAGIC_2: Final = 2

PREFIX_BYTES: Final = 17
"""The bytes up to the magic number, which all formats share."""

HEADER_BYTES: Final = 61
"""The bytes before the records of a batch of format 2 (``RECORD_BATCH_OVERHEAD``)."""

LOG_OVERHEAD: Final = 12
"""The bytes of the offset and the length before a batch, which the length does not count."""

_PREFIX: Final = struct.Struct(">qiib")
_BATCH: Final = struct.Struct(">Ihiqqqhii")
_MESSAGE: Final = (struct.Struct(">Ibb"), struct.Struct(">Ibbq"))
_CONTROL_RECORD: Final = struct.Struct(">xxxxbhh")
"""A control record up to its key. The fields before it have one byte each, as its batch has no
other record and its value is short (``EndTransactionMarker``)."""

_MIN_LENGTH: Final = (14, 22, HEADER_BYTES - LOG_OVERHEAD)
"""The smallest length of each format."""

_MAX_OFFSET: Final = 2**63 - 2
_CONTROL: Final = 0x20
_KEY_LENGTH_4: Final = 8
"""A key length of 4, as a zigzag number."""


class BatchHeader(NamedTuple):
    """The header of a batch, or of a message of formats 0 and 1."""

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
    control_type: int | None = None
    """The ``ControlRecordType`` of a control batch: 0 for an abort, 1 for a commit."""

    leader_epoch: int = NO_EPOCH
    """The epoch of the leader that took the batch; a message has none."""

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
    """The complete batches of a fetched part of a log; a truncated last one is left out.

    ``problem`` is the ``status`` of the bytes after them.
    """

    batches: list[BatchHeader]
    problem: int


class _NoBatchError(Exception):
    """The bytes at a position are not a batch."""

    def __init__(self, problem: int) -> None:
        super().__init__(problem)
        self.problem = problem


def index_batches(view: memoryview) -> BatchIndex:
    """Parse the headers of a fetched part of a log."""
    batches: list[BatchHeader] = []
    try:
        batches.extend(_headers(view))
    except _NoBatchError as error:
        return BatchIndex(batches, error.problem)
    return BatchIndex(batches, status.DONE)


def _headers(view: memoryview) -> Iterator[BatchHeader]:
    start, size = 0, len(view)
    while start + PREFIX_BYTES <= size:
        offset, length, epoch, magic = _PREFIX.unpack_from(view, start)
        if not 0 <= magic <= MAGIC_2:
            raise _NoBatchError(status.BAD_MAGIC)
        if length < _MIN_LENGTH[magic]:
            raise _NoBatchError(status.BAD_SIZE)
        end = start + LOG_OVERHEAD + length
        if end > size:
            return
        if magic == MAGIC_2:
            header = _batch(view, start, end, offset, epoch)
        else:
            header = BatchHeader(
                start, end, magic, offset, offset, *_message(view, start + LOG_OVERHEAD, magic)
            )
        if not 0 <= offset <= header.last_offset <= _MAX_OFFSET or header.records < 0:
            raise _NoBatchError(status.BAD_OFFSET)
        yield header
        start = end


def _batch(view: memoryview, start: int, end: int, offset: int, epoch: int) -> BatchHeader:
    checksum, attributes, delta, base_timestamp, max_timestamp, producer_id, _, _, count = (
        _BATCH.unpack_from(view, start + PREFIX_BYTES)
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
        _control_type(view, start + HEADER_BYTES, end) if attributes & _CONTROL else None,
        epoch,
    )


def _message(view: memoryview, start: int, magic: int) -> tuple[int, int, int, int]:
    checksum, _, attributes, *timestamp = _MESSAGE[magic].unpack_from(view, start)
    time = timestamp[0] if timestamp else -1
    return checksum, attributes, time, time


def _control_type(view: memoryview, start: int, end: int) -> int | None:
    if end - start < _CONTROL_RECORD.size:
        return None
    key_length, _version, control_type = _CONTROL_RECORD.unpack_from(view, start)
    return control_type if key_length == _KEY_LENGTH_4 else None


ABORT: Final = 0
"""The type of a control record that ends an aborted transaction (``ControlRecordType``)."""


class AbortedTransaction(NamedTuple):
    """A transaction that a fetch response lists as aborted, from its first offset on."""

    first_offset: int
    producer_id: int


@final
class AbortedTransactions:
    """Tracks the aborted transactions of one fetch, as the Java client's ``CompletedFetch`` does.

    A broker sends the aborted transactions that overlap the fetched offsets. Each begins at its
    first offset and ends at its producer's next abort marker.
    """

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._pending = list(aborted)
        heapq.heapify(self._pending)
        self._open_producers: set[int] = set()

    def is_aborted(self, batch: BatchHeader) -> bool:
        """Take the next batch, in order of offsets; control batches are never aborted."""
        while self._pending and self._pending[0].first_offset <= batch.last_offset:
            self._open_producers.add(heapq.heappop(self._pending).producer_id)
        if batch.is_control:
            if batch.control_type == ABORT:
                self._open_producers.discard(batch.producer_id)
            return False
        return batch.is_transactional and batch.producer_id in self._open_producers
