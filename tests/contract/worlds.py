"""Clusters in which a contract can be put to the test: a real Kafka, and the one in memory."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from confluent_kafka import Producer
from dependency_injector import providers

from pyspark_kafka.adapters.confluent.librdkafka import LibraryUnusableError
from pyspark_kafka.adapters.confluent.record_reader import ConfluentRecordReader
from pyspark_kafka.adapters.memory.cluster import MemoryCluster
from pyspark_kafka.container import Container, container_for
from pyspark_kafka.domain.options import Query, SourceOptions, parse_source_options
from pyspark_kafka.domain.topic_partition import TopicPartition

if TYPE_CHECKING:
    import ctypes
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pyspark_kafka.brokers import KafkaCluster


@dataclass(frozen=True)
class Record:
    """What a test produces."""

    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp: int = 1_700_000_000_000


def await_until(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    """Wait for a condition, and fail if it does not come about."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come about"
        time.sleep(0.02)


class World(ABC):
    """A cluster, as a test arranges it."""

    def __init__(self, client: str, fresh_name: Callable[[], str]) -> None:
        self.client = client
        self.fresh_name = fresh_name
        self._containers: list[Container] = []

    def container(self, **raw: str) -> Container:
        """Give a container for options besides the cluster's; closed with the world."""
        container = self._container(self.options(**raw))
        self._containers.append(container)
        return container

    def options(self, **raw: str) -> SourceOptions:
        """Parse batch options; ``__`` in a name stands for a dot."""
        given = {name.replace("__", "."): value for name, value in raw.items()}
        return parse_source_options(
            {
                **self.addresses,
                "client": self.client,
                "kafkaConsumer.pollTimeoutMs": "10000",
                **({} if {"assign", "subscribePattern"} & given.keys() else {"subscribe": "any"}),
                **given,
            },
            Query.BATCH,
        )

    def close(self) -> None:
        """Give back what was made."""
        for container in self._containers:
            container.shutdown_resources()

    @property
    @abstractmethod
    def addresses(self) -> Mapping[str, str]:
        """Options that lead a client to the cluster."""

    @abstractmethod
    def topic(self, partitions: int = 1, **config: str) -> str:
        """Create a topic of a fresh name."""

    @abstractmethod
    def add_partitions(self, topic: str, total: int) -> None: ...

    @abstractmethod
    def delete_topic(self, topic: str) -> None: ...

    @abstractmethod
    def delete_records(self, partition: TopicPartition, before: int) -> None: ...

    @abstractmethod
    def produce(self, partition: TopicPartition, records: Sequence[Record]) -> None: ...

    @abstractmethod
    @contextmanager
    def transaction(
        self, *, commit: bool
    ) -> Iterator[Callable[[TopicPartition, Sequence[Record]], None]]:
        """Give a way to write within a transaction, which ends with the context."""
        yield lambda _partition, _records: None

    @abstractmethod
    def _container(self, options: SourceOptions) -> Container: ...


@dataclass
class MemoryWorld(World):
    """The cluster in memory."""

    client: str
    fresh_name: Callable[[], str]
    cluster: MemoryCluster = field(default_factory=MemoryCluster)
    addresses: ClassVar[Mapping[str, str]] = {"kafka.bootstrap.servers": "memory"}

    def __post_init__(self) -> None:
        super().__init__(self.client, self.fresh_name)

    def topic(self, partitions: int = 1, **_config: str) -> str:
        name = self.fresh_name()
        self.cluster.create_topic(name, partitions)
        return name

    def add_partitions(self, topic: str, total: int) -> None:
        self.cluster.add_partitions(topic, total)

    def delete_topic(self, topic: str) -> None:
        self.cluster.delete_topic(topic)

    def delete_records(self, partition: TopicPartition, before: int) -> None:
        self.cluster.delete_records({partition: before})

    def produce(self, partition: TopicPartition, records: Sequence[Record]) -> None:
        self._produce(partition, records, None)

    @contextmanager
    def transaction(
        self, *, commit: bool
    ) -> Iterator[Callable[[TopicPartition, Sequence[Record]], None]]:
        number = self.cluster.begin_transaction()
        yield lambda partition, records: self._produce(partition, records, number)
        self.cluster.end_transaction(number, commit=commit)

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

    def _container(self, options: SourceOptions) -> Container:
        container = container_for(options)
        container.memory_cluster.override(self.cluster)
        return container


class KafkaWorld(World):
    """A real Kafka, written to by librdkafka's producer whichever client reads."""

    def __init__(self, client: str, fresh_name: Callable[[], str], cluster: KafkaCluster) -> None:
        super().__init__(client, fresh_name)
        self._cluster = cluster
        self._producer = Producer(self._producer_config())

    @property
    def addresses(self) -> Mapping[str, str]:
        return self._cluster.options

    def topic(self, partitions: int = 1, **config: str) -> str:
        name = self.fresh_name()
        self.create(name, partitions, **config)
        return name

    def create(self, name: str, partitions: int = 1, **config: str) -> None:
        """Create a topic of a given name."""
        self._cluster.create_topic(
            name,
            partitions,
            config={option.replace("__", "."): value for option, value in config.items()},
        )

    def add_partitions(self, topic: str, total: int) -> None:
        self._cluster.add_partitions(topic, total)
        # A producer keeps what it knows of a topic, and does not write to a partition it misses.
        self._producer = Producer(self._producer_config())

    def delete_topic(self, topic: str) -> None:
        self._cluster.delete_topic(topic)
        self._producer = Producer(self._producer_config())

    def delete_records(self, partition: TopicPartition, before: int) -> None:
        self._cluster.delete_records({(partition.topic, partition.partition): before})

    def produce(self, partition: TopicPartition, records: Sequence[Record]) -> None:
        _produce(self._producer, partition, records)

    @contextmanager
    def transaction(
        self, *, commit: bool
    ) -> Iterator[Callable[[TopicPartition, Sequence[Record]], None]]:
        producer = Producer(self._producer_config() | {"transactional.id": self.fresh_name()})
        producer.init_transactions()
        producer.begin_transaction()
        written: set[TopicPartition] = set()

        def write(partition: TopicPartition, records: Sequence[Record]) -> None:
            written.add(partition)
            _produce(producer, partition, records)

        yield write
        if commit:
            producer.commit_transaction()
        else:
            producer.abort_transaction()
        self._await_markers(written)

    def _await_markers(self, partitions: set[TopicPartition]) -> None:
        """Wait for the control records, which a broker writes after it has answered."""
        ends = [
            self.container(kafka__isolation__level=level).offset_fetcher()
            for level in ("read_committed", "read_uncommitted")
        ]
        await_until(lambda: ends[0].latest(partitions) == ends[1].latest(partitions))

    def _producer_config(self) -> dict[str, Any]:
        return {"bootstrap.servers": self._cluster.bootstrap_servers, "linger.ms": 0}

    def _container(self, options: SourceOptions) -> Container:
        return container_for(options)


class ConsumeWorld(KafkaWorld):
    """The same, read by the client that confluent-kafka falls back on."""

    def __init__(self, client: str, fresh_name: Callable[[], str], cluster: KafkaCluster) -> None:
        super().__init__(client, fresh_name, cluster)
        self._readers: list[ConfluentRecordReader] = []

    def close(self) -> None:
        for reader in self._readers:
            reader.close()
        super().close()

    def _container(self, options: SourceOptions) -> Container:
        container = super()._container(options)
        self._readers.append(ConfluentRecordReader(options, library=_no_library))
        container.record_reader.override(providers.Object(self._readers[-1]))
        return container


def _no_library() -> ctypes.CDLL:
    raise LibraryUnusableError("what a test took away")


def _produce(producer: Producer, partition: TopicPartition, records: Sequence[Record]) -> None:
    failures = []
    for record in records:
        producer.produce(
            partition.topic,
            record.value,
            record.key,
            partition.partition,
            headers=list(record.headers),
            timestamp=record.timestamp,
            on_delivery=lambda error, _message: failures.append(error) if error else None,
        )
    assert producer.flush(30) == 0
    assert not failures
