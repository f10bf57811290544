"""Descriptions of a cluster in memory."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final, final

from ...domain.cluster.topics import Broker, PartitionDescription, TopicDescription
from ...domain.security.rights import Operation
from ...ports.cluster import ClusterDescriber
from .cluster import ADDRESS, MemoryCluster

_BROKER: Final = 0
_OPERATIONS: Final = frozenset({Operation.DESCRIBE, Operation.READ, Operation.WRITE})
_PARTITION: Final = PartitionDescription(_BROKER, frozenset({_BROKER}), frozenset({_BROKER}))


@final
class MemoryClusterDescriber(ClusterDescriber):
    """Describes a ``MemoryCluster``: one broker, without sizes and configuration."""

    def __init__(self, cluster: MemoryCluster) -> None:
        self._cluster = cluster

    def brokers(self) -> Sequence[Broker]:
        self._cluster.topics()
        return [Broker(_BROKER, ADDRESS, 0)]

    def replica_selector(self) -> str | None:
        self._cluster.topics()
        return ""

    def api_versions(self) -> Mapping[int, tuple[int, int]] | None:
        return None

    def describe_topics(self, topics: Collection[str]) -> Mapping[str, TopicDescription]:
        sizes = self._cluster.topics()
        return {
            topic: TopicDescription(
                dict.fromkeys(range(sizes[topic]), _PARTITION), operations=_OPERATIONS
            )
            for topic in topics
            if topic in sizes
        }

    def group_operations(self, group_id: str) -> frozenset[Operation] | None:
        self._cluster.committed(group_id)
        return _OPERATIONS - {Operation.WRITE}

    def transactional_id_operations(self, transactional_id: str) -> frozenset[Operation] | None:
        self._cluster.describe_transaction(transactional_id)
        return frozenset({Operation.DESCRIBE, Operation.WRITE})

    def close(self) -> None:
        """Do nothing: the cluster belongs to the caller."""
