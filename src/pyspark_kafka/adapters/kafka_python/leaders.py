"""Which broker leads a partition, and connections to it, by kafka-python's connection manager."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any, Final, final

from kafka import TopicPartition as ClientPartition
from kafka import errors as kafka_errors
from kafka.net.selector import NetworkSelector

from .connecting import ConnectionManager

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...domain.topic_partition import TopicPartition
    from .failures import Cluster

NOBODY: Final = (None, -1)
"""What metadata say of a partition without a leader."""

_MAX_AGE: Final = "metadata_max_age_ms"


@final
class Leaders:
    """Finds leaders and connects to them, from the thread that calls.

    No thread of kafka-python's runs here: its event loop turns while something is asked of it.
    """

    def __init__(
        self, config: Mapping[str, Any], cluster: Cluster, *, for_writing: bool = False
    ) -> None:
        """Connect to nothing yet; ``config`` is kafka-python's, whole.

        Who writes goes to many topics at once, and a cluster may create those that it lacks.
        """
        self._cluster = cluster
        self._network = NetworkSelector(**config)
        self._manager = ConnectionManager(self._network, **config)
        # A topic that was deleted is not to come into being again because it was read from.
        self._manager.cluster.config["allow_auto_create_topics"] = for_writing
        self._for_writing = for_writing
        self._topics: set[str] = set()
        self._unsure: set[TopicPartition] = set()
        self._refreshed = -math.inf

    def node(self, partition: TopicPartition) -> int | None:
        """Give the leader's number; ``None`` while there is none.

        :raises KafkaError: if no broker answers in time.
        """
        self._want(partition.topic)
        theirs = ClientPartition(partition.topic, partition.partition)
        metadata = self._manager.cluster
        if partition in self._unsure or metadata.leader_for_partition(theirs) in NOBODY:
            self.refresh()
        leader: int | None = metadata.leader_for_partition(theirs)
        return None if leader in NOBODY else leader

    def partitions(self, topic: str) -> int:
        """Give how many partitions a topic has, 0 if there is no such topic.

        :raises KafkaError: if no broker answers in time, or the topic's name is none.
        """
        self._want(topic)
        metadata = self._manager.cluster
        age_ms = 1_000 * (time.monotonic() - self._refreshed)
        if not metadata.partitions_for_topic(topic) or age_ms > metadata.config[_MAX_AGE]:
            self.refresh()
        if topic in metadata.unauthorized_topics:
            raise kafka_errors.TopicAuthorizationFailedError(topic)
        return len(metadata.partitions_for_topic(topic) or ())

    def refresh(self) -> None:
        """Ask for the metadata of the topics that are wanted.

        :raises KafkaError: if no broker answers in time.
        """
        self._run(self._manager.call_soon(self._manager.cluster.refresh_metadata))
        self._refreshed = time.monotonic()
        self._unsure.clear()

    def nodes(self) -> list[int]:
        """Give the numbers of all brokers; raises as ``refresh`` does."""
        self._bootstrap()
        return [broker.node_id for broker in self._manager.cluster.brokers()]

    def ask(self, request: Any, node: int | None = None) -> Any:
        """Send a request to a broker, or to any, and give its answer.

        :raises KafkaError: if it does not answer in time.
        """
        self._bootstrap()
        if node is not None:
            self._await_backoff(node)
        return self._run(self._manager.send(request, node))

    def _want(self, topic: str) -> None:
        if topic not in self._topics:
            self._topics = {*self._topics, topic} if self._for_writing else {topic}
        # set_topics and add_topic would begin to ask by themselves.
        self._manager.cluster._topics = self._topics  # noqa: SLF001
        self._bootstrap()

    def _bootstrap(self) -> None:
        if not self._manager.bootstrapped:
            self._manager.bootstrap(self._cluster.timeout_ms)

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

    def _run(self, future: Any) -> Any:
        return self._network.run(self._manager.wait_for, future, self._cluster.timeout_ms)
