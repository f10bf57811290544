"""The cluster in memory, as a world."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, NoReturn

from dependency_injector import providers

from ..adapters.memory.cluster import ADDRESS, MemoryCluster, TopicLimits
from ..bootstrap.container import Container, SinkContainer
from ..domain.errors import BrokerUnreachableError
from ..domain.options.sink import SinkOptions
from ..domain.options.source import SourceOptions
from ..domain.topic_partition import TopicPartition
from .world import ALL, Capability, Record, World, unique_name

_NOWHERE: Final = "nowhere"


class _UnreachableCluster:
    """Fails every request."""

    def __getattr__(self, request: str) -> NoReturn:
        raise BrokerUnreachableError(_NOWHERE, 0)


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

    @property
    def unreachable(self) -> Mapping[str, str]:
        """An address at which there is no cluster."""
        return {"kafka.bootstrap.servers": _NOWHERE}

    def topic(self, partitions: int = 1, **config: str) -> str:
        name = self.fresh_name()
        self.create(name, partitions, **config)
        return name

    def create(self, name: str, partitions: int = 1, **config: str) -> None:
        """Create a topic with a given name; it has a ``message.timestamp.type``, and limits."""
        has_append_time = config.get("message__timestamp__type") == "LogAppendTime"
        limits = TopicLimits(
            float(config.get("max__message__bytes", "inf")),
            float(config.get("message__timestamp__before__max__ms", "inf")),
            config.get("cleanup__policy") == "compact",
        )
        self.cluster.create_topic(name, partitions, has_append_time=has_append_time, limits=limits)

    def produce(self, partition: TopicPartition, records: Sequence[Record]) -> None:
        self._produce(partition, records, None)

    def add_partitions(self, topic: str, total: int) -> None:
        self.cluster.add_partitions(topic, total)

    def delete_topic(self, topic: str) -> None:
        self.cluster.delete_topic(topic)

    def delete_records(self, partition: TopicPartition, before: int) -> None:
        self.cluster.delete_records({partition: before})

    def corrupt(self, partition: TopicPartition, offset: int) -> None:
        self.cluster.corrupt(partition, offset)

    @contextmanager
    def transaction(
        self, *, commit: bool
    ) -> Iterator[Callable[[TopicPartition, Sequence[Record]], None]]:
        number = self.cluster.begin_transaction()
        yield lambda partition, records: self._produce(partition, records, number)
        self.cluster.end_transaction(number, commit=commit)

    def make_container(self, options: SourceOptions) -> Container:
        container = super().make_container(options)
        is_there = options.bootstrap_servers != _NOWHERE
        container.memory_cluster.override(
            providers.Object(self.cluster if is_there else _UnreachableCluster())
        )
        return container

    def make_sink_container(self, options: SinkOptions) -> SinkContainer:
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
