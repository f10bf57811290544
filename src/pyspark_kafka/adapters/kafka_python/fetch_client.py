"""Fetches from whichever broker leads a partition, with one request ahead."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, final

from kafka import errors as kafka_errors

from ..kafka_format.buffer_pool import BufferPool
from .fetch_connection import FetchConnection, ReceiveBuffer
from .fetch_wire import NO_REPLICA, FetchResponse, FetchSettings
from .leaders import Leaders

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...domain.topic_partition import TopicPartition
    from .failures import Cluster


@final
class FetchClient:
    """Connections to brokers, kept from range to range; used by one thread at a time."""

    def __init__(
        self, config: Mapping[str, Any], cluster: Cluster, settings: FetchSettings
    ) -> None:
        """Connect to nothing yet; ``config`` is kafka-python's, whole."""
        self._config = config
        self._cluster = cluster
        self._settings = settings
        self._leaders: Leaders | None = None
        self._connections: dict[int, FetchConnection] = {}
        self._replicas: dict[TopicPartition, tuple[int, float]] = {}
        self._not_before: dict[int, float] = {}
        self.buffers: BufferPool[ReceiveBuffer] = BufferPool(ReceiveBuffer)

    def fetch(
        self, partition: TopicPartition, offset: int, buffer: ReceiveBuffer
    ) -> FetchResponse | None:
        """Ask for what stands at an offset, and wait for the answer, which comes into the buffer.

        ``None`` while nobody leads the partition.

        :raises RETRIABLE_ERRORS: if it is worth another try, once ``forget`` was called.
        :raises KafkaError: if it is not.
        """
        node = self._node(partition)
        if node is None:
            return None
        connection = self._connection(node, partition, offset)
        if connection.in_flight is None:
            self._await_throttle(node)
            connection.send(partition, offset)
        response = connection.receive(buffer)
        self._not_before[node] = time.monotonic() + response.throttle_s
        if response.preferred_replica != NO_REPLICA:
            # For as long as the Java client keeps to it: until metadata are to be asked for anew.
            until = time.monotonic() + self._config["metadata_max_age_ms"] / 1_000
            self._replicas[partition] = response.preferred_replica, until
        return response

    def send_ahead(self, partition: TopicPartition, offset: int) -> None:
        """Send the next request, unless the broker asked for a pause (KIP-219)."""
        try:
            node = self._node(partition)
            if node is None or time.monotonic() < self._not_before.get(node, 0):
                return
            self._connection(node, partition, offset).send(partition, offset)
        except (OSError, kafka_errors.KafkaError):
            # The next fetch says what is wrong, if it still is.
            self.forget(partition)

    def leave_replica(self, partition: TopicPartition) -> bool:
        """Go back from a nearer replica to the leader; false if it was the leader already."""
        return self._replicas.pop(partition, None) is not None

    def forget(self, partition: TopicPartition) -> None:
        """Ask anew who leads the partition, and connect anew, with the next fetch."""
        self.drop_answers(everything=True)
        self._replicas.pop(partition, None)
        if self._leaders is not None:
            self._leaders.forget(partition)

    def drop_answers(self, *, everything: bool = False) -> None:
        """Hang up where an answer is to come that nobody waits for any more."""
        for node, connection in list(self._connections.items()):
            if everything or connection.in_flight:
                self._hang_up(node)

    def close(self) -> None:
        """Hang up on every broker; a second call does nothing."""
        self.drop_answers(everything=True)
        if self._leaders is not None:
            self._leaders.close()
            self._leaders = None

    def _led(self) -> Leaders:
        if self._leaders is None:
            self._leaders = Leaders(self._config, self._cluster)
        return self._leaders

    def _node(self, partition: TopicPartition) -> int | None:
        replica, until = self._replicas.get(partition, (NO_REPLICA, 0.0))
        return replica if time.monotonic() < until else self._led().node(partition)

    def _connection(self, node: int, partition: TopicPartition, offset: int) -> FetchConnection:
        """Give a connection over which nothing else is to come than the answer to this."""
        kept = self._connections.get(node)
        if kept and (kept.is_expired or kept.in_flight not in (None, (partition, offset))):
            self._hang_up(node)
        if node not in self._connections:
            connected = self._led().connect(node)
            timeout_ms = min(self._config["request_timeout_ms"], self._cluster.timeout_ms)
            self._connections[node] = FetchConnection(connected, self._settings, timeout_ms)
        return self._connections[node]

    def _hang_up(self, node: int) -> None:
        self._connections.pop(node).close()

    def _await_throttle(self, node: int) -> None:
        pause = self._not_before.get(node, 0) - time.monotonic()
        if pause > 0:
            time.sleep(pause)
