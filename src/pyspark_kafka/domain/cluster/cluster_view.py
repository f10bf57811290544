"""The brokers, topics and leaders of a cluster, as one broker described them."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple, final

from ..reading.leader_epochs import NO_EPOCH

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from ..topic_partition import TopicPartition
    from .backoff import Address
    from .topics import Broker


@final
class Leadership(NamedTuple):
    """A partition's leader, ``None`` while there is none, and its epoch."""

    node: int | None
    epoch: int = NO_EPOCH


@final
@dataclass(frozen=True, slots=True)
class TopicView:
    """The partitions of a topic by their numbers, and its id on clusters that have ids."""

    partitions: Mapping[int, Leadership] = field(default_factory=lambda: MappingProxyType({}))
    topic_id: UUID | None = None
    error_code: int = 0
    """Kafka's error code for the topic, 0 if there is none."""


_UNKNOWN_TOPIC: Final = TopicView()
_UNKNOWN_PARTITION: Final = Leadership(None)


@final
@dataclass(frozen=True, slots=True)
class ClusterView:
    """A description of a cluster, with the topics that were asked for."""

    brokers: Mapping[int, Broker] = field(default_factory=lambda: MappingProxyType({}))
    topics: Mapping[str, TopicView] = field(default_factory=lambda: MappingProxyType({}))

    def topic(self, name: str) -> TopicView:
        """Return a topic; one that is not known has no partitions."""
        return self.topics.get(name, _UNKNOWN_TOPIC)

    def has(self, partition: TopicPartition) -> bool:
        """Return whether a partition is known."""
        return partition.partition in self.topic(partition.topic).partitions

    def topic_id(self, name: str) -> UUID | None:
        """Return a topic's id; ``None`` on clusters before Kafka 2.8 (KIP-516)."""
        return self.topic(name).topic_id

    def leadership(self, partition: TopicPartition) -> Leadership:
        """Return a partition's leader; a partition that is not known has none."""
        found = self.topic(partition.topic).partitions
        return found.get(partition.partition, _UNKNOWN_PARTITION)

    def is_leaderless(self, partition: TopicPartition) -> bool:
        """Return whether a partition exists and has no leader."""
        return self.has(partition) and self.leadership(partition).node is None

    def address(self, node: int) -> Address | None:
        """Return the address of a broker, ``None`` if it is not known."""
        found = self.brokers.get(node)
        return None if found is None else (found.host, found.port)

    def node_at(self, address: Address) -> int | None:
        """Return the broker that listens at an address, ``None`` if none is known to."""
        nodes = [node for node in self.brokers if self.address(node) == address]
        return nodes[0] if nodes else None
