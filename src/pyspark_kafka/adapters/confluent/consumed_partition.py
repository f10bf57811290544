"""A partition that librdkafka's simple consumer fetches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from ...domain.errors import CorruptBatchError, MalformedTimestampError
from ...ports.deadline import Deadline
from ..fetching import Fetched, FetchedPartition
from ..kafka_format import decode_cursor as at
from ..kafka_format import status
from ..kafka_format.buffer_pool import BufferPool
from ..kafka_format.column_buffers import BatchBuilder, ColumnBuffers
from ..kafka_format.column_mask import column_mask
from .error_codes import OUT_OF_RANGE_ERRORS, PARTITION_EOF
from .gather_kernel import BAD_HEADERS, EVENT, TIMESTAMP_TYPE, gather
from .simple_consumer import SimpleConsumer

if TYPE_CHECKING:
    import ctypes
    from collections.abc import Mapping

    from confluent_kafka import KafkaError

    from ...domain.offset_range import OffsetRange
    from ...domain.projection import Projection
    from ..fetching import Watermarks
    from .connection import Connection

POLL_S: Final = 0.1
"""How long to wait for the next message before the rows are returned."""

FETCH_S: Final = 0.5
"""How long a batch that is not full waits for more messages at most."""


@final
class ConsumedPartitions:
    """A simple consumer, for one partition at a time."""

    def __init__(
        self,
        library: ctypes.CDLL,
        connection: Connection,
        forced: Mapping[str, str],
        tuned: Mapping[str, str],
        watermarks: Watermarks,
    ) -> None:
        """Create the consumer.

        :raises OptionsError: if librdkafka does not know or accept a setting.
        """
        self._connection = connection
        self._watermarks = watermarks
        self._consumer = SimpleConsumer(library, connection, connection.config(forced, tuned))
        self._memory: BufferPool[ColumnBuffers] = BufferPool(ColumnBuffers)

    def partition(self, offset_range: OffsetRange, projection: Projection) -> FetchedPartition:
        builder = BatchBuilder(offset_range.partition, projection, self._memory)
        return ConsumedPartition(
            self._consumer,
            self._connection,
            offset_range,
            builder,
            mask=consumer_mask(projection),
            watermarks=self._watermarks,
        )

    def close(self) -> None:
        self._consumer.close()


def consumer_mask(projection: Projection) -> int:
    """Return the columns that the kernel has to write, as bits."""
    return column_mask(projection) | TIMESTAMP_TYPE * ("timestampType" in projection)


@final
class ConsumedPartition(FetchedPartition):
    """Fetches one range; memory is bounded by librdkafka's queue and a few batches."""

    def __init__(
        self,
        consumer: SimpleConsumer,
        connection: Connection,
        offset_range: OffsetRange,
        builder: BatchBuilder,
        *,
        mask: int,
        watermarks: Watermarks,
    ) -> None:
        """Take a builder for the columns of ``consumer_mask``."""
        self._watermarks = watermarks
        self._consumer = consumer
        self._connection = connection
        self._partition = offset_range.partition
        self._until_offset = offset_range.until_offset
        self._mask = mask
        self._builder = builder
        self._count = 0
        # The first call on a machine compiles the kernel, which can exceed a short poll timeout.
        self._gather()

    def fetch(self, position: int) -> Fetched | None:
        if not self._consumer.serves(self):
            self._start(position)
        deadline = Deadline.after(FETCH_S)
        while True:
            result = self._gather()
            if result == status.DONE and not self._is_at_end and self._poll(deadline):
                continue
            if result == EVENT and self._pass_end():
                continue
            if result == status.DONE or self._builder.rows > 0:
                # An error of the next message is raised by the next fetch.
                return self._fetched()
            if result not in status.FULL:
                self._handle_error(result)
                return None
            self._builder.buffers.grow(result)

    def leave(self) -> None:
        self._consumer.stop(self)

    def watermarks(self) -> tuple[int, int]:
        return self._watermarks.of(self._partition)

    @property
    def _next_offset(self) -> int:
        return int(self._builder.cursor[at.OFFSET]) + 1

    @property
    def _is_at_end(self) -> bool:
        return self._next_offset >= self._until_offset

    @property
    def _next_event(self) -> tuple[KafkaError, int]:
        """The error and the offset of the next message."""
        return self._consumer.event(int(self._builder.cursor[at.RECORD]))

    def _start(self, position: int) -> None:
        self._consumer.start(self, self._partition, position)
        self._count = 0
        self._builder.cursor[at.RECORD] = 0
        self._builder.cursor[at.OFFSET] = position - 1

    def _poll(self, deadline: Deadline) -> bool:
        """Take the next messages out of the queue; return whether any came in time."""
        if deadline.has_passed:
            return False
        self._count = self._consumer.poll(POLL_S)
        self._builder.cursor[at.RECORD] = 0
        return self._count > 0

    def _gather(self) -> int:
        result: int = gather(
            self._consumer.messages[: self._count],
            self._builder.cursor,
            self._until_offset,
            self._mask,
            self._builder.buffers.arrays,
            self._consumer.calls,
        )
        return result

    def _fetched(self) -> Fetched:
        batches = (self._builder.finish(),) if self._builder.rows > 0 else ()
        return Fetched(batches, self._next_offset)

    def _pass_end(self) -> bool:
        """Take the next message if it is the end of the partition."""
        place = int(self._builder.cursor[at.RECORD])
        error, offset = self._next_event
        if error.code() != PARTITION_EOF:
            return False
        # A lagging replica may end before offsets that were already read.
        self._builder.cursor[at.OFFSET] = max(self._builder.cursor[at.OFFSET], offset - 1)
        self._builder.cursor[at.RECORD] += 1
        self._consumer.drop(place)
        return True

    def _handle_error(self, result: int) -> None:
        """Raise what is wrong with the next message; return if its offset is out of range."""
        cursor = self._builder.cursor
        if result == status.BAD_TIMESTAMP:
            timestamp = int(cursor[at.TIMESTAMP])
            raise MalformedTimestampError(self._partition, self._next_event[1], timestamp)
        if result == BAD_HEADERS:
            reason = "a record's headers cannot be read"
            raise CorruptBatchError(self._partition, self._next_event[1], reason)
        error, _ = self._next_event
        if error.code() not in OUT_OF_RANGE_ERRORS:
            raise self._connection.error(f"a fetch from {self._partition}", error)
        # librdkafka reports it once and stops fetching: the next fetch starts again.
        self.leave()
