"""Several brokers on loopback that lead the partitions of one topic, each in its own view."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, final

from pyspark_kafka.domain.topic_partition import TopicPartition

from .honest_cluster import LEADER_EPOCH
from .hostile_broker import HOST, HostileBroker

TOPIC: Final = "t"


@final
class HostileCluster:
    """Brokers with the node ids 0, 1, ...; broker 0 leads all partitions at first.

    Each broker has its own logs, so that a test decides what was replicated, and its own view of
    the leaders, so that a broker may not learn of an election.
    """

    def __init__(self, brokers: int, partitions: int) -> None:
        self.brokers = [HostileBroker((TOPIC,), partitions) for _ in range(brokers)]
        numbers = range(partitions)
        self._views = [dict.fromkeys(numbers, (0, LEADER_EPOCH)) for _ in self.brokers]
        nodes = [
            {"node_id": node, "host": HOST, "port": broker.server_address[1], "rack": None}
            for node, broker in enumerate(self.brokers)
        ]
        for node, broker in enumerate(self.brokers):
            broker.cluster.node = node
            broker.cluster.nodes = nodes
            broker.cluster.leader_of = self._view(node)

    def _view(self, node: int) -> Any:
        return lambda partition: self._views[node][partition.partition]

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(broker.bootstrap_servers for broker in self.brokers)

    def elect(self, partition: TopicPartition, leader: int, *, unknown_to: int = -1) -> None:
        """Give a partition a leader in a new epoch; one broker may not learn of it."""
        number = partition.partition
        epoch = 1 + max(view[number][1] for view in self._views)
        for node, view in enumerate(self._views):
            if node != unknown_to:
                view[number] = leader, epoch

    def append_batch(self, partition: TopicPartition, batch: bytes) -> None:
        """Append a batch to the logs of all brokers."""
        for broker in self.brokers:
            broker.cluster.logs[partition].append(batch)


@contextmanager
def hostile_cluster(brokers: int = 2, partitions: int = 1) -> Iterator[HostileCluster]:
    """Run brokers; what they did wrong themselves is raised at the end."""
    cluster = HostileCluster(brokers, partitions)
    try:
        yield cluster
    finally:
        for broker in cluster.brokers:
            broker.close()
    for broker in cluster.brokers:
        if broker.failures:
            raise broker.failures[0]
