"""All partitions that a task of a continuous query reads, by one consumer of librdkafka's."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, final

from ...domain.errors import BrokerUnreachableError, PysparkKafkaError
from ...domain.options.option import clamp
from ...domain.reading.errors import OffsetOutOfRangeError, TopicRecreatedError
from ...domain.reading.record_limits import OversizedRecords
from ...ports.clock import Deadline
from ..fetching import Watermarks
from ..kafka_format.buffer_pool import BufferPool
from ..kafka_format.column_buffers import BatchBuilder, ColumnBuffers
from .connection import Connection
from .consumer_handle import ConsumerHandle
from .message_gatherer import MessageGatherer, consumer_mask
from .offset_fetcher import ConfluentOffsetFetcher
from .record_reader import FORCED, TUNED, response_limit
from .stream_fetch import StreamFetch
from .topic_ids import TopicIds, topic_debug

if TYPE_CHECKING:
    import ctypes
    from collections.abc import Collection, Iterator, Mapping

    from ...domain.options.source import SourceOptions
    from ...domain.reading.data_loss import DataLoss
    from ...domain.topic_partition import TopicPartition
    from ...ports.continuous import PolledRecords

_QUEUED_KILOBYTES: Final = 128 * 1_024
_MIN_QUEUED_KILOBYTES: Final = 1_024
_MAX_QUEUED_KILOBYTES: Final = 16 * 1_024
"""The limits of all partitions' queues together, and of each."""

_STREAM_TUNED: Final = {
    **TUNED,
    # While a fetch waits for records of some partitions, others whose queues were full wait for it.
    "fetch.wait.max.ms": "50",
    "socket.nagle.disable": "true",
}

_RETRY_S: Final = 0.2
"""How long to wait before an offset is fetched again that the broker said it does not hold."""

_PROBE_S: Final = 1.0
"""How long a broker has to answer after none was reached for the time-out."""


@final
class StreamConsumer:
    """Reads partitions without an end; ``file`` gets a byte when there is something to poll."""

    def __init__(self, library: ctypes.CDLL, options: SourceOptions, file: int) -> None:
        """Check the options; nothing is connected yet.

        :raises OptionsError: if librdkafka does not know a setting.
        """
        self._library = library
        self._file = file
        self._connection = Connection(options)
        self._oversized = OversizedRecords(options.record_limits)
        self._projection = options.projection
        self._watermarks = Watermarks(partial(ConfluentOffsetFetcher, options), options)
        self._memory: BufferPool[ColumnBuffers] = BufferPool(ColumnBuffers)
        self._handle: ConsumerHandle | None = None
        self._queued_kilobytes = 0
        self._fetches: dict[TopicPartition, StreamFetch] = {}
        self._starts: dict[TopicPartition, int] = {}
        """Where partitions are fetched from with the next poll."""

        self._topic_ids = TopicIds()
        self._recreated: set[TopicPartition] = set()
        self._retries: dict[TopicPartition, Deadline] = {}
        self._failures: dict[TopicPartition, PysparkKafkaError] = {}

    @property
    def is_drained(self) -> bool:
        """Whether ``poll`` has nothing to return until a byte is written."""
        return not self._failures and all(fetch.is_drained for fetch in self._fetches.values())

    @property
    def next_retry_s(self) -> float:
        """The seconds until ``poll`` has to be called again, even if nothing comes."""
        return min((retry.remaining for retry in self._retries.values()), default=_PROBE_S)

    def assign(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Read these partitions from their offsets on, whether they were read before or not."""
        if not offsets:
            return
        handle = self._handle = self._handle or self._new_handle(len(offsets))
        for partition, offset in offsets.items():
            self._forget(partition)
            if partition not in self._fetches:
                self._fetches[partition] = self._new_fetch(handle, partition)
            self._starts[partition] = offset

    def revoke(self, partitions: Collection[TopicPartition]) -> None:
        """Read partitions no more; unknown ones are ignored."""
        revoked = self._fetches.keys() & set(partitions)
        for partition in revoked:
            self._forget(partition)
            fetch = self._fetches.pop(partition)
            if self._handle is not None:
                fetch.stop(self._handle)
        topics = {partition.topic for partition in self._fetches}
        for topic in {partition.topic for partition in revoked} - topics:
            if self._handle is not None:
                self._handle.leave_topic(topic)

    def poll(self) -> list[PolledRecords]:
        """Return what has come, without waiting.

        :raises PysparkKafkaError: if a partition cannot be read on; nothing is lost by it.
        """
        if self._handle is None:
            return []
        self._raise_failures(self._handle)
        self._start_fetches(self._handle)
        found = [polled for fetch in self._fetches.values() if (polled := self._poll(fetch))]
        # A line that tells of a recreated topic comes before the first of its records.
        self._handle.handle_events(self._read_line)
        for partition, fetch in self._fetches.items():
            if fetch.is_out_of_range:
                self._retries.setdefault(partition, Deadline.after(0))
        for polled in found:
            if polled.partition in self._recreated:
                self._fetches[polled.partition].take_back()
        return [polled for polled in found if polled.partition not in self._recreated]

    def handle_events(self) -> None:
        """Handle errors and log lines; what was fetched waits.

        :raises PysparkKafkaError: if a login is refused, or no broker was reached for too long.
        """
        if self._handle is not None:
            self._require_brokers(self._handle)
            self._handle.handle_events(self._read_line)

    def take_skipped(self) -> Iterator[DataLoss]:
        """Yield reports of the records that were skipped since the last call."""
        return self._oversized.take_skipped()

    def renew(self) -> None:
        """Go on with a new consumer if certificates or keys were replaced."""
        if self._connection.is_outdated and self._handle is not None:
            self._replace(self._handle)

    def close(self) -> None:
        """Destroy the consumer; a second call does nothing."""
        handle, self._handle = self._handle, None
        self._fetches.clear()
        if handle is not None:
            handle.close()

    def _start_fetches(self, handle: ConsumerHandle) -> None:
        """Fetch what was assigned, with another consumer if its queues would take too much."""
        if self._starts and _queued_kilobytes(len(self._fetches)) < self._queued_kilobytes:
            handle = self._replace(handle)
        for partition in tuple(self._starts):
            self._fetches[partition].start(handle, self._file, self._starts[partition])
            del self._starts[partition]

    def _replace(self, handle: ConsumerHandle) -> ConsumerHandle:
        """Return a new consumer, which fetches from where each partition is with the next poll."""
        handle.close()
        for partition, fetch in self._fetches.items():
            fetch.stop(handle)
            if partition not in self._retries:
                self._starts.setdefault(partition, fetch.position)
        self._handle = None
        self._handle = self._new_handle(len(self._fetches))
        return self._handle

    def _new_handle(self, partitions: int) -> ConsumerHandle:
        connection = self._connection
        queued = self._queued_kilobytes = _queued_kilobytes(partitions)
        limit = response_limit(self._oversized.limits, connection.fetch_max_bytes)
        tuned = {**_STREAM_TUNED, **limit, "queued.max.messages.kbytes": str(queued)}
        config = connection.config(FORCED, tuned)
        handle = ConsumerHandle(self._library, connection, {**config, **topic_debug(config)})
        handle.notify(self._file)
        return handle

    def _new_fetch(self, handle: ConsumerHandle, partition: TopicPartition) -> StreamFetch:
        builder = BatchBuilder(partition, self._projection, self._memory)
        mask = consumer_mask(self._projection)
        gatherer = MessageGatherer(partition, builder, mask, handle.calls, self._oversized)
        return StreamFetch(partition, gatherer, self._connection)

    def _poll(self, fetch: StreamFetch) -> PolledRecords | None:
        try:
            return fetch.poll()
        except PysparkKafkaError as error:
            # What was taken of other partitions is returned first.
            self._failures[fetch.partition] = error
            return None

    def _raise_failures(self, handle: ConsumerHandle) -> None:
        if self._failures:
            raise self._failures.pop(next(iter(self._failures)))
        self._require_brokers(handle)
        for partition, retry in tuple(self._retries.items()):
            if retry.has_passed:
                self._retries[partition] = Deadline.after(_RETRY_S)
                self._retry(handle, self._fetches[partition])

    def _retry(self, handle: ConsumerHandle, fetch: StreamFetch) -> None:
        """Fetch again what the broker said it does not hold, if it holds it after all."""
        partition, position = fetch.partition, fetch.position
        watermarks = self._watermarks.attempt(partition)
        if watermarks is None:
            return
        earliest, latest = watermarks
        if partition in self._recreated:
            raise TopicRecreatedError(partition, position, earliest=earliest)
        if not earliest <= position <= latest:
            raise OffsetOutOfRangeError(partition, position, earliest=earliest, latest=latest)
        del self._retries[partition]
        fetch.start(handle, self._file, position)

    def _require_brokers(self, handle: ConsumerHandle) -> None:
        connection = self._connection
        if connection.down_s < connection.timeout_s:
            return
        if handle.reaches_broker(_PROBE_S):
            connection.remember_success()
            return
        cause = connection.last_error
        raise BrokerUnreachableError(connection.bootstrap_servers, connection.timeout_s, cause)

    def _read_line(self, line: str) -> None:
        topic = self._topic_ids.read_line(line)
        if topic is None or self._handle is None:
            return
        for partition, fetch in self._fetches.items():
            if partition.topic == topic:
                fetch.stop(self._handle)
                self._recreated.add(partition)
                self._retries[partition] = Deadline.after(0)

    def _forget(self, partition: TopicPartition) -> None:
        self._recreated.discard(partition)
        self._retries.pop(partition, None)
        self._failures.pop(partition, None)
        self._starts.pop(partition, None)


def _queued_kilobytes(partitions: int) -> int:
    """Return the limit of each queue: librdkafka knows none for all queues together.

    It halves with each doubling: few new consumers are needed while partitions are added.
    """
    doubled = 1 << max(0, partitions - 1).bit_length()
    return clamp(_MIN_QUEUED_KILOBYTES, _QUEUED_KILOBYTES // doubled, _MAX_QUEUED_KILOBYTES)
