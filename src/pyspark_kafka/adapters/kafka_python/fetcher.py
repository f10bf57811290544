"""Fetches from the leaders of partitions, or from the replicas that they prefer (KIP-392).

One request is in flight to each broker, for all partitions that are read there. The thread that
calls does everything.
"""

from __future__ import annotations

import math
import time
from collections import deque
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final, final

from kafka import errors as kafka_errors

from ...domain.errors import PysparkKafkaError
from ...domain.reading.cursor import MAX_BACKOFF_S, FetchError, Step
from ...domain.reading.errors import OffsetOutOfRangeError, TopicRecreatedError
from ...domain.security.rights import Operation, topic_right
from ...ports.continuous import PolledRecords
from ..call_deadline import MAX_ATTEMPT_S, Attempts
from ..fetching import LeaderlessPartitions
from ..kafka_format.column_buffers import MAX_ROWS
from .brokers import RANGE_BYTES, find_other_log
from .failures import RETRIABLE_ERRORS, class_of, reason_of
from .wire import NO_REPLICA, FetchPosition

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from contextlib import AbstractContextManager

    from ...domain.topic_partition import TopicPartition
    from .brokers import Brokers, FetchedBatches, PartitionCursor
    from .connections import Awaited, FetchConnection, ReceiveBuffer
    from .wire import FetchedData

EAGER_BYTES: Final = 16 * 1024
"""The size of a response from which on the next request is sent before its records are taken."""

_FETCH_ERRORS: Final[Mapping[type[Exception], FetchError]] = {
    kafka_errors.OffsetOutOfRangeError: FetchError.OUT_OF_RANGE,
    kafka_errors.CorruptRecordError: FetchError.CORRUPT,
    kafka_errors.UnknownTopicIdError: FetchError.UNKNOWN_ID,
    kafka_errors.InconsistentTopicIdError: FetchError.UNKNOWN_ID,
    **dict.fromkeys(RETRIABLE_ERRORS, FetchError.RETRIABLE),
    # The Java client's ``FetchCollector`` retries UNKNOWN_SERVER_ERROR too; it is not retriable.
    kafka_errors.UnknownError: FetchError.RETRIABLE,
}


@final
@dataclass(slots=True, eq=False)
class _Node:
    """A broker, the partitions that are read there, and what it sent; they take turns."""

    node: int
    cursors: dict[TopicPartition, PartitionCursor] = field(default_factory=dict)
    connection: FetchConnection | None = None
    buffer: ReceiveBuffer | None = None
    fetched: deque[FetchedBatches] = field(default_factory=deque)
    """The records in the buffer, which must not be overwritten before they are decoded."""

    together: Mapping[TopicPartition, FetchPosition] = field(default_factory=dict)
    """Positions in the last request whose records are read later."""

    @property
    def is_awaited(self) -> bool:
        """Whether a response may be received."""
        return self.connection is not None and bool(self.connection.in_flight) and not self.fetched

    def add_fetched(self, fetched: FetchedBatches) -> None:
        """Keep records of a partition, which is not fetched from elsewhere meanwhile."""
        fetched.cursor.is_undecoded = True
        self.fetched.append(fetched)

    def pop_fetched(self) -> FetchedBatches:
        """Return the first records, which nothing else of their partition comes before."""
        fetched = self.fetched.popleft()
        fetched.cursor.is_undecoded = False
        return fetched

    def disconnect(self) -> None:
        """Close the connection, and forget the request in flight."""
        if self.connection is not None:
            self.connection.close()
            self.connection = None


@final
class Fetcher:
    """Fetches for the cursors that it is given.

    A partition whose leader is not known is retried after a pause, together with others.
    """

    def __init__(
        self, brokers: Brokers, *, is_continuous: bool = False, lasting_s: float | None = None
    ) -> None:
        """Connect to nothing yet.

        A continuous query asks for new metadata first, and must not be kept waiting for long.
        Brokers may be away for ``lasting_s``, without it for as long as a call may take.
        """
        self._brokers = brokers
        self._errors = brokers.errors
        self._watermarks = brokers.watermarks
        self._near = brokers.near
        self._is_continuous = is_continuous
        self._cursors: dict[TopicPartition, PartitionCursor] = {}
        self._nodes: dict[int, _Node] = {}
        self._leaderless: dict[TopicPartition, PartitionCursor] = {}
        self._raised: deque[tuple[PartitionCursor, Exception]] = deque()
        self._attempts = Attempts()
        self._begun = math.inf
        self._metadata_failing_since = math.inf
        self._lasting_s = self._errors.timeout_ms / 1_000 if lasting_s is None else lasting_s
        self._outages = LeaderlessPartitions(self._errors.timeout_ms / 1_000)

    def assign(self, cursors: Collection[PartitionCursor]) -> None:
        """Read cursors of different partitions; earlier ones of the same are dropped."""
        self.revoke([cursor.partition for cursor in cursors])
        for cursor in cursors:
            self._cursors[cursor.partition] = self._leaderless[cursor.partition] = cursor

    def revoke(self, partitions: Collection[TopicPartition]) -> None:
        """Read partitions no more."""
        for partition in partitions:
            self._cursors.pop(partition, None)
            self._leaderless.pop(partition, None)
            self._outages.forget(partition)
            for node in self._nodes.values():
                node.cursors.pop(partition, None)
        self._drop_nodes()

    def begin(self) -> None:
        """Note that a call begins: the pause of the caller before it is no failure of a broker."""
        self._begun = time.monotonic()

    def send(self) -> float:
        """Send all requests that are due; return for how many seconds the caller may wait.

        It waits for ``awaited`` connections at the same time.
        """
        now = time.monotonic()
        with self._errors.one_deadline(MAX_ATTEMPT_S if self._is_continuous else None):
            if self._may_move(now) or self._brokers.metadata.is_outdated:
                self._find_leaders(now)
            waits = [self._send_to(node, now) for node in list(self._nodes.values())]
        waits += [
            cursor.retry_at - now for cursor in self._leaderless.values() if not cursor.is_undecoded
        ]
        return max(0.0, min(waits, default=math.inf))

    def awaited(self) -> list[Awaited]:
        """Return connections with requests in flight, and what receives their response."""
        return [
            (node.connection, partial(self._receive, node))
            for node in self._nodes.values()
            if node.is_awaited and node.connection is not None
        ]

    @property
    def has_fetched(self) -> bool:
        """Whether ``take`` has something to return or to raise."""
        return bool(self._raised) or any(node.fetched for node in self._nodes.values())

    def take(self) -> list[PolledRecords]:
        """Return records that were fetched, about as many as one Arrow batch has.

        :raises PysparkKafkaError: why a partition cannot be read on.
        """
        self._raise_next()
        taken: list[PolledRecords] = []
        rows = 0
        for number in list(self._nodes):
            if rows >= MAX_ROWS:
                # The others are first next time, though these have more by then.
                break
            node = self._nodes[number] = self._nodes.pop(number)
            while rows < MAX_ROWS and (polled := self._take_from(node)):
                taken.append(polled)
                rows += polled.records.num_rows if polled.records is not None else 0
        if not taken:
            self._raise_next()
        return taken

    def take_undecoded(self) -> FetchedBatches | None:
        """Return what was fetched of a partition; it is decoded before the next response comes.

        :raises PysparkKafkaError: why a partition cannot be read on.
        """
        self._raise_next()
        node = next((node for node in self._nodes.values() if node.fetched), None)
        return None if node is None else node.pop_fetched()

    def close(self) -> None:
        """Read nothing more, not even what was fetched."""
        for node in self._nodes.values():
            node.fetched.clear()
        self.revoke(list(self._cursors))

    # Decoding

    def _raise_next(self) -> None:
        while self._raised:
            cursor, error = self._raised.popleft()
            if self._is_current(cursor):
                raise error

    def _take_from(self, node: _Node) -> PolledRecords | None:
        while node.fetched:
            fetched = node.fetched[0]
            polled = self._decode(fetched) if self._is_current(fetched.cursor) else None
            if polled is not None:
                return polled
            node.pop_fetched()
        return None

    def _decode(self, fetched: FetchedBatches) -> PolledRecords | None:
        try:
            return fetched.take()
        except Exception as error:  # noqa: BLE001  # raised by take, once what came before is taken
            # The request in flight is for what follows, which must not be passed.
            fetched.cursor.offset = fetched.passed
            self._stop(fetched.cursor, error)
            return None

    def _is_current(self, cursor: PartitionCursor) -> bool:
        return self._cursors.get(cursor.partition) is cursor

    def _stop(self, cursor: PartitionCursor, error: Exception) -> None:
        """Raise an error, and again if the partition stays assigned at this offset."""
        self._raised.append((cursor, error))
        cursor.retry_at = time.monotonic() + MAX_BACKOFF_S

    # Requests and responses

    def _send_to(self, node: _Node, now: float, *, is_ahead: bool = False) -> float:
        """Send the next request unless there is one in flight; return when to try again."""
        if node.connection is not None and node.connection.is_overdue:
            self._disconnect(node, TimeoutError("no response to a fetch"))
        if node.connection is not None and node.connection.in_flight:
            return math.inf
        # Only between requests: a response to one in flight would be dropped.
        for partition in self._near.expire(node.cursors, now):
            self._move(node, node.cursors[partition])
        if not node.cursors:
            return math.inf
        not_before = self._brokers.not_before.get(node.node, 0)
        if now < not_before:
            return not_before - now
        due = {
            partition: cursor.position
            for partition, cursor in node.cursors.items()
            if cursor.retry_at <= now
        }
        if not due:
            return min(cursor.retry_at for cursor in node.cursors.values()) - now
        try:
            return math.inf if self._request(node, due, now, is_ahead=is_ahead) else 0.0
        except RETRIABLE_ERRORS as error:
            self._disconnect(node, error)
            return 0.0

    def _request(
        self,
        node: _Node,
        due: Mapping[TopicPartition, FetchPosition],
        now: float,
        *,
        is_ahead: bool,
    ) -> bool:
        """Send a request; return false if cursors must be compared with the log again first."""
        connection = self._connected(node)
        if not connection.compares_epochs:
            if self._has_other_logs(node, due):
                return False
            # That may have taken longer than the connection's session lasts.
            connection = self._connected(node)
        node.together = {} if is_ahead else self._together_with(due, node)
        must_answer = any(self._near.is_avoided(each, now) for each in due)
        connection.send({**due, **node.together}, with_rack=not must_answer)
        for partition in due:
            node.cursors[partition].topic.is_fetched_by_id = connection.asks_by_id
        return True

    def _has_other_logs(
        self, node: _Node, positions: Mapping[TopicPartition, FetchPosition]
    ) -> bool:
        """Ask a leader that does not compare epochs itself whether its logs differ."""
        is_other = False
        for partition, position in positions.items():
            if self._near.of(partition) is not None:
                continue
            cursor = node.cursors[partition]
            found = find_other_log(
                self._brokers.metadata, node.node, partition, position, cursor.epochs
            )
            if found is not None:
                cursor.compare(found)
                is_other = True
        return is_other

    def _together_with(
        self, due: Collection[TopicPartition], node: _Node
    ) -> dict[TopicPartition, FetchPosition]:
        """Return the positions of expected ranges, which the same request can name.

        The last metadata show where they are: nothing is requested for ranges that are read later.
        """
        metadata = self._brokers.metadata
        return {
            one.partition: FetchPosition(
                one.from_offset,
                leader_epoch=metadata.view.leadership(one.partition).epoch,
                topic_id=metadata.view.topic_id(one.partition.topic),
                max_bytes=RANGE_BYTES,
            )
            for one in self._brokers.expected.next_on(
                lambda other: self._brokers.node_of(other) == node.node
            )
            if one.partition not in due
        }

    def _connected(self, node: _Node) -> FetchConnection:
        if node.connection is None:
            node.connection = self._brokers.connections.pop(node.node, None)
        if node.connection is not None and node.connection.is_stale:
            node.disconnect()
        if node.connection is None:
            with self._attempt(node.node):
                node.connection = self._brokers.connect(node.node, waits=not self._is_continuous)
        return node.connection

    def _attempt(self, key: int | None = None) -> AbstractContextManager[object]:
        if not self._is_continuous:
            return self._errors.one_deadline(self._brokers.timeout_ms / 1_000)
        return self._attempts.next(self._errors.one_deadline, key)

    def _receive(self, node: _Node) -> bool:
        """Receive what is there; return whether a response is complete, or the connection lost."""
        connection = node.connection
        if connection is None or not connection.in_flight:
            return True
        sent = connection.in_flight
        node.buffer = node.buffer or self._brokers.buffers.acquire()
        try:
            response = connection.receive(node.buffer)
        except RETRIABLE_ERRORS as error:
            self._disconnect(node, error)
            return True
        if response is None:
            return False
        now = time.monotonic()
        pause_s = min(response.throttle_s, self._errors.timeout_ms / 1_000)
        self._brokers.not_before[node.node] = now + pause_s
        self._brokers.hold(response, node.together, is_by_id=connection.asks_by_id)
        for partition, position in sent.items():
            cursor = node.cursors.get(partition)
            data = response.of_partition(partition)
            if cursor is not None and cursor.asks_for(position):
                cursor.failing_since = math.inf
                self._handle(node, cursor, data)
            elif partition in node.together and data.preferred_replica != NO_REPLICA:
                self._near.prefer(partition, data.preferred_replica, now)
        size = sum(len(data.records) for data in response.partitions.values())
        if not self._is_continuous or size >= EAGER_BYTES:
            # The broker works while the records are decoded. A few records go out first: sending
            # wakes the broker, which takes the processor from them.
            self._send_to(node, now, is_ahead=True)
        return True

    def _handle(self, node: _Node, cursor: PartitionCursor, data: FetchedData) -> None:
        partition, now = cursor.partition, time.monotonic()
        is_leader = self._near.of(partition) is None
        try:
            error = self._class_of(data.error, partition)
            match cursor.answered(error, data.diverging, node.node, now, is_leader=is_leader):
                case Step.TAKE_RECORDS:
                    self._handle_records(node, cursor, data)
                case Step.FIND_LEADER:
                    self._lose_leader(node, cursor)
                case Step.LEAVE_REPLICA:
                    self._leave_replica(node, cursor)
        except PysparkKafkaError as stopped:
            self._stop(cursor, stopped)
        if data.preferred_replica != NO_REPLICA and not cursor.is_finished:
            has_more = data.end_offset > cursor.offset
            self._near.prefer(partition, data.preferred_replica, now, has_more=has_more)
            self._move(node, cursor)

    def _class_of(
        self, error: type[kafka_errors.KafkaError], partition: TopicPartition
    ) -> FetchError | None:
        """Return the class of an error, ``None`` if it is none.

        :raises PysparkKafkaError: if another try will not succeed.
        """
        if error is kafka_errors.NoError:
            return None
        if found := class_of(error, _FETCH_ERRORS):
            return found
        right = topic_right(Operation.READ, partition.topic)
        raise self._errors.request_error(f"a fetch from {partition}", error, [right])

    def _handle_records(self, node: _Node, cursor: PartitionCursor, data: FetchedData) -> None:
        has_looked = data.preferred_replica == NO_REPLICA
        if has_looked and (self._is_continuous or cursor.topic.is_fetched_by_id):
            # Otherwise the metadata may be older, and have the id of a deleted topic.
            cursor.topic.accept(node.node)
        is_behind = self._near.has_answered(
            cursor.partition, time.monotonic(), is_empty=not data.records
        )
        if not data.records:
            if not self._is_continuous:
                self._doubt(node, cursor, is_behind=is_behind)
            return
        fetched = cursor.take(data)
        if fetched is None:
            # A leader begins with the batch that has the offset: this one may be another's.
            self._lose_leader(node, cursor)
            return
        node.add_fetched(fetched)
        # Brokers fill a response in order: others come first in the next one.
        del node.cursors[cursor.partition]
        if not cursor.is_finished:
            node.cursors[cursor.partition] = cursor

    def _doubt(self, node: _Node, cursor: PartitionCursor, *, is_behind: bool) -> None:
        """Ask another broker who leads: the end of a range was in the log when it was planned.

        A broker that is cut off from the cluster may take itself for the leader for ever.
        """
        if self._near.of(cursor.partition) is None:
            self._brokers.metadata.ask_others_first(node.node)
            self._lose_leader(node, cursor)
        elif is_behind:
            self._leave_replica(node, cursor)

    # Leaders

    def _move(self, node: _Node, cursor: PartitionCursor) -> None:
        """Find another broker for a cursor, at once."""
        node.cursors.pop(cursor.partition, None)
        self._leaderless[cursor.partition] = cursor

    def _leave_replica(self, node: _Node, cursor: PartitionCursor) -> None:
        """Go to the leader that is known: a request for metadata could take the time of a read."""
        self._near.fail(cursor.partition, time.monotonic())
        self._move(node, cursor)

    def _lose_leader(self, node: _Node, cursor: PartitionCursor) -> None:
        self._leave_replica(node, cursor)
        self._brokers.metadata.invalidate(cursor.partition)
        cursor.back_off(time.monotonic(), self._brokers.retry_s)

    def _disconnect(self, node: _Node, error: Exception) -> None:
        node.disconnect()
        self._brokers.metadata.ask_others_first(node.node)
        cursors = list(node.cursors.values())
        # It may have been closed just now, while other brokers were waited for.
        is_closed = isinstance(error, ConnectionResetError)
        begun = time.monotonic() if is_closed else self._begun
        for cursor in cursors:
            if self._near.of(cursor.partition) is None:
                cursor.failing_since = min(cursor.failing_since, begun)
                self._lose_leader(node, cursor)
            else:
                self._leave_replica(node, cursor)
        # Each partition has its own clock: other brokers may answer all the time.
        since = min((cursor.failing_since for cursor in cursors), default=math.inf)
        self._raise_lasting(error, since)

    def _raise_lasting(self, error: Exception, failing_since: float) -> None:
        """Raise an error if there were only errors for too long."""
        if time.monotonic() - failing_since <= self._lasting_s:
            return
        if isinstance(error, kafka_errors.KafkaProtocolError | kafka_errors.UnknownBrokerIdError):
            raise error
        raise kafka_errors.KafkaConnectionError(reason_of(error)) from error

    def _may_move(self, now: float) -> list[PartitionCursor]:
        return [cursor for cursor in self._leaderless.values() if cursor.may_move(now)]

    def _find_leaders(self, now: float) -> None:
        due = self._may_move(now)
        try:
            # Nothing waits for metadata that are only old, and fetches share the call's deadline.
            with self._attempt() if due else self._attempts.next(self._errors.one_deadline, "age"):
                self._update_metadata(due)
        except RETRIABLE_ERRORS as error:
            for cursor in due:
                cursor.back_off(now, self._brokers.retry_s)
            if due:
                self._metadata_failing_since = min(self._metadata_failing_since, self._begun)
                self._raise_lasting(error, self._metadata_failing_since)
            return
        self._metadata_failing_since = math.inf
        for cursor in list(self._cursors.values()):
            self._check_topic(cursor)
        self._leave_old_leaders()
        due = self._may_move(now)
        nodes = [self._brokers.node_of(cursor.partition) for cursor in due]
        for cursor, node in zip(due, nodes, strict=True):
            self._brokers.metadata.check_right(cursor.partition.topic)
            self._note_outage(cursor, node, now)
            if (
                node is None
                or self._is_former(cursor)
                or (cursor.is_out_of_range and not self._is_in_range(cursor))
            ):
                cursor.back_off(now, self._brokers.retry_s)
            else:
                self._follow(cursor, node)
        self._drop_nodes()

    def _note_outage(self, cursor: PartitionCursor, node: int | None, now: float) -> None:
        if node is not None:
            self._outages.remove(cursor.partition)
            return
        # Nothing can be fetched: it waits for an election, or for a broker that knows of one.
        cursor.failing_since = math.inf
        self._brokers.metadata.invalidate(cursor.partition)
        if self._brokers.metadata.view.is_leaderless(cursor.partition):
            self._outages.add(cursor.partition, now)

    def _is_former(self, cursor: PartitionCursor) -> bool:
        """Return whether metadata name a former leader; other brokers are asked then."""
        metadata, partition = self._brokers.metadata, cursor.partition
        if self._near.of(partition) is not None:
            return False
        is_former = cursor.was_led(metadata.view.leadership(partition).epoch)
        if is_former:
            metadata.invalidate(partition)
            cursor.failing_since = min(cursor.failing_since, self._begun)
            text = f"The brokers that answer know a former leader of {partition} only"
            self._raise_lasting(kafka_errors.StaleMetadata(text), cursor.failing_since)
        return is_former

    def _leave_old_leaders(self) -> None:
        """Leave brokers that no longer lead, and may never answer that they do not."""
        metadata = self._brokers.metadata
        for node in self._nodes.values():
            for partition, cursor in list(node.cursors.items()):
                if self._near.of(partition) is not None:
                    continue
                if metadata.view.leadership(partition).node not in (None, node.node) and (
                    cursor.is_led_elsewhere(metadata.view.leadership(partition).epoch)
                ):
                    self._move(node, cursor)

    def _update_metadata(self, due: Collection[PartitionCursor]) -> None:
        """Request metadata unless a task of a batch knows all leaders already."""
        metadata = self._brokers.metadata
        if self._is_continuous or metadata.is_outdated:
            metadata.refresh({partition.topic for partition in self._cursors})
            return
        for cursor in due:
            if self._near.of(cursor.partition) is None:
                metadata.leader(cursor.partition)

    def _drop_nodes(self) -> None:
        """Let go of brokers from which nothing is read now."""
        for number, node in tuple(self._nodes.items()):
            if not (node.cursors or node.fetched):
                if self._is_continuous:
                    node.disconnect()
                else:
                    self._brokers.keep(node.node, node.connection)
                if node.buffer is not None:
                    self._brokers.buffers.release(node.buffer)
                    node.buffer = None
                del self._nodes[number]

    def _check_topic(self, cursor: PartitionCursor) -> None:
        """Stop if it is another topic of the same name, once what was fetched is taken."""
        metadata = self._brokers.metadata
        cursor.see(metadata.view.topic_id(cursor.partition.topic), metadata.source)
        if cursor.topic.is_recreated and not cursor.is_undecoded and self._may_raise(cursor):
            watermarks = self._watermarks.attempt(cursor.partition)
            if watermarks is not None:
                metadata.note_deleted(cursor.topic.topic_id)
                partition, offset = cursor.partition, cursor.passed
                self._stop(cursor, TopicRecreatedError(partition, offset, earliest=watermarks[0]))

    def _is_in_range(self, cursor: PartitionCursor) -> bool:
        watermarks = self._watermarks.attempt(cursor.partition)
        if watermarks is None:
            return False
        earliest, latest = watermarks
        if earliest <= cursor.offset <= latest:
            cursor.is_out_of_range = False
            return True
        if self._may_raise(cursor):
            partition, offset = cursor.partition, cursor.offset
            self._stop(
                cursor, OffsetOutOfRangeError(partition, offset, earliest=earliest, latest=latest)
            )
        return False

    def _may_raise(self, cursor: PartitionCursor) -> bool:
        return all(raised is not cursor for raised, _ in self._raised)

    def _follow(self, cursor: PartitionCursor, number: int) -> None:
        node = self._nodes.setdefault(number, _Node(number))
        del self._leaderless[cursor.partition]
        node.cursors[cursor.partition] = cursor
        cursor.follow(self._brokers.metadata.view.leadership(cursor.partition).epoch)
        if cursor.is_new:
            # The request in flight may wait for other partitions' records for long, and a broker
            # handles one request of a connection at a time.
            cursor.is_new = False
            node.disconnect()
