"""All partitions that a task of a continuous query reads, by one consumer of librdkafka's."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, final

from ...domain.errors import (
    BrokerUnreachableError,
    OffsetOutOfRangeError,
    PysparkKafkaError,
    TopicRecreatedError,
    UnknownTopicError,
)
from ...domain.option_values import clamp
from ...domain.record_limits import OversizedRecords
from ...ports.deadline import Deadline
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

    from ...domain.data_loss import DataLoss
    from ...domain.options import SourceOptions
    from ...domain.topic_partition import TopicPartition
    from ...ports.stream_client import PolledRecords

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
        self._fetches: dict[TopicPartition, StreamFetch] = {}
        self._topic_ids = TopicIds()
        self._recreated: set[TopicPartition] = set()
        self._retries: dict[TopicPartition, Deadline] = {}
        self._failure: PysparkKafkaError | None = None

    @property
    def is_drained(self) -> bool:
        """Whether ``poll`` has nothing to return until a byte is written."""
        return not self._failure and all(fetch.is_drained for fetch in self._fetches.values())

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
            self._fetches[partition].start(handle, self._file, offset)

    def revoke(self, partitions: Collection[TopicPartition]) -> None:
        """Read partitions no more; unknown ones are ignored."""
        for partition in self._fetches.keys() & set(partitions):
            self._forget(partition)
            fetch = self._fetches.pop(partition)
            if self._handle is not None:
                fetch.stop(self._handle)

    def poll(self) -> list[PolledRecords]:
        """Return what has come, without waiting.

        :raises PysparkKafkaError: if a partition cannot be read on; nothing is lost by it.
        """
        if self._handle is None:
            return []
        self._raise_failures(self._handle)
        found = [polled for fetch in self._fetches.values() if (polled := self._poll(fetch))]
        # A line that tells of a recreated topic comes before the first of its records.
        self._handle.handle_events(self._read_line)
        for partition, fetch in self._fetches.items():
            if fetch.is_out_of_range:
                self._retries.setdefault(partition, Deadline.after(0))
        return [polled for polled in found if polled.partition not in self._recreated]

    def take_skipped(self) -> Iterator[DataLoss]:
        """Yield reports of the records that were skipped since the last call."""
        return self._oversized.take_skipped()

    def renew(self) -> None:
        """Go on with a new consumer if certificates or keys were replaced."""
        if self._connection.is_outdated and not self._retries:
            positions = {partition: fetch.position for partition, fetch in self._fetches.items()}
            self.close()
            self.assign(positions)

    def close(self) -> None:
        """Destroy the consumer; a second call does nothing."""
        handle, self._handle = self._handle, None
        self._fetches.clear()
        if handle is not None:
            handle.close()

    def _new_handle(self, partitions: int) -> ConsumerHandle:
        connection = self._connection
        queued = clamp(
            _MIN_QUEUED_KILOBYTES, _QUEUED_KILOBYTES // partitions, _MAX_QUEUED_KILOBYTES
        )
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
            self._failure = error
            return None

    def _raise_failures(self, handle: ConsumerHandle) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
        self._require_brokers(handle)
        for partition, retry in tuple(self._retries.items()):
            if retry.has_passed:
                self._retries[partition] = Deadline.after(_RETRY_S)
                self._retry(handle, self._fetches[partition])

    def _retry(self, handle: ConsumerHandle, fetch: StreamFetch) -> None:
        """Fetch again what the broker said it does not hold, if it holds it after all."""
        partition, position = fetch.partition, fetch.position
        try:
            earliest, latest = self._watermarks.of(partition)
        except UnknownTopicError:  # it may be created again
            return
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
