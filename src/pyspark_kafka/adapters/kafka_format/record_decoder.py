"""Fetched stretches of a log to Arrow batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

import numpy as np

from ...domain.errors import CorruptBatchError, MalformedTimestampError
from ...domain.projection import ALL_COLUMNS
from ...domain.topic_partition import TopicPartition
from . import block_fields, status
from . import decode_cursor as at
from .aborted_transactions import AbortedTransactions
from .batch_headers import MAGIC_2, index_batches
from .buffer_pool import BufferPool
from .column_buffers import BatchBuilder, ColumnBuffers, ColumnFullError
from .column_mask import column_mask
from .decode_kernel import decode_records
from .record_blocks import SCRATCH, BatchError, RecordBlockReader, RecordBlocks, read_only

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

    from ...domain.projection import Projection
    from .aborted_transactions import AbortedTransaction
    from .batch_headers import BatchHeader, BatchIndex

    Bytes: TypeAlias = np.ndarray[Any, np.dtype[np.uint8]]

_FULL: Final = range(status.ROWS_FULL, status.HEADER_VALUES_FULL + 1)


@final
@dataclass(frozen=True, slots=True)
class FetchedRecords:
    """What a fetch brought of a partition's log: its bytes, and where the batches in it are."""

    data: Bytes
    index: BatchIndex
    aborted: tuple[AbortedTransaction, ...]

    @classmethod
    def of(cls, fetched: Any, aborted: Iterable[AbortedTransaction] = ()) -> FetchedRecords:
        """Take a buffer of bytes, which must not change until the stretch is decoded."""
        view = memoryview(fetched)
        data = read_only(np.frombuffer(view, np.uint8))
        return cls(data, index_batches(view), tuple(aborted))

    @property
    def next_offset(self) -> int | None:
        """The offset behind the last whole batch; ``None`` if there is none."""
        batches = self.index.batches
        return batches[-1].last_offset + 1 if batches else None

    @property
    def problem(self) -> str | None:
        """What is wrong with the bytes behind the last batch, if it is not only cut off."""
        return status.REASONS.get(self.index.problem)


@final
class DecoderMemory:
    """What decoders write into: each takes what no other has."""

    def __init__(self) -> None:
        self.columns: BufferPool[ColumnBuffers] = BufferPool(ColumnBuffers)
        self.scratch: BufferPool[Bytes] = BufferPool(lambda: np.empty(SCRATCH, np.uint8))


@final
class RecordDecoder:
    """Decodes stretches of one partition's log, in order.

    What the bytes say is checked: checksums, lengths, counts, offsets. Memory is bounded by the
    largest record, whatever a batch decompresses to.
    """

    def __init__(
        self,
        partition: TopicPartition,
        projection: Projection,
        memory: DecoderMemory | None = None,
        *,
        check_crcs: bool = True,
    ) -> None:
        memory = DecoderMemory() if memory is None else memory
        self._partition = partition
        self._wanted = column_mask(projection)
        self._builder = BatchBuilder(partition, projection, memory.columns)
        self._reader = RecordBlockReader(memory.scratch, check_crcs=check_crcs)

    def decode(
        self, stretch: FetchedRecords, from_offset: int, until_offset: int
    ) -> Iterator[pa.RecordBatch]:
        """Give the visible records of ``[from_offset, until_offset)`` that the stretch holds.

        :raises CorruptBatchError: if bytes are not what Kafka writes. What stands before them
            has been handed out.
        :raises MalformedTimestampError: if ``timestamp`` is projected and one does not fit.
        """
        visible = self._visible(stretch, from_offset, until_offset)
        self._builder.begin()
        try:
            for sections in self._reader.sections(stretch.data, visible):
                yield from self._decode(sections, from_offset, until_offset)
        except BatchError as error:
            yield from self._rest()
            raise CorruptBatchError(self._partition, error.offset, error.reason) from error
        yield from self._rest()
        behind = from_offset if stretch.next_offset is None else stretch.next_offset
        if stretch.problem and behind < until_offset:
            raise CorruptBatchError(self._partition, max(from_offset, behind), stretch.problem)

    def _decode(
        self, sections: RecordBlocks, from_offset: int, until_offset: int
    ) -> Iterator[pa.RecordBatch]:
        builder = self._builder
        cursor = builder.cursor
        cursor[: at.OFFSET] = 0
        while True:
            result = sections.kernel(
                sections.data,
                sections.table,
                cursor,
                from_offset,
                until_offset,
                self._wanted,
                builder.buffers.arrays,
            )
            if result == status.DONE:
                return
            if result == status.MORE:
                sections.refill(cursor)
            elif result in _FULL:
                yield from self._make_room(result, sections)
            elif result == status.BAD_TIMESTAMP:
                yield from self._rest()
                raise MalformedTimestampError(
                    self._partition, int(cursor[at.OFFSET]), int(cursor[at.TIMESTAMP])
                )
            else:
                raise BatchError(sections.offset(cursor), status.REASONS[result])

    def _make_room(self, full: int, sections: RecordBlocks) -> Iterator[pa.RecordBatch]:
        if self._builder.rows > 0:
            yield self._builder.finish()
            return
        try:
            self._builder.buffers.grow(full)
        except ColumnFullError as error:
            reason = "a field has more bytes than an Arrow column"
            raise BatchError(sections.offset(self._builder.cursor), reason) from error

    def _rest(self) -> Iterator[pa.RecordBatch]:
        if self._builder.rows > 0:
            yield self._builder.finish()

    def _visible(
        self, stretch: FetchedRecords, from_offset: int, until_offset: int
    ) -> Iterator[BatchHeader]:
        """Give the batches of a range, without control batches and those that were aborted."""
        aborted = AbortedTransactions(stretch.aborted)
        behind = 0
        for batch in stretch.index.batches:
            # Messages that are compressed in another one come before its offset.
            first = max(behind, batch.base_offset) if batch.magic == MAGIC_2 else behind
            if first >= until_offset:
                return
            behind = batch.last_offset + 1
            self._reader.check(stretch.data, batch)
            if aborted.is_aborted(batch) or batch.is_control or batch.last_offset < from_offset:
                continue
            yield batch


def load_kernels() -> None:
    """Load the kernel of every read from its cache, or compile it for two to three seconds."""
    builder = BatchBuilder(TopicPartition("none", 0), ALL_COLUMNS)
    nothing = read_only(np.empty(0, np.uint8))
    no_blocks = np.empty((0, block_fields.FIELDS), np.int64)
    decode_records(nothing, no_blocks, builder.cursor, 0, 0, 0, builder.buffers.arrays)
