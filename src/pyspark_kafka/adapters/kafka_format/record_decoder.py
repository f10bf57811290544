"""Decoding fetched parts of a log into Arrow batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from ...domain.reading.errors import CorruptBatchError, MalformedTimestampError
from ...domain.reading.record_limits import OversizedRecords, RecordLimits
from ...domain.topic_partition import TopicPartition
from . import decode_cursor as at
from . import status
from .batch_headers import MAGIC_2, AbortedTransactions, index_batches
from .column_buffers import BatchBuilder, BufferPool, ColumnBuffers, ColumnFullError
from .column_mask import column_mask
from .record_blocks import BatchError, RecordBlockReader, RecordBlocks, Scratch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

    from ...domain.reading.records import Projection
    from ..kernels.arrays import UInt8Array
    from .batch_headers import AbortedTransaction, BatchHeader, BatchIndex


@final
@dataclass(frozen=True, slots=True)
class FetchedRecords:
    """The part of a partition's log that a fetch returned, with an index of its batches."""

    data: UInt8Array
    index: BatchIndex
    aborted: tuple[AbortedTransaction, ...]

    @classmethod
    def of(cls, fetched: Any, aborted: Iterable[AbortedTransaction] = ()) -> FetchedRecords:
        """Take a buffer of bytes, which must not change until it is decoded."""
        view = memoryview(fetched)
        data = np.frombuffer(view, np.uint8)
        return cls(data, index_batches(view), tuple(aborted))

    @property
    def next_offset(self) -> int | None:
        """The offset after the last complete batch; ``None`` without one."""
        batches = self.index.batches
        return batches[-1].last_offset + 1 if batches else None

    @property
    def problem(self) -> str | None:
        """The fault in the bytes after the last batch; ``None`` if a batch is only truncated."""
        return status.REASONS.get(self.index.problem)


@final
class DecoderMemory:
    """The memory that decoders share."""

    def __init__(self) -> None:
        self.columns: BufferPool[ColumnBuffers] = BufferPool(ColumnBuffers)
        self.scratch: BufferPool[Scratch] = BufferPool(Scratch)


@final
class RecordDecoder:
    """Decodes fetched parts of one partition's log, in order.

    Checksums, lengths, counts and offsets are checked. Memory is bounded by the largest record that
    is allowed, not by the size that a batch decompresses to.
    """

    def __init__(
        self,
        partition: TopicPartition,
        projection: Projection,
        memory: DecoderMemory | None = None,
        *,
        check_crcs: bool = True,
        oversized: OversizedRecords | None = None,
    ) -> None:
        """Take the handling of records beyond limits; by default they are errors."""
        self._oversized = OversizedRecords(RecordLimits()) if oversized is None else oversized
        self._limits = self._oversized.limits.numbers
        memory = DecoderMemory() if memory is None else memory
        self._partition = partition
        self._mask = column_mask(projection)
        self._builder = BatchBuilder(partition, projection, memory.columns)
        self._reader = RecordBlockReader(memory.scratch, check_crcs=check_crcs)

    @property
    def next_offset(self) -> int:
        """The offset after the last record that was read; all before it were yielded, if visible.

        Meant for a caller that stops between the batches of ``decode``.
        """
        return int(self._builder.cursor[at.OFFSET]) + 1

    def decode(
        self, fetched: FetchedRecords, from_offset: int, until_offset: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield the visible records of ``[from_offset, until_offset)`` that were fetched.

        :raises CorruptBatchError: if bytes are corrupt. The records before them are yielded first.
        :raises MalformedTimestampError: if ``timestamp`` is projected and one does not fit.
        :raises OversizedRecordError: if a record exceeds a limit, and such are not skipped.
        """
        visible = self._visible(fetched, from_offset, until_offset)
        self._builder.reset()
        try:
            for blocks in self._reader.read(fetched.data, visible):
                yield from self._decode(blocks, from_offset, until_offset)
        except BatchError as error:
            yield from self._finish()
            raise CorruptBatchError(self._partition, error.offset, error.reason) from error
        yield from self._finish()
        next_offset = from_offset if fetched.next_offset is None else fetched.next_offset
        if fetched.problem and next_offset < until_offset:
            raise CorruptBatchError(self._partition, max(from_offset, next_offset), fetched.problem)

    def _decode(
        self, blocks: RecordBlocks, from_offset: int, until_offset: int
    ) -> Iterator[pa.RecordBatch]:
        builder = self._builder
        cursor = builder.cursor
        cursor[: at.OFFSET] = 0
        while True:
            result = blocks.kernel(
                blocks.data,
                blocks.rows,
                cursor,
                from_offset,
                until_offset,
                self._mask,
                self._limits,
                builder.buffers.arrays,
            )
            if result == status.DONE:
                return
            if result == status.NEEDS_INPUT:
                blocks.refill(cursor)
            elif result in status.FULL:
                yield from self._make_room(result, blocks)
            elif result in status.OVERSIZED:
                yield from self._pass_oversized(result, blocks, from_offset)
            elif result == status.BAD_TIMESTAMP:
                offset = int(cursor[at.OFFSET])
                # The kernel has read the record, and the yielded batch ends before it.
                cursor[at.OFFSET] -= 1
                yield from self._finish()
                raise MalformedTimestampError(self._partition, offset, int(cursor[at.TIMESTAMP]))
            else:
                raise BatchError(blocks.base_offset(cursor), status.REASONS[result])

    def _pass_oversized(
        self, result: int, blocks: RecordBlocks, from_offset: int
    ) -> Iterator[pa.RecordBatch]:
        """Skip the record that the kernel passed, or raise its error; earlier ones do not count."""
        cursor = self._builder.cursor
        offset, option = int(cursor[at.OFFSET]), status.OVERSIZED[result]
        if offset >= from_offset:
            if not self._oversized.limits.skips:
                cursor[at.OFFSET] -= 1
                yield from self._finish()
                size = int(cursor[at.SIZE])
                raise self._oversized.error(self._partition, offset, option, size)
            self._oversized.skip(self._partition, offset, option)
        blocks.discard(cursor)

    def _make_room(self, full: int, blocks: RecordBlocks) -> Iterator[pa.RecordBatch]:
        if self._builder.rows > 0:
            yield self._builder.finish()
            return
        try:
            self._builder.buffers.grow(full)
        except ColumnFullError as error:
            reason = "a field is larger than an Arrow column can be"
            raise BatchError(blocks.base_offset(self._builder.cursor), reason) from error

    def _finish(self) -> Iterator[pa.RecordBatch]:
        if self._builder.rows > 0:
            yield self._builder.finish()

    def _visible(
        self, fetched: FetchedRecords, from_offset: int, until_offset: int
    ) -> Iterator[BatchHeader]:
        """Yield the batches of a range, without control batches and aborted ones."""
        aborted = AbortedTransactions(fetched.aborted)
        next_offset = 0
        for batch in fetched.index.batches:
            # A wrapper message has the offset of its last inner message.
            first = max(next_offset, batch.base_offset) if batch.magic == MAGIC_2 else next_offset
            if first >= until_offset:
                return
            next_offset = batch.last_offset + 1
            self._reader.check(fetched.data, batch)
            if aborted.is_aborted(batch) or batch.is_control or batch.last_offset < from_offset:
                continue
            yield batch
