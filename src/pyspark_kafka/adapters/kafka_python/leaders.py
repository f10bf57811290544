"""Which broker leads a partition, and connections to it, by kafka-python's connection manager."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, final

from kafka import TopicPartition as ClientPartition
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...domain.topic_partition import TopicPartition
    from .failures import Cluster

NOBODY: Final = (None, -1)
"""What metadata say of a partition without a leader."""


@final
class Leaders:
    """Finds leaders and connects to them, from the thread that calls.

    No thread of kafka-python's runs here: its event loop turns while something is asked of it.
    """

    def __init__(self, config: Mapping[str, Any], cluster: Cluster) -> None:
        """Connect to nothing yet; ``config`` is kafka-python's, whole."""
        self._cluster = cluster
        self._network = NetworkSelector(**config)
        self._manager = KafkaConnectionManager(self._network, **config)
        # A topic that was deleted is not to come into being again because it was asked for.
        self._manager.cluster.config["allow_auto_create_topics"] = False
        self._unsure: set[TopicPartition] = set()

    def node(self, partition: TopicPartition) -> int | None:
        """Give the leader's number; ``None`` while there is none.

        :raises KafkaError: if no broker answers in time.
        """
        metadata = self._manager.cluster
        # set_topics and add_topic would begin to ask by themselves.
        metadata._topics = {partition.topic}  # noqa: SLF001
        if not self._manager.bootstrapped:
            self._manager.bootstrap(self._cluster.timeout_ms)
        theirs = ClientPartition(partition.topic, partition.partition)
        if partition in self._unsure or metadata.leader_for_partition(theirs) in NOBODY:
            self._run(self._manager.call_soon(metadata.refresh_metadata))
            self._unsure.discard(partition)
        leader: int | None = metadata.leader_for_partition(theirs)
        return None if leader in NOBODY else leader

    def forget(self, partition: TopicPartition) -> None:
        """Ask anew who leads the partition before the next answer."""
        self._unsure.add(partition)

    def connect(self, node: int) -> Any:
        """Make a connection to a broker that nobody else uses: a ``KafkaConnection``.

        :raises KafkaError: if it does not answer in time.
        """
        self._await_backoff(node)
        # What metadata goes over stays in kafka-python's hands.
        connections = self._manager._conns  # noqa: SLF001
        shared = connections.pop(node, None)
        connected = self._manager.get_connection(node, refresh_metadata_on_err=False)
        try:
            self._run(connected.init_future)
        except BaseException:
            connected.close()
            raise
        finally:
            connections.pop(node, None)
            if shared is not None:
                connections[node] = shared
        return connected

    def close(self) -> None:
        """Hang up on every broker."""
        self._manager.close()
        self._network.close()

    def _await_backoff(self, node: int) -> None:
        deadline = time.monotonic() + self._cluster.timeout_ms / 1_000
        while (delay := self._manager.connection_delay(node)) > 0 and time.monotonic() < deadline:
            self._network.poll(timeout_ms=1_000 * delay)

    def _run(self, future: Any) -> None:
        self._network.run(self._manager.wait_for, future, self._cluster.timeout_ms)
