"""Partitions fetched from their leaders, or from the replicas that they prefer (KIP-392)."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any, Final, final

from kafka import errors as kafka_errors

from ...domain.errors import UnknownTopicError
from ...domain.reading.errors import CorruptBatchError, LogTruncatedError, TopicRecreatedError
from ...domain.reading.leader_epochs import FetchedEpochs
from ...domain.reading.topic_identity import TopicIdentity
from ...domain.security.rights import Operation, topic_right
from ..fetching import Fetched, FetchedPartition
from ..kafka_format.buffer_pool import BufferPool
from ..kafka_format.record_decoder import FetchedRecords, RecordDecoder
from .cluster_metadata import ClusterMetadata
from .connections import FetchConnection, ReceiveBuffer
from .expected_ranges import RANGE_BYTES, ExpectedRanges
from .failures import RETRIABLE_ERRORS
from .leader_epochs import append_epochs, find_other_log
from .wire import NO_REPLICA, FetchedData, FetchPosition, FetchSettings

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ...domain.errors import PysparkKafkaError
    from ...domain.reading.leader_epochs import EpochEndOffset
    from ...domain.reading.ranges import OffsetRange
    from ...domain.topic_partition import TopicPartition
    from ...ports.clock import Deadline
    from ..fetching import Watermarks
    from .expected_ranges import HeldData
    from .failures import ErrorMapper


def fetch_error(
    errors: ErrorMapper, partition: TopicPartition, error: type[kafka_errors.KafkaError]
) -> PysparkKafkaError:
    """Return the error of a fetch that a broker refuses."""
    right = topic_right(Operation.READ, partition.topic)
    return errors.request_error(f"a fetch from {partition}", error, [right])


TRANSIENT_ERRORS: Final = (*RETRIABLE_ERRORS, kafka_errors.UnknownError)
"""The Java client's ``FetchCollector`` retries UNKNOWN_SERVER_ERROR too; it is not retriable."""


REFUSED_IDS: Final = (kafka_errors.UnknownTopicIdError, kafka_errors.InconsistentTopicIdError)
"""How a broker answers that does not know a topic's id: not yet, or not any more."""


MAX_PAUSE_S: Final = 1.0
"""How long a fetch may keep its caller waiting for the end of a pause."""

_NOTHING: Final = FetchedData(kafka_errors.NoError, NO_REPLICA, (), memoryview(b""))


@final
class FetchClient:
    """Fetches with one request ahead; used by one thread at a time.

    Connections are kept from range to range.
    """

    def __init__(
        self, config: Mapping[str, Any], errors: ErrorMapper, settings: FetchSettings
    ) -> None:
        """Connect to nothing yet; ``config`` is kafka-python's, complete."""
        self._config = config
        self.errors = errors
        self._settings = settings
        self.retry_s: float = config["retry_backoff_ms"] / 1_000
        self._metadata: ClusterMetadata | None = None
        self._connections: dict[int, FetchConnection] = {}
        self._replicas: dict[TopicPartition, tuple[int, float]] = {}
        self._not_before: dict[int, float] = {}
        self._expected = ExpectedRanges()
        self.buffers: BufferPool[ReceiveBuffer] = BufferPool(ReceiveBuffer)

    def expect(self, ranges: Collection[OffsetRange]) -> None:
        """Fetch these ranges together if they are small; they are read next, in this order."""
        self._expected.expect(ranges)
        if ranges or self._metadata is not None:
            self._opened().expect(one.partition.topic for one in ranges)

    def fetch(
        self,
        partition: TopicPartition,
        topic: TopicIdentity,
        offset: int,
        epochs: FetchedEpochs,
        buffer: ReceiveBuffer,
        deadline: Deadline,
    ) -> FetchedData | None:
        """Return what a broker has from an offset on; its records are in the buffer.

        ``topic`` and ``epochs`` are of what was read before the offset. ``None`` while the
        partition has no leader, or if the topic is recreated. No records if the broker asked for a
        pause that has not ended within ``MAX_PAUSE_S`` (KIP-219).

        :raises RETRIABLE_ERRORS: if another try may succeed, after ``invalidate``.
        :raises KafkaError: if none will.
        """
        node = self._node(partition)
        if node is None:
            return None
        topic.see(self._opened().topic_id(partition.topic))
        position = self._position(partition, topic, offset, epochs)
        held = self._held(partition, position)
        if held is not None:
            topic.is_fetched_by_id = held.is_by_id
            return None if topic.is_recreated else held.data
        connection = self._connection(node, partition, position)
        topic.is_fetched_by_id = connection.takes_ids
        if topic.is_recreated:
            return None
        together: dict[TopicPartition, FetchPosition] = {}
        if connection.in_flight is None:
            if not self._has_paused(node, deadline):
                return _NOTHING
            if not connection.compares_epochs and partition not in self._replicas:
                found = find_other_log(self._opened(), node, partition, position, epochs)
                if found is not None:
                    return FetchedData.diverged(found)
            together = self._together_with(partition, node)
            connection.send({partition: position, **together})
        response = connection.receive(buffer, deadline)
        topic.is_fetched_by_id = connection.asks_by_id
        self._expected.hold(response.partitions, together, is_by_id=connection.asks_by_id)
        pause_s = min(response.throttle_s, self.errors.timeout_ms / 1_000)
        self._not_before[node] = time.monotonic() + pause_s
        fetched = response.of_partition(partition)
        if fetched.preferred_replica != NO_REPLICA:
            # As the Java client: until the metadata expire.
            until = time.monotonic() + self._config["metadata_max_age_ms"] / 1_000
            self._replicas[partition] = fetched.preferred_replica, until
        return fetched

    def send_ahead(
        self,
        partition: TopicPartition,
        topic: TopicIdentity,
        offset: int,
        epochs: FetchedEpochs,
    ) -> None:
        """Send the next request, unless the broker asked for a pause (KIP-219)."""
        try:
            node = self._node(partition)
            if node is None or time.monotonic() < self._not_before.get(node, 0):
                return
            position = self._position(partition, topic, offset, epochs)
            connection = self._connection(node, partition, position)
            if connection.compares_epochs or epochs.is_confirmed(position.leader_epoch):
                connection.send({partition: position})
        except (OSError, kafka_errors.KafkaError):
            # The next fetch raises the error, if it persists.
            self.invalidate(partition)

    def _has_paused(self, node: int, deadline: Deadline) -> bool:
        """Wait while the broker asked for it; return whether the pause has ended."""
        pause_s = max(0.0, self._not_before.get(node, 0) - time.monotonic())
        waited_s = min(pause_s, MAX_PAUSE_S, deadline.remaining)
        time.sleep(waited_s)
        return waited_s == pause_s

    def leave_replica(self, partition: TopicPartition) -> bool:
        """Return to the leader from a nearer replica; false if it was the leader already."""
        return self._replicas.pop(partition, None) is not None

    def invalidate(self, partition: TopicPartition) -> None:
        """Refresh the metadata and reconnect to the partition's broker with the next fetch."""
        node: int | None = self._replicas.pop(partition, (NO_REPLICA, 0.0))[0]
        if self._metadata is not None:
            if node == NO_REPLICA:
                node = self._metadata.known_leader(partition)
            self._metadata.invalidate(partition)
        if node in self._connections:
            self._connections.pop(node).close()

    def abandon(self) -> None:
        """Close connections with a request in flight, whose response is no longer wanted."""
        self._close_connections(idle=False)

    def close(self) -> None:
        """Close all connections; a second call does nothing."""
        self._close_connections(idle=True)
        if self._metadata is not None:
            self._metadata.close()
            self._metadata = None

    def _close_connections(self, *, idle: bool) -> None:
        for node, connection in list(self._connections.items()):
            if idle or connection.in_flight:
                self._connections.pop(node).close()

    def _opened(self) -> ClusterMetadata:
        if self._metadata is None:
            self._metadata = ClusterMetadata(self._config, self.errors)
        return self._metadata

    def _node(self, partition: TopicPartition) -> int | None:
        replica, until = self._replicas.get(partition, (NO_REPLICA, 0.0))
        return replica if time.monotonic() < until else self._opened().leader(partition)

    def _position(
        self,
        partition: TopicPartition,
        topic: TopicIdentity,
        offset: int,
        epochs: FetchedEpochs,
    ) -> FetchPosition:
        leader_epoch = self._opened().leader_epoch(partition)
        return FetchPosition(offset, epochs.last, leader_epoch, topic.topic_id)

    def _held(self, partition: TopicPartition, position: FetchPosition) -> HeldData | None:
        """Return what was fetched from a position on together with another range."""
        self._expected.begin(partition, position.offset)
        held = self._expected.take(partition)
        return held if held and held.position == position._replace(max_bytes=RANGE_BYTES) else None

    def _together_with(
        self, partition: TopicPartition, node: int
    ) -> dict[TopicPartition, FetchPosition]:
        """Return the positions of the expected ranges that a request to a broker can name, too.

        The last metadata say where they are: nothing is requested for ranges that are read later.
        """
        metadata = self._opened()
        return {
            one.partition: self._position(
                one.partition,
                self._identity(one.partition.topic),
                one.from_offset,
                FetchedEpochs(),
            )._replace(max_bytes=RANGE_BYTES)
            for one in self._expected.next_on(lambda other: metadata.known_leader(other) == node)
            if one.partition != partition
        }

    def _identity(self, name: str) -> TopicIdentity:
        topic = TopicIdentity()
        topic.see(self._opened().topic_id(name))
        return topic

    def _connection(
        self, node: int, partition: TopicPartition, position: FetchPosition
    ) -> FetchConnection:
        """Return a connection that is idle, or that has this very request in flight."""
        kept = self._connections.get(node)
        in_flight = None if kept is None else kept.in_flight
        is_other = in_flight is not None and in_flight.get(partition) != position
        if kept and (kept.is_expired or is_other):
            self._connections.pop(node).close()
        if node not in self._connections:
            connected = self._opened().connect(node)
            timeout_ms = min(self._config["request_timeout_ms"], self.errors.timeout_ms)
            self._connections[node] = FetchConnection(connected, self._settings, timeout_ms)
        return self._connections[node]


@final
class PartitionFetcher(FetchedPartition):
    """Fetches a range through elections, restarts and lost connections."""

    def __init__(
        self,
        client: FetchClient,
        offset_range: OffsetRange,
        decoder: RecordDecoder,
        watermarks: Watermarks,
        poll_timeout_ms: int,
    ) -> None:
        """Take a client that nothing else uses meanwhile.

        ``poll_timeout_ms`` bounds one fetch, as Java's ``KafkaConsumer.poll`` is bounded.
        """
        self._client = client
        self._range = offset_range
        self._partition = offset_range.partition
        self._decoder = decoder
        self._watermarks = watermarks
        self._poll_timeout_s = poll_timeout_ms / 1_000
        self._topic = TopicIdentity()
        self._epochs = FetchedEpochs()
        self._same_until: int | None = None
        self._failing_since = math.inf
        self._buffer: ReceiveBuffer | None = None

    def fetch(self, position: int) -> Fetched | None:
        begun = time.monotonic()
        offset = position if self._same_until is None else self._same_until
        errors = self._client.errors
        with (
            errors.mapped_errors(f"a fetch from {self._partition}"),
            errors.one_deadline(self._poll_timeout_s) as deadline,
        ):
            try:
                response = self._client.fetch(
                    self._partition, self._topic, offset, self._epochs, self._received, deadline
                )
            except RETRIABLE_ERRORS as error:
                # The caller's pauses between fetches do not count.
                self._failing_since = min(self._failing_since, begun)
                return self._try_again(position, error)
        self._failing_since = math.inf
        if response is None:
            self._require_same_topic(position)
            return self._try_again(position)
        if response is _NOTHING:
            return Fetched((), position)
        return self._handle(response, offset, position)

    def leave(self) -> None:
        self._client.abandon()
        if self._buffer is not None:
            self._client.buffers.release(self._buffer)
            self._buffer = None

    def watermarks(self) -> tuple[int, int]:
        return self._watermarks.of(self._partition)

    @property
    def _received(self) -> ReceiveBuffer:
        # One for each range: two ranges that are read in turns must not overwrite each other's.
        if self._buffer is None:
            self._buffer = self._client.buffers.acquire()
        return self._buffer

    def _handle(self, response: FetchedData, offset: int, position: int) -> Fetched | None:
        if response.needs_leader and self._client.leave_replica(self._partition):
            # The leader may hold what a replica does not (KIP-392).
            return Fetched((), position)
        if response.diverging is not None:
            return self._compare(response.diverging, offset, position)
        if response.error is kafka_errors.NoError:
            self._accept_topic()
            self._require_same_log(position)
            return self._fetched(response, position)
        if response.error is not kafka_errors.OffsetOutOfRangeError:
            return self._failed(response.error, position)
        self._require_same_log(position)
        return None

    def _compare(self, found: EpochEndOffset, offset: int, position: int) -> Fetched:
        """Fetch from a smaller offset until the leader has the same records up to there."""
        same_until = self._epochs.truncate(found, offset)
        if same_until == offset:
            return self._try_again(position)
        self._same_until = same_until
        return Fetched((), position)

    def _require_same_topic(self, position: int) -> None:
        if not self._topic.is_recreated:
            return
        try:
            earliest, _ = self.watermarks()
        except UnknownTopicError:
            # Its brokers learn of it, or it is deleted again.
            return
        raise TopicRecreatedError(self._partition, position, earliest=earliest)

    def _require_same_log(self, position: int) -> None:
        if self._same_until is not None:
            raise LogTruncatedError(self._partition, position, self._same_until)

    def _accept_topic(self) -> None:
        """Note which topic is read, if the leader was asked for its id.

        The metadata may be older than the range, and contain the id of a deleted topic.
        """
        if self._topic.is_fetched_by_id:
            self._topic.accept()

    def _fetched(self, response: FetchedData, position: int) -> Fetched:
        if not response.records:
            return Fetched((), position)
        records = FetchedRecords.of(response.records, response.aborted)
        if records.next_offset is None:
            # A broker sends the first batch complete, even beyond the limits (KIP-74).
            reason = records.problem or "it is cut off"
            raise CorruptBatchError(self._partition, position, reason)
        next_offset = max(position, records.next_offset)
        if position < next_offset:
            self._same_until = append_epochs(self._epochs, records)
            self._require_same_log(position)
            if next_offset < self._range.until_offset:
                self._client.send_ahead(self._partition, self._topic, next_offset, self._epochs)
        batches = self._decoder.decode(records, position, self._range.until_offset)
        return Fetched(batches, next_offset)

    def _failed(self, error: type[kafka_errors.KafkaError], position: int) -> Fetched:
        if error is kafka_errors.CorruptRecordError:
            raise CorruptBatchError(self._partition, position, "its broker cannot read it")
        if not issubclass(error, TRANSIENT_ERRORS):
            raise fetch_error(self._client.errors, self._partition, error)
        if error in REFUSED_IDS:
            self._topic.refuse()
        return self._try_again(position)

    def _try_again(self, position: int, error: Exception | None = None) -> Fetched:
        """Return nothing and refresh the metadata, unless brokers have failed for too long."""
        if (
            error
            and time.monotonic() - self._failing_since > self._client.errors.timeout_ms / 1_000
        ):
            if isinstance(error, kafka_errors.KafkaProtocolError):
                raise error
            raise kafka_errors.KafkaConnectionError(str(error)) from error
        self._client.invalidate(self._partition)
        time.sleep(self._client.retry_s)
        return Fetched((), position)
