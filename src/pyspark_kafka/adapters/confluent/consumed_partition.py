"""A partition that librdkafka's simple consumer fetches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from ...domain.reading.errors import TopicRecreatedError
from ...domain.security.rights import Operation, topic_right
from ...ports.clock import Deadline
from ..fetching import Fetched, FetchedPartition
from ..kafka_format import status
from ..kafka_format.buffer_pool import BufferPool
from ..kafka_format.column_buffers import BatchBuilder, ColumnBuffers
from .error_codes import OUT_OF_RANGE_ERRORS, REFUSED_RESOURCES
from .fetches_ahead import MAX_OFFSETS, settings_ahead
from .gather_kernel import EVENT
from .log_truncation import knows_epochs, require_same_log
from .message_gatherer import MessageGatherer, consumer_mask
from .simple_consumer import SimpleConsumer

if TYPE_CHECKING:
    import ctypes
    from collections.abc import Collection, Mapping

    from ...domain.reading.ranges import OffsetRange
    from ...domain.reading.record_limits import OversizedRecords
    from ...domain.reading.records import Projection
    from ..fetching import Watermarks
    from .connection import Connection

POLL_S: Final = 0.1
"""How long to wait for the next message before the rows are returned."""

FETCH_S: Final = 0.5
"""How long a batch that is not full waits for more messages at most."""


@final
class ConsumedPartitions:
    """Two simple consumers, which are created at first use.

    One fetches one range at a time. The other fetches many small ranges at once.
    """

    def __init__(
        self,
        library: ctypes.CDLL,
        connection: Connection,
        forced: Mapping[str, str],
        tuned: Mapping[str, str],
        watermarks: Watermarks,
        oversized: OversizedRecords,
    ) -> None:
        self._library = library
        self._connection = connection
        self._config = connection.config(forced, tuned)
        self._watermarks = watermarks
        self._oversized = oversized
        self._memory: BufferPool[ColumnBuffers] = BufferPool(ColumnBuffers)
        self._large: SimpleConsumer | None = None
        self._small: SimpleConsumer | None = None
        self._expected: frozenset[OffsetRange] = frozenset()

    def expect(self, ranges: Collection[OffsetRange]) -> None:
        """Fetch those that are small ahead, if there are several; forget those of before."""
        small = [one for one in ranges if one.size <= MAX_OFFSETS]
        self._expected = frozenset(small if len(small) > 1 else ())
        if self._small is None and self._expected:
            self._small = self._consumer(settings_ahead(self._config))
        if self._small is not None:
            self._small.expect(small)

    def partition(self, offset_range: OffsetRange, projection: Projection) -> FetchedPartition:
        """Return a client for a range.

        :raises OptionsError: if librdkafka does not know or accept a setting.
        """
        consumer = self._consumer_of(offset_range)
        partition = offset_range.partition
        builder = BatchBuilder(partition, projection, self._memory)
        gatherer = MessageGatherer(
            partition, builder, consumer_mask(projection), consumer.calls, self._oversized
        )
        return ConsumedPartition(
            consumer, self._connection, offset_range, gatherer, self._watermarks
        )

    def handle_events(self) -> None:
        for consumer in self._consumers:
            consumer.handle_events()

    def close(self) -> None:
        for consumer in self._consumers:
            consumer.close()

    @property
    def _consumers(self) -> list[SimpleConsumer]:
        return [consumer for consumer in (self._large, self._small) if consumer is not None]

    def _consumer_of(self, offset_range: OffsetRange) -> SimpleConsumer:
        if self._small is not None and offset_range in self._expected:
            return self._small
        if self._large is None:
            self._large = self._consumer(self._config)
        return self._large

    def _consumer(self, config: Mapping[str, str]) -> SimpleConsumer:
        return SimpleConsumer(self._library, self._connection, config)


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
        self._recreations = 0
        self._has_read = False

    def fetch(self, position: int) -> Fetched | None:
        gatherer = self._gatherer
        if not self._consumer.serves(self):
            self._start(position)
        deadline = Deadline.after(FETCH_S)
        while True:
            result = gatherer.gather(self._until_offset)
            if result == status.DONE and not self._is_at_end and self._poll(deadline):
                continue
            if result == EVENT and gatherer.pass_end():
                continue
            if self._is_recreated():
                return self._leave_topic(position)
            if gatherer.skip_oversized(result):
                continue
            if result == status.DONE or gatherer.has_rows:
                if gatherer.next_offset == position:
                    self._require_topic()
                # An error of the next message is raised by the next fetch.
                return self._fetched(position)
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

    def _start(self, position: int) -> None:
        consumer, gatherer = self._consumer, self._gatherer
        if not self._has_read:
            # What is read from here on must be of one topic, also if another range comes between.
            self._recreations = consumer.recreations(self._partition.topic)
        queue = consumer.start(self, self._partition, position, gatherer.last_epoch)
        gatherer.start(queue, position)

    def _is_recreated(self) -> bool:
        """Return whether rows that were gathered may be of another topic than those before."""
        return self._consumer.recreations(self._partition.topic) != self._recreations

    def _leave_topic(self, position: int) -> Fetched:
        """Forget what may be of two topics, and read on if nothing of the range was read.

        :raises TopicRecreatedError: if the old topic's records of the range were read.
        """
        if self._has_read:
            earliest, _ = self.watermarks()
            raise TopicRecreatedError(self._partition, position, earliest=earliest)
        self._gatherer.discard()
        self._gatherer.forget_epoch()
        self.leave()
        return Fetched((), position)

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

    def _fetched(self, position: int) -> Fetched:
        batches = (self._gatherer.finish(),) if self._gatherer.has_rows else ()
        next_offset = self._gatherer.next_offset
        self._has_read = self._has_read or next_offset > position
        return Fetched(batches, next_offset)

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
