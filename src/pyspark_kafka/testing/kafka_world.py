"""A real Kafka, as a world."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from ..domain.errors import MissingDependencyError
from .capability import ALL, Capability
from .waiting import await_until
from .world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from confluent_kafka import Producer

    from ..domain.topic_partition import TopicPartition
    from .record import Record


class Cluster(Protocol):
    """What a world needs of a running Kafka; ``pyspark_kafka.brokers.KafkaCluster`` has it.

    Each method returns when every broker knows of what it did.
    """

    @property
    def bootstrap_servers(self) -> str:
        """The brokers' addresses: ``host:port,host:port``."""

    @property
    def options(self) -> Mapping[str, str]:
        """What a query needs besides its topic."""

    def create_topic(
        self, name: str, partitions: int = 1, *, config: Mapping[str, str] = ...
    ) -> None:
        """Create a topic."""

    def add_partitions(self, name: str, total: int) -> None:
        """Give a topic more partitions, ``total`` in all."""

    def delete_topic(self, name: str) -> None:
        """Delete a topic."""

    def delete_records(self, before: Mapping[tuple[str, int], int]) -> None:
        """Delete the records before an offset, by topic and partition."""


class KafkaWorld(World):
    """A real Kafka, written to by librdkafka's producer whichever client reads.

    Needs the extra ``confluent``. Records of any age have to stay: a cluster of one's own gets
    ``log.retention.ms=-1``.
    """

    def __init__(
        self,
        client: str,
        fresh_name: Callable[[], str],
        cluster: Cluster,
        capabilities: frozenset[Capability] = ALL,
    ) -> None:
        """Take a cluster that runs, and goes on running; ``unique_name`` gives fresh names.

        ``capabilities`` are the client's, as the cluster has all of them.

        :raises MissingDependencyError: if confluent-kafka is not installed.
        """
        super().__init__(client, fresh_name)
        self.capabilities = capabilities
        self._cluster = cluster
        self._producer = self._new_producer()

    @property
    def addresses(self) -> Mapping[str, str]:
        """The cluster's own options."""
        return self._cluster.options

    def topic(self, partitions: int = 1, **config: str) -> str:
        """Create a topic of a fresh name."""
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

    def produce(self, partition: TopicPartition, records: Sequence[Record]) -> None:
        """Append records, and wait until they are acknowledged."""
        produce_with(self._producer, partition, records)

    def add_partitions(self, topic: str, total: int) -> None:
        """Give a topic more partitions."""
        self._cluster.add_partitions(topic, total)
        # A producer keeps what it knows of a topic, and does not write to a partition it misses.
        self._producer = self._new_producer()

    def delete_topic(self, topic: str) -> None:
        """Delete a topic."""
        self._cluster.delete_topic(topic)
        self._producer = self._new_producer()

    def delete_records(self, partition: TopicPartition, before: int) -> None:
        """Delete records by request, as ``kafka-delete-records`` does."""
        self._cluster.delete_records({(partition.topic, partition.partition): before})

    @contextmanager
    def transaction(
        self, *, commit: bool
    ) -> Iterator[Callable[[TopicPartition, Sequence[Record]], None]]:
        """Write within a transaction of a producer of its own."""
        producer = self._new_producer({"transactional.id": self.fresh_name()})
        producer.init_transactions()
        producer.begin_transaction()
        written: set[TopicPartition] = set()

        def write(partition: TopicPartition, records: Sequence[Record]) -> None:
            written.add(partition)
            produce_with(producer, partition, records)

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

    def _new_producer(self, config: Mapping[str, Any] | None = None) -> Producer:
        try:
            from confluent_kafka import Producer
        except ModuleNotFoundError as error:
            raise MissingDependencyError(
                "confluent-kafka, with which KafkaWorld writes,", "confluent"
            ) from error
        return Producer(
            {
                "bootstrap.servers": self._cluster.bootstrap_servers,
                "linger.ms": 0,
                # A new partition may refuse the first batch and take the second: only a producer
                # whose batches are numbered (KIP-98) then keeps the order.
                "enable.idempotence": True,
                **(config or {}),
            }
        )


def produce_with(producer: Producer, partition: TopicPartition, records: Sequence[Record]) -> None:
    """Append records by a producer, and wait until they are acknowledged."""
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
