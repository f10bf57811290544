"""A partition that librdkafka's simple consumer fetches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from ...domain.security.rights import Operation, topic_right
from ...ports.deadline import Deadline
from ..fetching import Fetched, FetchedPartition
from ..kafka_format import status
from ..kafka_format.buffer_pool import BufferPool
from ..kafka_format.column_buffers import BatchBuilder, ColumnBuffers
from .error_codes import OUT_OF_RANGE_ERRORS, REFUSED_RESOURCES
from .gather_kernel import EVENT
from .log_truncation import knows_epochs, require_same_log
from .message_gatherer import MessageGatherer, consumer_mask
from .simple_consumer import SimpleConsumer

if TYPE_CHECKING:
    import ctypes
    from collections.abc import Mapping

    from ...domain.offset_range import OffsetRange
    from ...domain.projection import Projection
    from ...domain.record_limits import OversizedRecords
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
        oversized: OversizedRecords,
    ) -> None:
        """Create the consumer.

        :raises OptionsError: if librdkafka does not know or accept a setting.
        """
        self._connection = connection
        self._watermarks = watermarks
        self._consumer = SimpleConsumer(library, connection, connection.config(forced, tuned))
        self._oversized = oversized
        self._memory: BufferPool[ColumnBuffers] = BufferPool(ColumnBuffers)

    def partition(self, offset_range: OffsetRange, projection: Projection) -> FetchedPartition:
        partition = offset_range.partition
        builder = BatchBuilder(partition, projection, self._memory)
        gatherer = MessageGatherer(
            partition,
            builder,
            consumer_mask(projection),
            self._consumer.calls,
            self._oversized,
        )
        return ConsumedPartition(
            self._consumer, self._connection, offset_range, gatherer, self._watermarks
        )

    def handle_events(self) -> None:
        self._consumer.handle_events()

    def close(self) -> None:
        self._consumer.close()


@final
class ConsumedPartition(FetchedPartition):
    """Fetches one range; memory is bounded by librdkafka's queue and a few batches."""

    def __init__(
        self,
        consumer: SimpleConsumer,
        connection: Connection,
        offset_range: OffsetRange,
        gatherer: MessageGatherer,
        watermarks: Watermarks,
    ) -> None:
        self._watermarks = watermarks
        self._consumer = consumer
        self._connection = connection
        self._partition = offset_range.partition
        self._until_offset = offset_range.until_offset
        self._gatherer = gatherer
        self._is_topic_known = False

    def fetch(self, position: int) -> Fetched | None:
        gatherer = self._gatherer
        if not self._consumer.serves(self):
            queue = self._consumer.start(self, self._partition, position, gatherer.last_epoch)
            gatherer.start(queue, position)
        deadline = Deadline.after(FETCH_S)
        while True:
            result = gatherer.gather(self._until_offset)
            if result == status.DONE and not self._is_at_end and self._poll(deadline):
                continue
            if result == EVENT and gatherer.pass_end():
                continue
            if gatherer.skip_oversized(result):
                continue
            if result == status.DONE or gatherer.has_rows:
                if gatherer.next_offset == position:
                    self._require_topic()
                # An error of the next message is raised by the next fetch.
                return self._fetched()
            if result not in status.FULL:
                self._handle_error(result)
                return None
            gatherer.grow(result)

    def leave(self) -> None:
        self._consumer.stop(self)

    def watermarks(self) -> tuple[int, int]:
        return self._watermarks.of(self._partition)

    @property
    def _is_at_end(self) -> bool:
        return self._gatherer.next_offset >= self._until_offset

    def _poll(self, deadline: Deadline) -> bool:
        """Take the next messages out of the queue; return whether any came in time."""
        if deadline.has_passed:
            return False
        self._consumer.handle_events()
        return self._gatherer.take(POLL_S)

    def _require_topic(self) -> None:
        """Raise the error of a topic without records if the user may not see it."""
        if self._is_topic_known:
            return
        self._is_topic_known = True
        error = self._consumer.topic_error(FETCH_S)
        if error is not None and error.code() in REFUSED_RESOURCES:
            right = topic_right(Operation.DESCRIBE, self._partition.topic)
            raise self._connection.error(f"a fetch from {self._partition}", error, right)

    def _fetched(self) -> Fetched:
        batches = (self._gatherer.finish(),) if self._gatherer.has_rows else ()
        return Fetched(batches, self._gatherer.next_offset)

    def _handle_error(self, result: int) -> None:
        """Raise what is wrong with the next message; return if its offset is out of range.

        :raises LogTruncatedError: if the log has other records than were read.
        """
        self._gatherer.require_readable(result)
        error, offset = self._gatherer.next_event()
        if error.code() not in OUT_OF_RANGE_ERRORS:
            raise self._connection.fetch_error(self._partition, error, offset)
        if not knows_epochs(error):
            self._gatherer.forget_epoch()
        # librdkafka reports it once and stops fetching: the next fetch starts again.
        self.leave()
        require_same_log(self._partition, self._gatherer.next_offset, error)
