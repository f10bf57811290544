"""Batches, checked and decompressed, as the blocks that kernels read."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Final, final

import crc32c
import numpy as np

from . import block_fields as field
from . import decode_cursor as at
from . import status
from .batch_headers import HEADER_BYTES, LOG_OVERHEAD, MAGIC_2, BatchHeader
from .column_buffers import MAX_BYTES
from .decode_kernel import decode_records
from .decompression import FAILURES, Decompressor, Stream
from .legacy_kernel import TYPE_PER_MESSAGE, decode_messages, scan_messages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ..kernels.arrays import Int64Array, UInt8Array
    from .column_buffers import BufferPool

SCRATCH_BYTES: Final = 1024 * 1024
"""The bytes that are decompressed at once; more would not stay in the processor's cache."""

_SCAN_BYTES: Final = 64 * 1024
"""The bytes of a message set that are scanned at once."""

_CHECKED_FROM: Final = (16, 16, 21)
"""The first byte that each format's checksum covers."""


@final
class Scratch:
    """The memory that batches are decompressed into, and their decompressor."""

    __slots__ = ("data", "decompressor")

    def __init__(self) -> None:
        self.data: UInt8Array = np.empty(SCRATCH_BYTES, np.uint8)
        self.decompressor = Decompressor()


class BatchError(Exception):
    """A batch is corrupt."""

    def __init__(self, offset: int, reason: str) -> None:
        super().__init__(reason)
        self.offset = offset
        self.reason = reason


@final
class RecordBlocks:
    """Blocks of one array, the kernel that reads them, and the stream of compressed bytes."""

    __slots__ = ("_batches", "_stream", "data", "kernel", "rows")

    def __init__(
        self,
        kernel: Callable[..., int],
        data: UInt8Array,
        blocks: list[tuple[int, ...]],
        batches: list[BatchHeader],
        stream: Stream | None = None,
    ) -> None:
        """Take a stream if the last block may be open; ``data`` is then writable."""
        self.kernel = kernel
        self.data = data
        self.rows: Int64Array = np.array(blocks, np.int64)
        self._batches = batches
        self._stream = stream

    def base_offset(self, cursor: Int64Array) -> int:
        """Return the base offset of the batch at the cursor."""
        return self._batches[int(cursor[at.BLOCK])].base_offset

    def refill(self, cursor: Int64Array) -> None:
        """Keep the unread bytes of the last block, and decompress more after them."""
        block = self.rows[-1]
        rest = self.data[cursor[at.POSITION] : block[field.END]]
        if 2 * len(rest) > len(self.data):
            self.data = self._larger_data(cursor)
        self.data[: len(rest)] = rest
        filled, ended = _fill(self._stream, self.data, len(rest), self.base_offset(cursor))
        cursor[at.POSITION] = 0
        block[field.START], block[field.END], block[field.IS_OPEN] = 0, filled, not ended

    def discard(self, cursor: Int64Array) -> None:
        """Pass the bytes up to the cursor, which may be after the last block's end.

        :raises BatchError: if the batch ends before, or cannot be decompressed.
        """
        block = self.rows[-1]
        missing = int(cursor[at.POSITION] - block[field.END])
        if cursor[at.BLOCK] < len(self.rows) - 1 or missing <= 0:
            return
        offset = self.base_offset(cursor)
        while missing:
            room = self.data[:missing]
            filled, ended = _fill(self._stream, room, 0, offset)
            if ended:
                raise BatchError(offset, status.REASONS[status.TRUNCATED])
            missing -= filled
        cursor[at.POSITION] = block[field.START] = block[field.END] = 0

    def _larger_data(self, cursor: Int64Array) -> UInt8Array:
        size = len(self.data)
        if size >= MAX_BYTES:
            reason = "a record is larger than an Arrow column can be"
            raise BatchError(self.base_offset(cursor), reason)
        return np.empty(min(2 * size, MAX_BYTES), np.uint8)


@final
class RecordBlockReader:
    """Checks and decompresses batches, in memory that it reuses."""

    def __init__(self, scratch: BufferPool[Scratch], *, check_crcs: bool) -> None:
        self._scratch = scratch
        self._check_crcs = check_crcs

    def check(self, data: UInt8Array, batch: BatchHeader) -> None:
        """Verify a batch's checksum; its header cannot be trusted before.

        :raises BatchError: if it does not match.
        """
        if self._check_crcs:
            checked = data.data[batch.start + _CHECKED_FROM[batch.magic] : batch.end]
            checksum = crc32c.crc32c(checked) if batch.magic == MAGIC_2 else zlib.crc32(checked)
            if checksum != batch.checksum:
                raise BatchError(batch.base_offset, status.REASONS[status.BAD_CHECKSUM])

    def read(self, data: UInt8Array, batches: Iterable[BatchHeader]) -> Iterator[RecordBlocks]:
        """Yield the blocks of batches, in order; read each before you take the next.

        :raises BatchError: if a batch cannot be decompressed, or ``batches`` raises it; the blocks
            before it are yielded first.
        """
        scratch = self._scratch.acquire()
        try:
            yield from _read_blocks(data, batches, _BlockBuffer(scratch))
        finally:
            self._scratch.release(scratch)


def _read_blocks(
    data: UInt8Array, batches: Iterable[BatchHeader], decompressed: _BlockBuffer
) -> Iterator[RecordBlocks]:
    view = data.data
    uncompressed: list[BatchHeader] = []
    try:
        for batch in batches:
            if batch.magic == MAGIC_2 and not batch.codec:
                yield from decompressed.flush()
                uncompressed.append(batch)
                continue
            yield from _uncompressed_blocks(data, uncompressed)
            uncompressed = []
            if batch.magic == MAGIC_2:
                yield from decompressed.add(batch, view)
            else:
                yield from decompressed.flush()
                yield (
                    decompressed.message_set(batch, view) if batch.codec else _message(data, batch)
                )
    except BatchError:
        yield from _uncompressed_blocks(data, uncompressed)
        yield from decompressed.flush()
        raise
    yield from _uncompressed_blocks(data, uncompressed)
    yield from decompressed.flush()


@final
class _BlockBuffer:
    """Small batches, decompressed one after another, so that a kernel reads many at once."""

    def __init__(self, scratch: Scratch) -> None:
        self._scratch = scratch
        self._reset()

    def _reset(self) -> None:
        self._filled = 0
        self._blocks: list[tuple[int, ...]] = []
        self._batches: list[BatchHeader] = []

    def add(self, batch: BatchHeader, view: memoryview) -> Iterator[RecordBlocks]:
        data = self._scratch.data
        if 2 * self._filled > len(data):
            yield from self.flush()
        start = self._filled
        compressed = view[batch.start + HEADER_BYTES : batch.end]
        stream = _open(batch, compressed, self._scratch)
        self._filled, ended = _fill(stream, data, start, batch.base_offset)
        self._blocks.append(_block(batch, start, self._filled, is_open=not ended))
        self._batches.append(batch)
        if not ended:
            yield from self.flush(stream)

    def message_set(self, batch: BatchHeader, view: memoryview) -> RecordBlocks:
        return _message_set(view, batch, self._scratch)

    def flush(self, stream: Stream | None = None) -> Iterator[RecordBlocks]:
        if self._blocks:
            data = self._scratch.data
            yield RecordBlocks(decode_records, data, self._blocks, self._batches, stream)
            self._reset()


def _uncompressed_blocks(data: UInt8Array, batches: list[BatchHeader]) -> Iterator[RecordBlocks]:
    if batches:
        blocks = [
            _block(batch, batch.start + HEADER_BYTES, batch.end, is_open=False) for batch in batches
        ]
        yield RecordBlocks(decode_records, data, blocks, batches)


def _block(batch: BatchHeader, start: int, end: int, *, is_open: bool) -> tuple[int, ...]:
    append_time = batch.is_log_append_time
    return (
        start,
        end,
        batch.records,
        batch.base_offset,
        batch.last_offset,
        batch.max_timestamp if append_time else batch.base_timestamp,
        field.LOG_APPEND_TIME if append_time else field.CREATE_TIME,
        is_open,
    )


def _message(data: UInt8Array, batch: BatchHeader) -> RecordBlocks:
    """Return the block of a message that is not compressed."""
    block = (
        *(batch.start, batch.end, 0, 0, batch.last_offset),
        *(batch.base_timestamp, TYPE_PER_MESSAGE, 0),
    )
    return RecordBlocks(decode_messages, data, [block], [batch])


def _message_set(view: memoryview, batch: BatchHeader, scratch: Scratch) -> RecordBlocks:
    """Return the block of the messages that a message wraps compressed."""
    compressed = _wrapped(batch, view)
    # In format 1 inner offsets are relative, and the wrapper has the last one.
    last = _last_offset(batch, compressed, scratch)
    base_offset = batch.last_offset - last if batch.magic == 1 else 0
    stream = _open(batch, compressed, scratch)
    filled, ended = _fill(stream, scratch.data, 0, batch.base_offset)
    timestamp_type = field.LOG_APPEND_TIME if batch.is_log_append_time else field.CREATE_TIME
    offsets = base_offset, batch.last_offset
    block = (0, filled, 0, *offsets, batch.base_timestamp, timestamp_type, not ended)
    return RecordBlocks(decode_messages, scratch.data, [block], [batch], stream)


def _wrapped(batch: BatchHeader, view: memoryview) -> memoryview:
    key = batch.start + LOG_OVERHEAD + (6 if batch.magic == 0 else 14)
    key_length = int.from_bytes(view[key : key + 4], "big", signed=True)
    value = key + 4 + max(key_length, 0)
    value_length = int.from_bytes(view[value : value + 4], "big", signed=True)
    if value + 4 + value_length != batch.end:
        raise BatchError(batch.base_offset, status.REASONS[status.BAD_LENGTH])
    return view[value + 4 : batch.end]


def _last_offset(batch: BatchHeader, compressed: memoryview, scratch: Scratch) -> int:
    """Return the offset in the last message of a set, which is decompressed once for it."""
    stream = _open(batch, compressed, scratch)
    data = np.empty(_SCAN_BYTES, np.uint8)
    filled = position = 0
    offset = -1
    while True:
        filled, ended = _fill(stream, data, filled, batch.base_offset)
        position, offset, problem = scan_messages(data[:filled], position, offset)
        if problem == status.DONE and ended:
            problem = status.DONE if position == filled else status.TRUNCATED
            problem = problem if offset >= 0 else status.BAD_OFFSET
        if problem != status.DONE:
            raise BatchError(batch.base_offset, status.REASONS[problem])
        if ended:
            return int(offset)
        rest = data[position:filled]
        position, filled = max(0, position - filled), len(rest)
        data[:filled] = rest


def _open(batch: BatchHeader, compressed: memoryview, scratch: Scratch) -> Stream:
    try:
        return scratch.decompressor.open(batch.codec, compressed, batch.magic)
    except FAILURES as error:
        raise BatchError(batch.base_offset, str(error)) from error


def _fill(stream: Stream | None, data: UInt8Array, filled: int, offset: int) -> tuple[int, bool]:
    """Decompress until the memory is full or the stream ends.

    Return the bytes that are filled, and whether the stream ended.
    """
    if stream is None:
        return filled, True
    view = data.data
    try:
        while filled < len(data):
            size = stream.readinto(view[filled:])
            if not size:
                return filled, True
            filled += size
    except FAILURES as error:
        raise BatchError(offset, f"it cannot be decompressed: {error}") from error
    return filled, False
