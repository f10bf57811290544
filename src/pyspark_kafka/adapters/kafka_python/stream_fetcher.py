"""Fetches for a continuous query: the next one is always in flight, one for each leader."""

from __future__ import annotations

import math
import time
from collections import deque
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, final

from kafka import errors as kafka_errors

from ...domain.options.option import INT64_MAX
from ...domain.reading.errors import (
    CorruptBatchError,
    LogTruncatedError,
    OffsetOutOfRangeError,
    TopicRecreatedError,
)
from ...domain.reading.leader_epochs import NO_EPOCH, FetchedEpochs
from ...domain.reading.topic_identity import TopicIdentity
from ...ports.continuous import PolledRecords
from ..call_deadline import MAX_ATTEMPT_S, Attempts
from ..kafka_format.column_buffers import MAX_ROWS
from ..kafka_format.record_decoder import DecoderMemory, FetchedRecords, RecordDecoder
from .connections import FetchConnection, ReceiveBuffer
from .failures import RETRIABLE_ERRORS
from .fetch_client import REFUSED_IDS, TRANSIENT_ERRORS, fetch_error
from .leader_epochs import append_epochs, find_other_log
from .wire import FetchPosition

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    import pyarrow as pa

    from ...domain.reading.leader_epochs import EpochEndOffset
    from ...domain.reading.record_limits import OversizedRecords
    from ...domain.reading.records import Projection
    from ...domain.topic_partition import TopicPartition
    from ..fetching import Watermarks
    from .cluster_metadata import ClusterMetadata
    from .connections import Awaited
    from .failures import ErrorMapper
    from .wire import FetchedData, FetchSettings

MAX_BACKOFF_S: Final = 1.0
"""The longest pause between two tries to find a partition's leader."""


EAGER_BYTES: Final = 16 * 1024
"""The size of a response from which on the next request is sent before its records are taken."""


_HELD_OR_NOT: Final = (kafka_errors.NoError, kafka_errors.OffsetOutOfRangeError)
"""How a leader answers whose log is the same up to an offset."""


@final
@dataclass(slots=True, eq=False)
class _Position:
    """Where a partition is read; another object after each ``assign``."""

    partition: TopicPartition
    offset: int
    decoder: RecordDecoder
    epochs: FetchedEpochs = field(default_factory=FetchedEpochs)
    leader_epoch: int = NO_EPOCH
    truncated_from: int | None = None
    """The offset that was next when the log was found truncated; ``offset`` is a smaller one."""

    topic: TopicIdentity = field(default_factory=TopicIdentity)
    is_new: bool = True
    is_out_of_range: bool = False
    failures: int = 0
    retry_at: float = 0.0

    @property
    def fetched(self) -> FetchPosition:
        """What the next request asks for."""
        return FetchPosition(self.offset, self.epochs.last, self.leader_epoch, self.topic.topic_id)

    def compare(self, found: EpochEndOffset) -> bool:
        """Fetch from a smaller offset until the leader has the same records up to there.

        Return whether the answer says which.
        """
        same_until = self.epochs.truncate(found, self.offset)
        is_told = same_until < self.offset
        if is_told:
            self.diverge(same_until)
        return is_told

    def diverge(self, offset: int) -> None:
        """Note from where on the log has other records than were read."""
        self.truncated_from = self.offset if self.truncated_from is None else self.truncated_from
        self.offset = offset

    def back_off(self, now: float, pause_s: float) -> None:
        """Try again at once after the first failure, and ever later after further ones."""
        pause_s *= 2 ** (self.failures - 1) if self.failures else 0
        self.retry_at = now + min(pause_s, MAX_BACKOFF_S)
        self.failures = min(self.failures + 1, 10)


@final
@dataclass(slots=True, eq=False)
class _Fetched:
    """Records of one partition, which are decoded while they are taken."""

    position: _Position
    batches: Iterator[pa.RecordBatch]
    passed: int
    """The offset after what was taken."""

    next_offset: int

    def take(self) -> PolledRecords | None:
        """Return the next batch; ``None`` at the end."""
        partition = self.position.partition
        records = next(self.batches, None)
        if records is not None:
            self.passed = self.position.decoder.next_offset
            return PolledRecords(partition, records, self.passed)
        if self.passed < self.next_offset:
            self.passed = self.next_offset
            return PolledRecords(partition, None, self.passed)
        return None


@final
@dataclass(slots=True, eq=False)
class _Leader:
    """A broker, the partitions that it leads, and what it sent; they take turns to be first."""

    node: int
    positions: dict[TopicPartition, _Position] = field(default_factory=dict)
    connection: FetchConnection | None = None
    buffer: ReceiveBuffer = field(default_factory=ReceiveBuffer)
    fetched: deque[_Fetched] = field(default_factory=deque)
    """What is in the buffer, which must not be overwritten before it is decoded."""

    not_before: float = 0.0

    @property
    def is_awaited(self) -> bool:
        """Whether a response may be received."""
        return self.connection is not None and bool(self.connection.in_flight) and not self.fetched

    def disconnect(self) -> None:
        """Close the connection, and forget the request in flight."""
        if self.connection is not None:
            self.connection.close()
            self.connection = None


@final
class StreamFetcher:
    """Fetches from the leaders of partitions, in the thread that calls.

    A partition whose leader is not known is retried after a pause, together with others.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        errors: ErrorMapper,
        settings: FetchSettings,
        metadata: ClusterMetadata,
        projection: Projection,
        watermarks: Watermarks,
        *,
        oversized: OversizedRecords,
    ) -> None:
        """Connect to nothing yet; ``config`` is kafka-python's, complete."""
        self._oversized = oversized
        self._errors = errors
        self._settings = settings
        self._metadata = metadata
        self._projection = projection
        self._watermarks = watermarks
        self._retry_s: float = config["retry_backoff_ms"] / 1_000
        self._timeout_ms: int = min(config["request_timeout_ms"], errors.timeout_ms)
        self._check_crcs: bool = config["check_crcs"]
        self._memory = DecoderMemory()
        self._positions: dict[TopicPartition, _Position] = {}
        self._leaders: dict[int, _Leader] = {}
        self._leaderless: dict[TopicPartition, _Position] = {}
        self._raised: deque[tuple[_Position, Exception]] = deque()
        self._attempts = Attempts()
        self._metadata_failing_since = math.inf
        self._fetches_failing_since = math.inf

    def assign(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Read partitions from these offsets on."""
        self.revoke(offsets)
        for partition, offset in offsets.items():
            decoder = RecordDecoder(
                partition,
                self._projection,
                self._memory,
                check_crcs=self._check_crcs,
                oversized=self._oversized,
            )
            position = _Position(partition, offset, decoder)
            self._positions[partition] = self._leaderless[partition] = position

    def revoke(self, partitions: Collection[TopicPartition]) -> None:
        """Read partitions no more."""
        for partition in partitions:
            self._positions.pop(partition, None)
            self._leaderless.pop(partition, None)
            for leader in self._leaders.values():
                leader.positions.pop(partition, None)
        self._drop_leaders()

    def send(self) -> float:
        """Send all requests that are due; return for how many seconds the caller may wait.

        It waits for ``awaited`` connections at the same time.
        """
        now = time.monotonic()
        with self._errors.one_deadline(MAX_ATTEMPT_S):
            if any(position.retry_at <= now for position in self._leaderless.values()):
                self._find_leaders(now)
            waits = [self._send_to(leader, now) for leader in list(self._leaders.values())]
        waits += [position.retry_at - now for position in self._leaderless.values()]
        return max(0.0, min(waits, default=math.inf))

    def awaited(self) -> Iterable[Awaited]:
        """Return connections with requests in flight, and what receives their response."""
        return [
            (leader.connection, partial(self._receive, leader))
            for leader in self._leaders.values()
            if leader.is_awaited and leader.connection is not None
        ]

    @property
    def has_fetched(self) -> bool:
        """Whether ``take`` has something to return or to raise."""
        return bool(self._raised) or any(leader.fetched for leader in self._leaders.values())

    def take(self) -> list[PolledRecords]:
        """Return records that were fetched, about as many as one Arrow batch has.

        :raises PysparkKafkaError: why a partition cannot be read on.
        """
        self._raise_next()
        taken: list[PolledRecords] = []
        rows = 0
        for node in list(self._leaders):
            if rows >= MAX_ROWS:
                # The others are first next time, though these have more by then.
                break
            leader = self._leaders[node] = self._leaders.pop(node)
            while rows < MAX_ROWS and (polled := self._take_from(leader)):
                taken.append(polled)
                rows += polled.records.num_rows if polled.records is not None else 0
        if not taken:
            self._raise_next()
        return taken

    def close(self) -> None:
        """Close all connections, and read nothing more."""
        for leader in self._leaders.values():
            leader.disconnect()
        self.revoke(list(self._positions))

    # Decoding

    def _raise_next(self) -> None:
        while self._raised:
            position, error = self._raised.popleft()
            if self._is_current(position):
                raise error

    def _take_from(self, leader: _Leader) -> PolledRecords | None:
        while leader.fetched:
            fetched = leader.fetched[0]
            polled = self._decode(fetched) if self._is_current(fetched.position) else None
            if polled is not None:
                return polled
            leader.fetched.popleft()
        return None

    def _decode(self, fetched: _Fetched) -> PolledRecords | None:
        try:
            return fetched.take()
        except Exception as error:  # noqa: BLE001  # raised by take, once what came before is taken
            # The request in flight is for what follows, which must not be passed.
            fetched.position.offset = fetched.passed
            self._stop(fetched.position, error)
            return None

    def _is_current(self, position: _Position) -> bool:
        return self._positions.get(position.partition) is position

    def _stop(self, position: _Position, error: Exception) -> None:
        """Raise an error, and again if the partition stays assigned at this offset."""
        self._raised.append((position, error))
        position.retry_at = time.monotonic() + MAX_BACKOFF_S

    # Requests and responses

    def _send_to(self, leader: _Leader, now: float) -> float:
        """Send the next request unless there is one in flight; return when to try again."""
        if leader.connection is not None and leader.connection.is_overdue:
            self._disconnect(leader, TimeoutError("no response to a fetch"))
        if leader.connection is not None and leader.connection.in_flight:
            return math.inf
        if not leader.positions:
            return math.inf
        if now < leader.not_before:
            return leader.not_before - now
        due = {
            partition: position.fetched
            for partition, position in leader.positions.items()
            if position.retry_at <= now
        }
        if not due:
            return min(position.retry_at for position in leader.positions.values()) - now
        try:
            return math.inf if self._request(leader, due) else 0.0
        except RETRIABLE_ERRORS as error:
            self._disconnect(leader, error)
            return 0.0

    def _request(self, leader: _Leader, due: Mapping[TopicPartition, FetchPosition]) -> bool:
        """Send a request; return false if positions must be compared with the log again first."""
        connection = self._connected(leader)
        if not connection.compares_epochs and self._has_other_logs(leader, due):
            return False
        connection.send(due)
        for partition in due:
            leader.positions[partition].topic.is_fetched_by_id = connection.asks_by_id
        return True

    def _has_other_logs(
        self, leader: _Leader, positions: Mapping[TopicPartition, FetchPosition]
    ) -> bool:
        """Ask a leader that does not compare epochs itself whether its logs differ."""
        is_other = False
        for partition, sent in positions.items():
            position = leader.positions[partition]
            found = find_other_log(self._metadata, leader.node, partition, sent, position.epochs)
            if found is not None:
                position.compare(found)
                is_other = True
        return is_other

    def _connected(self, leader: _Leader) -> FetchConnection:
        if leader.connection is not None and leader.connection.is_stale:
            leader.disconnect()
        if leader.connection is None:
            if self._metadata.connection_delay(leader.node):
                raise kafka_errors.NodeNotReadyError(leader.node)
            with self._attempts.next(self._errors.one_deadline, leader.node):
                connected = self._metadata.connect(leader.node)
            leader.connection = FetchConnection(connected, self._settings, self._timeout_ms)
        return leader.connection

    def _receive(self, leader: _Leader) -> None:
        connection = leader.connection
        if connection is None or not connection.in_flight:
            return
        sent = connection.in_flight
        try:
            response = connection.receive(leader.buffer, connection.response_deadline)
        except RETRIABLE_ERRORS as error:
            self._disconnect(leader, error)
            return
        self._fetches_failing_since = math.inf
        now = time.monotonic()
        leader.not_before = now + min(response.throttle_s, self._errors.timeout_ms / 1_000)
        for partition, (offset, *_) in sent.items():
            position = leader.positions.get(partition)
            if position is not None and position.offset == offset:
                self._handle(leader, position, response.of_partition(partition))
        if sum(len(data.records) for data in response.partitions.values()) >= EAGER_BYTES:
            # The broker works while the records are decoded. A few records go out first: sending
            # wakes the broker, which takes the processor from them.
            self._send_to(leader, now)

    def _handle(self, leader: _Leader, position: _Position, data: FetchedData) -> None:
        error = data.error
        if data.diverging is not None:
            if not position.compare(data.diverging):
                self._lose_leader(leader, position)
        elif position.truncated_from is not None and error in _HELD_OR_NOT:
            self._stop_truncated(position, position.truncated_from)
        elif error is kafka_errors.NoError:
            position.failures = 0
            position.topic.accept()
            if data.records:
                self._handle_records(leader, position, data)
        elif error is kafka_errors.OffsetOutOfRangeError:
            position.is_out_of_range = True
            self._lose_leader(leader, position)
        elif error is kafka_errors.CorruptRecordError:
            reason = "its broker cannot read it"
            self._stop(position, CorruptBatchError(position.partition, position.offset, reason))
        elif issubclass(error, TRANSIENT_ERRORS):
            if error in REFUSED_IDS:
                position.topic.refuse()
            self._lose_leader(leader, position)
        else:
            self._stop(position, fetch_error(self._errors, position.partition, error))

    def _handle_records(self, leader: _Leader, position: _Position, data: FetchedData) -> None:
        records = FetchedRecords.of(data.records, data.aborted)
        offset = position.offset
        if records.next_offset is None:
            # A broker sends the first batch complete, even beyond the limits (KIP-74).
            reason = records.problem or "it is cut off"
            self._stop(position, CorruptBatchError(position.partition, offset, reason))
        elif records.next_offset > offset:
            diverges_at = append_epochs(position.epochs, records)
            if diverges_at is not None:
                position.diverge(diverges_at)
                self._stop_truncated(position, offset)
                return
            batches = position.decoder.decode(records, offset, INT64_MAX)
            leader.fetched.append(_Fetched(position, batches, offset, records.next_offset))
            position.offset = records.next_offset
            # Brokers fill a response in order: others come first in the next one.
            leader.positions[position.partition] = leader.positions.pop(position.partition)
        else:
            # A leader begins with the batch that has the offset: this one may be another's.
            self._lose_leader(leader, position)

    def _stop_truncated(self, position: _Position, offset: int) -> None:
        self._stop(position, LogTruncatedError(position.partition, offset, position.offset))

    # Leaders

    def _lose_leader(self, leader: _Leader, position: _Position) -> None:
        leader.positions.pop(position.partition, None)
        self._leaderless[position.partition] = position
        position.back_off(time.monotonic(), self._retry_s)

    def _disconnect(self, leader: _Leader, error: Exception) -> None:
        leader.disconnect()
        for position in list(leader.positions.values()):
            self._lose_leader(leader, position)
        self._fetches_failing_since = min(self._fetches_failing_since, time.monotonic())
        self._raise_lasting(error, self._fetches_failing_since)

    def _raise_lasting(self, error: Exception, failing_since: float) -> None:
        """Raise an error if there were only errors for too long."""
        if time.monotonic() - failing_since <= self._errors.timeout_ms / 1_000:
            return
        if isinstance(error, kafka_errors.KafkaProtocolError):
            raise error
        raise kafka_errors.KafkaConnectionError(str(error)) from error

    def _find_leaders(self, now: float) -> None:
        due = [position for position in self._leaderless.values() if position.retry_at <= now]
        try:
            with self._attempts.next(self._errors.one_deadline):
                self._metadata.refresh_topics({partition.topic for partition in self._positions})
        except RETRIABLE_ERRORS as error:
            for position in due:
                position.back_off(now, self._retry_s)
            self._metadata_failing_since = min(self._metadata_failing_since, time.monotonic())
            self._raise_lasting(error, self._metadata_failing_since)
            return
        self._metadata_failing_since = math.inf
        for position in list(self._positions.values()):
            self._check_topic(position)
        nodes = [self._metadata.known_leader(position.partition) for position in due]
        if not any(node is not None for node in nodes):
            # Nothing can be fetched: they wait for an election.
            self._fetches_failing_since = math.inf
        for position, node in zip(due, nodes, strict=True):
            self._metadata.check_right(position.partition.topic)
            if node is None or (position.is_out_of_range and not self._is_in_range(position)):
                position.back_off(now, self._retry_s)
            else:
                self._follow(position, node)
        self._drop_leaders()

    def _drop_leaders(self) -> None:
        """Close the connections to brokers that lead nothing any more."""
        now = time.monotonic()
        for node, leader in tuple(self._leaders.items()):
            # The end of a pause that the broker asked for (KIP-219) must not be forgotten.
            if not (leader.positions or leader.fetched or now < leader.not_before):
                leader.disconnect()
                del self._leaders[node]

    def _check_topic(self, position: _Position) -> None:
        """Stop if it is another topic of the same name."""
        position.topic.see(self._metadata.topic_id(position.partition.topic))
        if position.topic.is_recreated and self._may_raise(position):
            watermarks = self._watermarks.attempt(position.partition)
            if watermarks is not None:
                partition, offset = position.partition, position.offset
                self._stop(position, TopicRecreatedError(partition, offset, earliest=watermarks[0]))

    def _is_in_range(self, position: _Position) -> bool:
        watermarks = self._watermarks.attempt(position.partition)
        if watermarks is None:
            return False
        earliest, latest = watermarks
        if earliest <= position.offset <= latest:
            position.is_out_of_range = False
            return True
        if self._may_raise(position):
            partition, offset = position.partition, position.offset
            self._stop(
                position, OffsetOutOfRangeError(partition, offset, earliest=earliest, latest=latest)
            )
        return False

    def _may_raise(self, position: _Position) -> bool:
        return all(raised is not position for raised, _ in self._raised)

    def _follow(self, position: _Position, node: int) -> None:
        leader = self._leaders.setdefault(node, _Leader(node))
        del self._leaderless[position.partition]
        leader.positions[position.partition] = position
        position.leader_epoch = self._metadata.leader_epoch(position.partition)
        if position.is_new:
            # The request in flight may wait for other partitions' records for long, and a broker
            # handles one request of a connection at a time.
            position.is_new = False
            leader.disconnect()
