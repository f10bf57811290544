"""librdkafka's messages of one partition, gathered into Arrow batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from ...domain.reading.errors import CorruptBatchError, MalformedTimestampError
from ...domain.reading.leader_epochs import NO_EPOCH
from ..kafka_format import decode_cursor as at
from ..kafka_format import status
from ..kafka_format.column_buffers import BatchBuilder
from ..kafka_format.column_mask import column_mask
from .error_codes import PARTITION_EOF
from .gather_kernel import BAD_HEADERS, EVENT, TIMESTAMP_TYPE, gather
from .log_lines import knows_epochs, require_same_log

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa
    from confluent_kafka import KafkaError

    from ...domain.reading.record_limits import OversizedRecords
    from ...domain.reading.records import Projection
    from ...domain.topic_partition import TopicPartition
    from ..kafka_format.column_buffers import BufferPool, ColumnBuffers
    from ..kernels.arrays import UInt64Array
    from .consumer_handle import FetchQueue


@final
class MessageGatherer:
    """Gathers the messages of one fetch at a time; ``start`` comes first."""

    def __init__(
        self,
        partition: TopicPartition,
        projection: Projection,
        memory: BufferPool[ColumnBuffers],
        calls: UInt64Array,
        oversized: OversizedRecords,
    ) -> None:
        """Take the memory that a reader's gatherers share, and a consumer's functions."""
        self._oversized = oversized
        self._limits = oversized.limits.numbers
        self._partition = partition
        self._builder = BatchBuilder(partition, projection, memory)
        self._mask = column_mask(projection) | TIMESTAMP_TYPE * ("timestampType" in projection)
        self._calls = calls
        self._queue: FetchQueue | None = None
        self._count = 0

    @property
    def next_offset(self) -> int:
        """The offset after everything that was passed."""
        return int(self._builder.cursor[at.OFFSET]) + 1

    @property
    def last_epoch(self) -> int:
        """The leader epoch of the last record that was taken out of the queue; -1 if unknown."""
        return NO_EPOCH if self._queue is None else self._queue.last_epoch

    def forget_epoch(self) -> None:
        """Continue without a leader epoch, which no leader could compare."""
        self._fetch_queue.last_epoch = NO_EPOCH

    @property
    def has_rows(self) -> bool:
        """Whether there are rows that no batch holds yet."""
        return self._builder.rows > 0

    def start(self, queue: FetchQueue, position: int) -> None:
        """Gather from a new queue, whose messages begin at an offset."""
        self._queue = queue
        self._count = 0
        self._builder.cursor[at.RECORD] = 0
        self._builder.cursor[at.OFFSET] = position - 1

    def take(self, timeout_s: float = 0.0) -> bool:
        """Take the next messages out of the queue; return whether any came in time."""
        self._count = self._fetch_queue.take(timeout_s)
        self._builder.cursor[at.RECORD] = 0
        return self._count > 0

    def gather(self, until_offset: int, take: Callable[[], bool]) -> int:
        """Append the messages before an offset to the rows, and return why that ended.

        It is ``DONE`` at that offset, or once ``take`` has taken no more messages. Otherwise it is
        the kind of the next message, or the column that is full.
        """
        while True:
            messages = self._fetch_queue.messages[: self._count]
            result = self._gather_from(messages, until_offset)
            if result == status.DONE:
                if self.next_offset >= until_offset or not take():
                    return result
            elif result in status.FULL and not self.has_rows:
                self._builder.buffers.grow(result)
            elif result != EVENT or not self._pass_end():
                return result

    def finish(self) -> pa.RecordBatch:
        """Return the rows as a batch, and start the next one."""
        return self._builder.finish()

    def discard(self) -> None:
        """Forget the rows that no batch holds yet."""
        self._builder.reset()

    def next_event(self) -> tuple[KafkaError, int]:
        """Return the error that the next message carries, and its offset."""
        return self._fetch_queue.event(int(self._builder.cursor[at.RECORD]))

    def pass_event(self) -> None:
        """Take the next message, which is not a record."""
        cursor = self._builder.cursor
        self._fetch_queue.drop(int(cursor[at.RECORD]))
        cursor[at.RECORD] += 1

    def _pass_end(self) -> bool:
        """Take the next message if it is the end of the partition."""
        error, offset = self.next_event()
        if error.code() != PARTITION_EOF:
            return False
        cursor = self._builder.cursor
        # A lagging replica may end before offsets that were already read.
        cursor[at.OFFSET] = max(cursor[at.OFFSET], offset - 1)
        self.pass_event()
        return True

    def skip_oversized(self, result: int) -> bool:
        """Skip the next message if it exceeds a limit and the options allow skipping."""
        option = status.OVERSIZED.get(result)
        if option is None or not self._oversized.limits.skips:
            return False
        _, offset = self.next_event()
        self._oversized.skip(self._partition, offset, option)
        self._builder.cursor[at.OFFSET] = offset
        self.pass_event()
        return True

    def require_event(self, result: int) -> tuple[KafkaError, int]:
        """Return the error that the next message carries, and its offset, or raise one for it.

        :raises MalformedTimestampError: if its timestamp overflows.
        :raises CorruptBatchError: if its headers are corrupt.
        :raises OversizedRecordError: if it exceeds a limit.
        """
        if result in status.OVERSIZED:
            size = int(self._builder.cursor[at.SIZE])
            _, offset = self.next_event()
            raise self._oversized.error(self._partition, offset, status.OVERSIZED[result], size)
        if result == status.BAD_TIMESTAMP:
            timestamp = int(self._builder.cursor[at.TIMESTAMP])
            raise MalformedTimestampError(self._partition, self.next_event()[1], timestamp)
        if result == BAD_HEADERS:
            reason = "a record's headers cannot be read"
            raise CorruptBatchError(self._partition, self.next_event()[1], reason)
        return self.next_event()

    def require_same_log(self, error: KafkaError, offset: int) -> None:
        """Raise an error if the log diverged from the records that were read up to an offset.

        :raises LogTruncatedError: if it does.
        """
        if not knows_epochs(error):
            self.forget_epoch()
        require_same_log(self._partition, offset, error)

    @property
    def _fetch_queue(self) -> FetchQueue:
        if self._queue is None:
            raise RuntimeError("no fetch was started")
        return self._queue

    def _gather_from(self, messages: UInt64Array, until_offset: int) -> int:
        builder = self._builder
        arrays = builder.buffers.arrays
        result: int = gather(
            messages, builder.cursor, until_offset, self._mask, self._limits, arrays, self._calls
        )
        return result
