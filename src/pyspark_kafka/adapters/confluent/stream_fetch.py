"""One partition that a continuous query fetches without an end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from ...domain.options.option import INT64_MAX
from ...domain.reading.leader_epochs import NO_EPOCH
from ...ports.continuous import PolledRecords
from ..kafka_format import status
from .error_codes import OUT_OF_RANGE_ERRORS, UNKNOWN_PARTITION_ERRORS, UNREACHABLE_ERRORS
from .gather_kernel import EVENT
from .log_truncation import knows_epochs, require_same_log

if TYPE_CHECKING:
    from ...domain.topic_partition import TopicPartition
    from .connection import Connection
    from .consumer_handle import ConsumerHandle, FetchQueue
    from .message_gatherer import MessageGatherer

_TRANSIENT_ERRORS: Final = UNKNOWN_PARTITION_ERRORS | UNREACHABLE_ERRORS
"""librdkafka fetches on by itself once they have passed."""


@final
class StreamFetch:
    """Fetches one partition; it has to be started, and again after ``is_out_of_range``."""

    def __init__(
        self, partition: TopicPartition, gatherer: MessageGatherer, connection: Connection
    ) -> None:
        self.partition = partition
        self.position = 0
        self.is_out_of_range = False
        self.is_drained = True
        self._polled_from = 0
        self._gatherer = gatherer
        self._connection = connection
        self._queue: FetchQueue | None = None

    def start(self, handle: ConsumerHandle, file: int, position: int) -> None:
        """Fetch from an offset on, and write a byte to a file when there are messages."""
        # Elsewhere in the log, the epoch of what was read last says nothing.
        last_epoch = self._gatherer.last_epoch if position == self.position else NO_EPOCH
        self.stop(handle)
        self.position = position
        self._queue = handle.start(self.partition, position, last_epoch)
        self._queue.notify(file)
        self._gatherer.start(self._queue, position)
        # Messages may have come before the notification was requested.
        self.is_drained = False

    def stop(self, handle: ConsumerHandle) -> None:
        """Stop to fetch, and drop what was fetched."""
        queue, self._queue = self._queue, None
        self.is_drained, self.is_out_of_range = True, False
        if queue is not None:
            handle.stop(queue)
            self._gatherer.discard()

    def poll(self) -> PolledRecords | None:
        """Return a batch of the records that have come, or where offsets without any end.

        :raises MalformedTimestampError: if a timestamp overflows.
        :raises CorruptBatchError: if a record batch is corrupt.
        :raises OversizedRecordError: if a record exceeds a limit, and such are not skipped.
        :raises LogTruncatedError: if the log has other records than were polled.
        :raises KafkaRequestError: if the broker refuses the fetch.
        """
        if self._queue is None:
            return None
        self.is_drained = self._gather()
        next_offset = self._gatherer.next_offset
        if next_offset <= self.position:
            return None
        self._polled_from, self.position = self.position, next_offset
        records = self._gatherer.finish() if self._gatherer.has_rows else None
        return PolledRecords(self.partition, records, next_offset)

    def take_back(self) -> None:
        """Have the last poll passed nothing: its caller did not get what it returned."""
        self.position = self._polled_from

    def _gather(self) -> bool:
        """Gather until the batch is full; return whether no message is left."""
        gatherer = self._gatherer
        while True:
            result = gatherer.gather(INT64_MAX)
            if result == status.DONE:
                if not gatherer.take():
                    return True
            elif (result == EVENT and gatherer.pass_end()) or gatherer.skip_oversized(result):
                continue
            elif gatherer.has_rows:
                # An error of the next message is raised by the next call.
                return False
            elif result in status.FULL:
                gatherer.grow(result)
            elif not self._pass_error(result):
                return True

    def _pass_error(self, result: int) -> bool:
        """Raise what is wrong with the next message; return whether the fetch goes on."""
        self._gatherer.require_readable(result)
        error, offset = self._gatherer.next_event()
        if error.code() in OUT_OF_RANGE_ERRORS:
            # librdkafka reports it once and stops fetching.
            self.is_out_of_range = True
            if not knows_epochs(error):
                self._gatherer.forget_epoch()
            require_same_log(self.partition, self.position, error)
            return False
        if error.code() not in _TRANSIENT_ERRORS:
            raise self._connection.fetch_error(self.partition, error, offset)
        self._gatherer.pass_event()
        return True
