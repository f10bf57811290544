"""The cluster in memory, as a world."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..adapters.memory.cluster import ADDRESS, MemoryCluster
from .capability import ALL, Capability
from .world import World, unique_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ..bootstrap.container import Container, SinkContainer
    from ..domain.options import SinkOptions, SourceOptions
    from ..domain.topic_partition import TopicPartition
    from .world import Record


class MemoryWorld(World):
    """A new ``MemoryCluster``, or a given one."""

    capabilities = ALL - {Capability.COMPRESSION}

    def __init__(
        self,
        client: str = "memory",
        fresh_name: Callable[[], str] = unique_name,
        cluster: MemoryCluster | None = None,
    ) -> None:
        super().__init__(client, fresh_name)
        self.cluster = cluster or MemoryCluster()

    @property
    def addresses(self) -> Mapping[str, str]:
        """An address that is ignored: the cluster belongs to the container."""
        return {"kafka.bootstrap.servers": ADDRESS}

    def topic(self, partitions: int = 1, **_config: str) -> str:
        """Create a topic; its configuration is ignored."""
        name = self.fresh_name()
        self.cluster.create_topic(name, partitions)
        return name

    def produce(self, partition: TopicPartition, records: Sequence[Record]) -> None:
        """Append records."""
        self._produce(partition, records, None)

    def add_partitions(self, topic: str, total: int) -> None:
        """Add partitions to a topic."""
        self.cluster.add_partitions(topic, total)

    def delete_topic(self, topic: str) -> None:
        """Delete a topic."""
        self.cluster.delete_topic(topic)

    def delete_records(self, partition: TopicPartition, before: int) -> None:
        """Delete records as retention does."""
        self.cluster.delete_records({partition: before})

    @contextmanager
    def transaction(
        self, *, commit: bool
    ) -> Iterator[Callable[[TopicPartition, Sequence[Record]], None]]:
        """Yield a function that writes within a transaction."""
        number = self.cluster.begin_transaction()
        yield lambda partition, records: self._produce(partition, records, number)
        self.cluster.end_transaction(number, commit=commit)

    def make_container(self, options: SourceOptions) -> Container:
        """Return a container with this cluster."""
        container = super().make_container(options)
        container.memory_cluster.override(self.cluster)
        return container

    def make_sink_container(self, options: SinkOptions) -> SinkContainer:
        """Return a sink's container with this cluster."""
        container = super().make_sink_container(options)
        container.memory_cluster.override(self.cluster)
        return container

    def _produce(
        self, partition: TopicPartition, records: Sequence[Record], transaction: int | None
    ) -> None:
        for record in records:
            self.cluster.produce(
                partition.topic,
                record.value,
                key=record.key,
                partition=partition.partition,
                headers=record.headers,
                timestamp=record.timestamp,
                transaction=transaction,
            )
