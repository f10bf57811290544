"""Fetch requests to the leaders of partitions, with one request ahead."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, final

from kafka import errors as kafka_errors

from ..kafka_format.buffer_pool import BufferPool
from .cluster_metadata import ClusterMetadata
from .connections import FetchConnection, ReceiveBuffer
from .fetch_wire import NO_REPLICA, FetchResponse, FetchSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...domain.topic_partition import TopicPartition
    from .failures import ErrorMapper


@final
class FetchClient:
    """Connections to brokers, kept from range to range; used by one thread at a time."""

    def __init__(
        self, config: Mapping[str, Any], errors: ErrorMapper, settings: FetchSettings
    ) -> None:
        """Connect to nothing yet; ``config`` is kafka-python's, complete."""
        self._config = config
        self._errors = errors
        self._settings = settings
        self._metadata: ClusterMetadata | None = None
        self._connections: dict[int, FetchConnection] = {}
        self._replicas: dict[TopicPartition, tuple[int, float]] = {}
        self._not_before: dict[int, float] = {}
        self.buffers: BufferPool[ReceiveBuffer] = BufferPool(ReceiveBuffer)

    def fetch(
        self, partition: TopicPartition, offset: int, buffer: ReceiveBuffer
    ) -> FetchResponse | None:
        """Return what a broker has from an offset on; its records are in the buffer.

        ``None`` while the partition has no leader.

        :raises RETRIABLE_ERRORS: if another try may succeed, after ``invalidate``.
        :raises KafkaError: if none will.
        """
        node = self._node(partition)
        if node is None:
            return None
        connection = self._connection(node, partition, offset)
        if connection.in_flight is None:
            time.sleep(max(0.0, self._not_before.get(node, 0) - time.monotonic()))
            connection.send(partition, offset)
        response = connection.receive(buffer)
        self._not_before[node] = time.monotonic() + response.throttle_s
        if response.preferred_replica != NO_REPLICA:
            # As the Java client: until the metadata expire.
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
            # The next fetch raises the error, if it persists.
            self.invalidate(partition)

    def leave_replica(self, partition: TopicPartition) -> bool:
        """Return to the leader from a nearer replica; false if it was the leader already."""
        return self._replicas.pop(partition, None) is not None

    def invalidate(self, partition: TopicPartition) -> None:
        """Refresh the metadata and reconnect with the next fetch."""
        self._close_connections(idle=True)
        self._replicas.pop(partition, None)
        if self._metadata is not None:
            self._metadata.invalidate(partition)

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
            self._metadata = ClusterMetadata(self._config, self._errors)
        return self._metadata

    def _node(self, partition: TopicPartition) -> int | None:
        replica, until = self._replicas.get(partition, (NO_REPLICA, 0.0))
        return replica if time.monotonic() < until else self._opened().leader(partition)

    def _connection(self, node: int, partition: TopicPartition, offset: int) -> FetchConnection:
        """Return a connection that is idle, or that has this very request in flight."""
        kept = self._connections.get(node)
        if kept and (kept.is_expired or kept.in_flight not in (None, (partition, offset))):
            self._connections.pop(node).close()
        if node not in self._connections:
            connected = self._opened().connect(node)
            timeout_ms = min(self._config["request_timeout_ms"], self._errors.timeout_ms)
            self._connections[node] = FetchConnection(connected, self._settings, timeout_ms)
        return self._connections[node]
