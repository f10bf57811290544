"""All partitions that a task of a continuous query reads, by one consumer of librdkafka's."""

from __future__ import annotations

import logging
import time
from functools import partial
from typing import TYPE_CHECKING, Final, final

from confluent_kafka import KafkaException

from ...domain.errors import PysparkKafkaError
from ...domain.options.option import INT64_MAX, clamp
from ...domain.reading.errors import OffsetOutOfRangeError, TopicRecreatedError
from ...domain.reading.leader_epochs import NO_EPOCH
from ...domain.reading.record_limits import OversizedRecords
from ...ports.clock import Deadline
from ...ports.continuous import PolledRecords
from ..fetching import LeaderlessPartitions, Watermarks
from ..kafka_format import status
from ..kafka_format.column_buffers import BufferPool, ColumnBuffers
from .cluster import Cluster
from .cluster_settings import number_of
from .consumer_handle import FORCED, RACK, TUNED, ConsumerHandle, response_limit
from .error_codes import OUT_OF_RANGE_ERRORS, UNKNOWN_PARTITION_ERRORS, UNREACHABLE_ERRORS
from .log_lines import TopicIds, topic_debug
from .message_gatherer import MessageGatherer
from .offset_fetcher import ConfluentOffsetFetcher
from .settings import SOCKET_TIMEOUT_MS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from ...domain.options.source import SourceOptions
    from ...domain.reading.data_loss import DataLoss
    from ...domain.topic_partition import TopicPartition
    from .cluster_errors import ClusterErrors
    from .consumer_handle import FetchQueue

log = logging.getLogger(__name__)

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
"""How long to wait before refetching an offset that the broker reported as out of range."""

_LEADERS_S: Final = 600.0
"""How long to fetch from leaders only, once a fetch has returned nothing of the log."""

_PROBE_S: Final = 1.0
"""How long a broker has to answer after nothing came for the time-out, and the pause after that."""


_TRANSIENT_ERRORS: Final = UNKNOWN_PARTITION_ERRORS | UNREACHABLE_ERRORS
"""librdkafka continues fetching by itself once they have passed."""


@final
class StreamFetcher:
    """Reads partitions until they are revoked; ``file`` gets a byte when any has records."""

    def __init__(self, options: SourceOptions, file: int) -> None:
        """Check the options; nothing is connected yet.

        :raises OptionsError: if librdkafka does not know a setting.
        """
        self._file = file
        self._cluster = Cluster(options)
        self._oversized = OversizedRecords(options.record_limits)
        self._projection = options.projection
        self._watermarks = Watermarks(partial(ConfluentOffsetFetcher, options), options)
        config = self._cluster.settings.current()
        self._is_in_rack = bool(config.get(RACK))
        request_ms = number_of(config, "socket.timeout.ms", SOCKET_TIMEOUT_MS)
        self._patience_s = max(self._cluster.settings.timeout_s, request_ms / 1_000)
        self._memory: BufferPool[ColumnBuffers] = BufferPool(ColumnBuffers)
        self._handle: ConsumerHandle | None = None
        self._queued_kilobytes = 0
        self._fetches: dict[TopicPartition, PartitionFetch] = {}
        self._starts: dict[TopicPartition, int] = {}
        """Where partitions are fetched from with the next poll."""

        self._topic_ids = TopicIds()
        self._recreated: set[TopicPartition] = set()
        self._retries: dict[TopicPartition, Deadline] = {}
        self._failures: dict[TopicPartition, PysparkKafkaError] = {}
        self._outages = LeaderlessPartitions(self._cluster.settings.timeout_s)
        self._leaders_only = Deadline.after(0)
        """Until then leaders are asked without the rack, so that they name no replica."""

        self._has_rack = False
        self._next_look = Deadline.after(0)
        """When to look for partitions from which nothing comes."""

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
        handle = self._handle = self._open_handle() or self._new_handle(len(offsets))
        for partition, offset in offsets.items():
            self._forget(partition)
            if partition not in self._fetches:
                self._fetches[partition] = self._new_fetch(handle, partition)
            self._fetches[partition].note_progress()
            self._starts[partition] = offset

    def revoke(self, partitions: Collection[TopicPartition]) -> None:
        """Stop reading partitions; unknown ones are ignored."""
        revoked = self._fetches.keys() & set(partitions)
        for partition in revoked:
            self._forget(partition)
            fetch = self._fetches.pop(partition)
            if self._handle is not None:
                fetch.stop(self._handle)
        handle = self._open_handle()
        topics = {partition.topic for partition in self._fetches}
        for topic in {partition.topic for partition in revoked} - topics:
            if handle is not None:
                handle.handle.leave_topic(topic)

    def poll(self) -> list[PolledRecords]:
        """Return the records that have come, without waiting.

        :raises PysparkKafkaError: if a partition cannot be read further; no record is lost by the
            error.
        """
        handle = self._open_handle()
        if handle is None:
            return []
        self._raise_failures(handle)
        handle = self._start_fetches(handle)
        found = [polled for fetch in self._fetches.values() if (polled := self._poll(fetch))]
        # The line about a recreated topic comes before the first of the topic's records.
        handle.handle_events(self._read_line)
        for partition, fetch in self._fetches.items():
            if fetch.is_out_of_range:
                self._retries.setdefault(partition, Deadline.after(0))
        if self._next_look.has_passed and handle.is_open:
            self._look_for_silence(handle)
        for polled in found:
            if polled.partition in self._recreated:
                self._fetches[polled.partition].take_back()
        return [polled for polled in found if polled.partition not in self._recreated]

    def handle_events(self) -> None:
        """Handle errors and log lines; fetched records wait.

        :raises PysparkKafkaError: if a login is refused, or no broker was reached for too long.
        """
        handle = self._open_handle()
        if handle is not None:
            self._require_brokers(handle)
            handle.handle_events(self._read_line)

    def take_skipped(self) -> Iterator[DataLoss]:
        """Yield reports of the records that were skipped since the last call."""
        return self._oversized.take_skipped()

    def renew(self) -> None:
        """Continue with a new consumer if the settings changed: certificates, keys, or the rack."""
        is_outdated = self._cluster.settings.is_outdated or self._has_rack is not self._names_rack
        if is_outdated and self._handle is not None:
            self._replace(self._handle)

    def close(self) -> None:
        """Destroy the consumer; a second call does nothing."""
        handle, self._handle = self._handle, None
        self._fetches.clear()
        if handle is not None:
            handle.close()

    @property
    def _names_rack(self) -> bool:
        """Whether leaders may name replicas: librdkafka goes back to one that fails."""
        return self._is_in_rack and self._leaders_only.has_passed

    def _open_handle(self) -> ConsumerHandle | None:
        """Return the consumer; replace one that was closed since a fetch did not end in time."""
        if self._handle is not None and not self._handle.is_open:
            self._replace(self._handle)
        return self._handle

    def _start_fetches(self, handle: ConsumerHandle) -> ConsumerHandle:
        """Fetch assigned partitions, with a new consumer if the settings have changed."""
        if self._starts and (
            _queued_kilobytes(len(self._fetches)) < self._queued_kilobytes
            or self._has_rack is not self._names_rack
        ):
            handle = self._replace(handle)
        for partition in tuple(self._starts):
            self._fetches[partition].start(handle, self._file, self._starts[partition])
            del self._starts[partition]
        return handle

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
        settings = self._cluster.settings
        queued = self._queued_kilobytes = _queued_kilobytes(partitions)
        limit = response_limit(self._oversized.limits, settings.fetch_max_bytes)
        tuned = {**_STREAM_TUNED, **limit, "queued.max.messages.kbytes": str(queued)}
        config = settings.config(FORCED, tuned)
        self._has_rack = self._names_rack
        if not self._has_rack:
            config[RACK] = ""
        handle = ConsumerHandle(self._cluster, {**config, **topic_debug(config)})
        handle.handle.notify(self._file)
        return handle

    def _new_fetch(self, handle: ConsumerHandle, partition: TopicPartition) -> PartitionFetch:
        memory, calls = self._memory, handle.calls
        gatherer = MessageGatherer(partition, self._projection, memory, calls, self._oversized)
        return PartitionFetch(partition, gatherer, self._cluster.errors)

    def _poll(self, fetch: PartitionFetch) -> PolledRecords | None:
        try:
            return fetch.poll()
        except PysparkKafkaError as error:
            # Records that were taken from other partitions are returned first.
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

    def _retry(self, handle: ConsumerHandle, fetch: PartitionFetch) -> None:
        """Refetch an offset that the broker reported as out of range, if it is not."""
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

    def _look_for_silence(self, handle: ConsumerHandle) -> None:
        """Ask for the ends of partitions from which nothing came for the time-out.

        librdkafka reports no broker that leaves fetches unanswered while another broker answers.
        The next poll raises errors.
        """
        timeout_s = self._cluster.settings.timeout_s
        # Many partitions have one request, for which a client is created.
        self._next_look = Deadline.after(timeout_s / 2)
        self._note_outages(handle, timeout_s)
        asked = [
            partition
            for partition, fetch in self._fetches.items()
            if fetch.silent_s >= timeout_s
            and partition not in self._outages
            and partition not in self._retries
        ]
        latest: Mapping[TopicPartition, int] | None = {}
        try:
            if asked:
                latest = self._watermarks.attempt_latest(asked)
        except PysparkKafkaError as error:
            self._failures[asked[0]] = error
            return
        if latest is None or self._outages:
            self._next_look = Deadline.after(_PROBE_S)
        for partition, end in (latest or {}).items():
            self._check_silence(self._fetches[partition], end)

    def _note_outages(self, handle: ConsumerHandle, timeout_s: float) -> None:
        """Note which partitions have no leader, if a broker answers.

        librdkafka follows the leaders that the answer names.
        """
        answer = Deadline.after(_PROBE_S)
        silent = [
            (partition, fetch)
            for partition, fetch in self._fetches.items()
            if partition in self._outages or fetch.silent_s >= timeout_s
        ]
        for topic in {partition.topic for partition, _ in silent}:
            try:
                metadata = handle.handle.topic_metadata(topic, answer.remaining)
            except KafkaException:
                return
            led = frozenset(metadata.led)
            for partition, fetch in silent:
                if partition.topic != topic or partition.partition >= metadata.partitions:
                    continue
                if partition.partition not in led:
                    self._outages.add(partition, time.monotonic() - fetch.silent_s)
                elif partition in self._outages:
                    self._outages.remove(partition)
                    fetch.note_progress()

    def _check_silence(self, fetch: PartitionFetch, end: int) -> None:
        """Restart a fetch, once, that returns nothing although the log continues."""
        partition, position = fetch.partition, fetch.position
        was_behind, fetch.known_end = fetch.known_end > position, end
        if end <= position:
            fetch.note_progress()
        elif not was_behind or fetch.silent_s < self._patience_s:
            # The record may just have come, or a large response be on its way.
            return
        elif fetch.is_restarted:
            reason = f"fetches of {partition} return nothing from offset {position} on"
            self._failures[partition] = self._cluster.errors.unreachable(reason)
        else:
            log.warning(
                "Nothing was fetched from %s for %.0f s, at offset %d of %d: "
                "the fetch is started again",
                partition,
                fetch.silent_s,
                position,
                end,
            )
            fetch.is_restarted = True
            self._starts[partition] = position
            self._leaders_only = Deadline.after(_LEADERS_S)

    def _require_brokers(self, handle: ConsumerHandle) -> None:
        errors = self._cluster.errors
        if errors.down_s < self._cluster.settings.timeout_s:
            return
        if handle.handle.reaches_broker(_PROBE_S):
            errors.remember_success()
            return
        raise errors.unreachable("")

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
        self._outages.forget(partition)
        self._recreated.discard(partition)
        self._retries.pop(partition, None)
        self._failures.pop(partition, None)
        self._starts.pop(partition, None)


@final
class PartitionFetch:
    """Fetches one partition; it has to be started, and again after ``is_out_of_range``."""

    def __init__(
        self, partition: TopicPartition, gatherer: MessageGatherer, errors: ClusterErrors
    ) -> None:
        self.partition = partition
        self.position = 0
        self.is_out_of_range = False
        self.is_drained = True
        self.is_restarted = False
        """Whether it was started again because nothing came, and nothing came since."""

        self.known_end = 0
        """The end of the log by an earlier answer."""

        self._silent_since = time.monotonic()
        self._polled_from = 0
        self._gatherer = gatherer
        self._errors = errors
        self._queue: FetchQueue | None = None

    @property
    def silent_s(self) -> float:
        """For how long nothing has come since the start."""
        return time.monotonic() - self._silent_since

    def note_progress(self) -> None:
        """Note that the fetch makes progress."""
        self._silent_since, self.is_restarted = time.monotonic(), False

    def start(self, handle: ConsumerHandle, file: int, position: int) -> None:
        """Fetch from an offset on, and write a byte to a file when there are messages."""
        # Elsewhere in the log, the epoch of the last record that was read means nothing.
        last_epoch = self._gatherer.last_epoch if position == self.position else NO_EPOCH
        self.stop(handle)
        self.position, self.known_end = position, 0
        self._silent_since = time.monotonic()
        self._queue = handle.start(self.partition, position, last_epoch)
        self._queue.notify(file)
        self._gatherer.start(self._queue, position)
        # Messages may have come before the notification was requested.
        self.is_drained = False

    def stop(self, handle: ConsumerHandle) -> None:
        """Stop fetching, and drop what was fetched."""
        queue, self._queue = self._queue, None
        self.is_drained, self.is_out_of_range = True, False
        if queue is not None:
            handle.stop(queue)
            self._gatherer.discard()

    def poll(self) -> PolledRecords | None:
        """Return a batch of the records that have come, or the end of offsets without records.

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
        self.note_progress()
        records = self._gatherer.finish() if self._gatherer.has_rows else None
        return PolledRecords(self.partition, records, next_offset)

    def take_back(self) -> None:
        """Undo the last poll, whose result did not reach its caller."""
        self.position = self._polled_from

    def _gather(self) -> bool:
        """Gather until the batch is full; return whether no message is left."""
        gatherer = self._gatherer
        while True:
            result = gatherer.gather(INT64_MAX, gatherer.take)
            if result == status.DONE:
                return True
            if gatherer.skip_oversized(result):
                continue
            if gatherer.has_rows:
                # An error of the next message is raised by the next call.
                return False
            if not self._pass_error(result):
                return True

    def _pass_error(self, result: int) -> bool:
        """Raise the error of the next message; return whether the fetch continues."""
        error, offset = self._gatherer.require_event(result)
        if error.code() in OUT_OF_RANGE_ERRORS:
            # librdkafka reports it once and stops fetching.
            self.is_out_of_range = True
            self._gatherer.require_same_log(error, self.position)
            return False
        if error.code() not in _TRANSIENT_ERRORS:
            raise self._errors.fetch_error(self.partition, error, offset)
        self._gatherer.pass_event()
        return True


def _queued_kilobytes(partitions: int) -> int:
    """Return the limit of each queue: librdkafka knows none for all queues together.

    The limit halves with each doubling of partitions, so that adding some rarely needs a new
    consumer.
    """
    doubled = 1 << max(0, partitions - 1).bit_length()
    return clamp(_MIN_QUEUED_KILOBYTES, _QUEUED_KILOBYTES // doubled, _MAX_QUEUED_KILOBYTES)
