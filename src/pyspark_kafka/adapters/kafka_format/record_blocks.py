"""Batches, checked and decompressed, as the sections that kernels read."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, final

import crc32c
import numpy as np

from . import block_fields as of
from . import decode_cursor as at
from . import status
from .batch_headers import HEADER, MAGIC_2, BatchHeader
from .column_buffers import MAX_BYTES
from .decode_kernel import decode_records
from .decompression import FAILURES, Stream, open_stream
from .legacy_kernel import AS_MESSAGES_SAY, MESSAGE, decode_messages, last_offset

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from .buffer_pool import BufferPool

    Bytes: TypeAlias = np.ndarray[Any, np.dtype[np.uint8]]
    Longs: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]

A = TypeVar("A", bound="np.ndarray[Any, Any]")

SCRATCH: Final = 1024 * 1024
"""Bytes that are decompressed at once: what comes of more falls out of the processor's cache."""

_CHECKED: Final = (16, 16, 21)
"""Where the bytes begin of which the checksum of each format is."""

_MAX_MESSAGE_SET_BYTES: Final = 256 * 1024 * 1024
"""The bytes of a decompressed message set: it cannot be read in pieces, as its end is needed."""


class BatchError(Exception):
    """A batch is not what Kafka writes."""

    def __init__(self, offset: int, reason: str) -> None:
        super().__init__(reason)
        self.offset = offset
        self.reason = reason


@final
class RecordBlocks:
    """Some sections of one array, the kernel that reads them, and what is still compressed."""

    __slots__ = ("_batches", "_scratch", "_stream", "data", "kernel", "table")

    def __init__(
        self,
        kernel: Callable[..., int],
        data: Bytes,
        sections: list[tuple[int, ...]],
        batches: list[BatchHeader],
        stream: Stream | None = None,
    ) -> None:
        """Take a stream if the last section is open; ``data`` is then to be written to."""
        self.kernel = kernel
        self.data = read_only(data)
        self.table: Longs = np.array(sections, np.int64)
        self._scratch = data
        self._batches = batches
        self._stream = stream

    def offset(self, cursor: Longs) -> int:
        """Give the first offset of the batch in which a kernel stands."""
        return self._batches[int(cursor[at.SECTION])].base_offset

    def refill(self, cursor: Longs) -> None:
        """Decompress more of the last section, behind what of it is not read yet."""
        section = self.table[-1]
        rest = self._scratch[cursor[at.POSITION] : section[of.END]]
        if 2 * len(rest) > len(self._scratch):
            self._scratch = self._larger(cursor)
            self.data = read_only(self._scratch)
        self._scratch[: len(rest)] = rest
        filled, ended = _fill(self._stream, self._scratch, len(rest), self.offset(cursor))
        cursor[at.POSITION] = 0
        section[of.START], section[of.END], section[of.IS_OPEN] = 0, filled, not ended

    def _larger(self, cursor: Longs) -> Bytes:
        size = len(self._scratch)
        if size >= MAX_BYTES:
            raise BatchError(self.offset(cursor), "a record has more bytes than an Arrow column")
        return np.empty(min(2 * size, MAX_BYTES), np.uint8)


@final
class RecordBlockReader:
    """Checks batches and decompresses them, into memory that it uses again and again."""

    def __init__(self, scratch: BufferPool[Bytes], *, check_crcs: bool) -> None:
        self._scratch = scratch
        self._check_crcs = check_crcs

    def check(self, data: Bytes, batch: BatchHeader) -> None:
        """Hold a batch to its checksum: before that, nothing of its header is to be believed.

        :raises BatchError: if it does not match.
        """
        if self._check_crcs:
            checked = data.data[batch.start + _CHECKED[batch.magic] : batch.end]
            found = crc32c.crc32c(checked) if batch.magic == MAGIC_2 else zlib.crc32(checked)
            if found != batch.checksum:
                raise BatchError(batch.base_offset, status.REASONS[status.BAD_CHECKSUM])

    def sections(self, data: Bytes, batches: Iterable[BatchHeader]) -> Iterator[RecordBlocks]:
        """Give the sections of batches, in order; each is to be read before the next.

        :raises BatchError: if a codec cannot read its bytes; one that ``batches`` raises comes
            when what stands before it has been given.
        """
        scratch = self._scratch.take()
        try:
            yield from self._sections(data, batches, scratch)
        finally:
            self._scratch.give_back(scratch)

    def _sections(
        self, data: Bytes, batches: Iterable[BatchHeader], scratch: Bytes
    ) -> Iterator[RecordBlocks]:
        view = data.data
        plain: list[BatchHeader] = []
        packed = _BlockBuffer(scratch)
        try:
            for batch in batches:
                if batch.magic == MAGIC_2 and not batch.codec:
                    yield from packed.take()
                    plain.append(batch)
                    continue
                yield from _plain(data, plain)
                plain = []
                if batch.magic == MAGIC_2:
                    yield from packed.add(batch, view)
                else:
                    yield from packed.take()
                    yield _message_set(data, view, batch)
        except BatchError:
            # What stands before it can be read.
            yield from _plain(data, plain)
            yield from packed.take()
            raise
        yield from _plain(data, plain)
        yield from packed.take()


@final
class _BlockBuffer:
    """Small batches, decompressed one behind the other, so that a kernel reads many at once."""

    def __init__(self, scratch: Bytes) -> None:
        self._scratch = scratch
        self._begin()

    def _begin(self) -> None:
        self._filled = 0
        self._sections: list[tuple[int, ...]] = []
        self._batches: list[BatchHeader] = []

    def add(self, batch: BatchHeader, view: memoryview) -> Iterator[RecordBlocks]:
        if 2 * self._filled > len(self._scratch):
            yield from self.take()
        start = self._filled
        stream = _open(batch, view[batch.start + HEADER : batch.end])
        self._filled, ended = _fill(stream, self._scratch, start, batch.base_offset)
        self._sections.append(_section(batch, start, self._filled, is_open=not ended))
        self._batches.append(batch)
        if not ended:
            yield from self.take(stream)

    def take(self, stream: Stream | None = None) -> Iterator[RecordBlocks]:
        if self._sections:
            yield RecordBlocks(decode_records, self._scratch, self._sections, self._batches, stream)
            self._begin()


def read_only(data: A) -> A:
    """Give a view that cannot be written to: the one type that kernels are compiled for."""
    view = data.view()
    view.flags.writeable = False
    return view


def _plain(data: Bytes, batches: list[BatchHeader]) -> Iterator[RecordBlocks]:
    if batches:
        sections = [
            _section(batch, batch.start + HEADER, batch.end, is_open=False) for batch in batches
        ]
        yield RecordBlocks(decode_records, data, sections, batches)


def _section(batch: BatchHeader, start: int, end: int, *, is_open: bool) -> tuple[int, ...]:
    append_time = batch.is_log_append_time
    return (
        start,
        end,
        batch.records,
        batch.base_offset,
        batch.last_offset,
        batch.max_timestamp if append_time else batch.base_timestamp,
        of.LOG_APPEND_TIME if append_time else of.CREATE_TIME,
        is_open,
    )


def _message_set(data: Bytes, view: memoryview, batch: BatchHeader) -> RecordBlocks:
    """Give a message, or those that one message holds compressed."""
    kind, start, end, base_offset = AS_MESSAGES_SAY, batch.start, batch.end, 0
    if batch.codec:
        data = _inner_set(batch, view)
        start, end = 0, len(data)
        last, problem = last_offset(data)
        if problem != status.DONE:
            raise BatchError(batch.base_offset, status.REASONS[problem])
        # Format 1 counts offsets from the first message, and its wrapper has that of the last.
        base_offset = batch.last_offset - last if batch.magic == 1 else 0
        kind = of.LOG_APPEND_TIME if batch.is_log_append_time else of.CREATE_TIME
    section = (start, end, 0, base_offset, batch.last_offset, batch.base_timestamp, kind, 0)
    return RecordBlocks(decode_messages, data, [section], [batch])


def _inner_set(batch: BatchHeader, view: memoryview) -> Bytes:
    key = batch.start + MESSAGE + (6 if batch.magic == 0 else 14)
    key_length = int.from_bytes(view[key : key + 4], "big", signed=True)
    value = key + 4 + max(key_length, 0)
    value_length = int.from_bytes(view[value : value + 4], "big", signed=True)
    if value + 4 + value_length != batch.end:
        raise BatchError(batch.base_offset, status.REASONS[status.BAD_LENGTH])
    stream = _open(batch, view[value + 4 : batch.end])
    inner = np.empty(SCRATCH, np.uint8)
    filled = 0
    while True:
        filled, ended = _fill(stream, inner, filled, batch.base_offset)
        if ended:
            return read_only(inner[:filled])
        if len(inner) >= _MAX_MESSAGE_SET_BYTES:
            raise BatchError(
                batch.base_offset, f"it holds more than {_MAX_MESSAGE_SET_BYTES} bytes"
            )
        inner = np.concatenate((inner, np.empty_like(inner)))


def _open(batch: BatchHeader, compressed: memoryview) -> Stream:
    try:
        return open_stream(batch.codec, compressed, batch.magic)
    except FAILURES as error:
        raise BatchError(batch.base_offset, str(error)) from error


def _fill(stream: Stream | None, scratch: Bytes, filled: int, offset: int) -> tuple[int, bool]:
    """Decompress until the scratch is full or the stream at its end; say how far, and which."""
    if stream is None:
        return filled, True
    room = scratch.data
    try:
        while filled < len(scratch):
            size = stream.readinto(room[filled:])
            if not size:
                return filled, True
            filled += size
    except FAILURES as error:
        raise BatchError(offset, f"it cannot be decompressed: {error}") from error
    return filled, False
