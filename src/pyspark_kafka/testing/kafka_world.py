"""A real Kafka, as a world."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from ..domain.errors import MissingDependencyError
from .world import ALL, Capability, World, await_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from confluent_kafka import Producer

    from ..domain.topic_partition import TopicPartition
    from .world import Record


class RunningKafka(Protocol):
    """A running Kafka and its topics, such as ``pyspark_kafka.brokers.KafkaCluster``.

    Each method returns when every broker has seen the change.
    """

    @property
    def bootstrap_servers(self) -> str:
        """The brokers' addresses: ``host:port,host:port``."""

    @property
    def options(self) -> Mapping[str, str]:
        """The options of a query, without its topic."""

    def create_topic(
        self, name: str, partitions: int = 1, *, config: Mapping[str, str] = ...
    ) -> None:
        """Create a topic."""

    def add_partitions(self, name: str, total: int) -> None:
        """Add partitions to a topic, up to ``total``."""

    def delete_topic(self, name: str) -> None:
        """Delete a topic."""

    def delete_records(self, before: Mapping[tuple[str, int], int]) -> None:
        """Delete the records before an offset, by topic and partition."""

    def corrupt_batch(self, topic: str, partition: int, offset: int) -> None:
        """Damage the stored record batch that holds an offset (``Capability.CORRUPTION``)."""


class KafkaWorld(World):
    """A real Kafka; librdkafka's producer writes to it, whichever client reads.

    Needs the extra ``confluent``. The tests write old timestamps: set ``log.retention.ms=-1`` on
    your own cluster.
    """

    def __init__(
        self,
        client: str,
        fresh_name: Callable[[], str],
        cluster: RunningKafka,
        capabilities: frozenset[Capability] = ALL,
    ) -> None:
        """Take a running cluster, which stays running, and a source of new names.

        ``capabilities`` are the client's; the cluster has all of them.

        :raises MissingDependencyError: if confluent-kafka is not installed.
        """
        super().__init__(client, fresh_name)
        self.capabilities = capabilities
        self._cluster = cluster
        self._producer = self._new_producer()
        self._closers.append(lambda: _close(self._producer))

    @property
    def addresses(self) -> Mapping[str, str]:
        """The options of the cluster."""
        return self._cluster.options

    @property
    def unreachable(self) -> Mapping[str, str]:
        """The options of a port on which nothing listens."""
        return {
            "kafka.bootstrap.servers": "127.0.0.1:1",
            "kafka.default.api.timeout.ms": "500",
            "kafkaConsumer.pollTimeoutMs": "500",
        }

    def topic(self, partitions: int = 1, **config: str) -> str:
        name = self.fresh_name()
        self.create(name, partitions, **config)
        return name

    def create(self, name: str, partitions: int = 1, **config: str) -> None:
        """Create a topic with a given name."""
        self._cluster.create_topic(
            name,
            partitions,
            config={option.replace("__", "."): value for option, value in config.items()},
        )

    def produce(self, partition: TopicPartition, records: Sequence[Record]) -> None:
        produce_with(self._producer, partition, records)

    def add_partitions(self, topic: str, total: int) -> None:
        self._cluster.add_partitions(topic, total)
        # A producer caches a topic's metadata, and would not write to a new partition.
        self._renew_producer()

    def delete_topic(self, topic: str) -> None:
        """Delete a topic."""
        self._cluster.delete_topic(topic)
        self._renew_producer()

    def delete_records(self, partition: TopicPartition, before: int) -> None:
        """Delete records with a request, as ``kafka-delete-records`` does."""
        self._cluster.delete_records({(partition.topic, partition.partition): before})

    def corrupt(self, partition: TopicPartition, offset: int) -> None:
        self._cluster.corrupt_batch(partition.topic, partition.partition, offset)

    @contextmanager
    def transaction(
        self, *, commit: bool
    ) -> Iterator[Callable[[TopicPartition, Sequence[Record]], None]]:
        """Yield a function that writes within a transaction of a new producer."""
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
        _close(producer)
        self._await_markers(written)

    def _await_markers(self, partitions: set[TopicPartition]) -> None:
        """Wait for the control records, which brokers write after they respond."""
        ends = [
            self.container(kafka__isolation__level=level).offset_fetcher()
            for level in ("read_committed", "read_uncommitted")
        ]
        await_until(lambda: ends[0].latest(partitions) == ends[1].latest(partitions))

    def _renew_producer(self) -> None:
        _close(self._producer)
        self._producer = self._new_producer()

    def _new_producer(self, config: Mapping[str, Any] | None = None) -> Producer:
        try:
            from confluent_kafka import Producer
        except ModuleNotFoundError as error:
            raise MissingDependencyError(
                "confluent-kafka, which KafkaWorld writes with,", "confluent"
            ) from error
        return Producer(
            {
                "bootstrap.servers": self._cluster.bootstrap_servers,
                "linger.ms": 0,
                # A new partition may reject the first batch and accept the second: with one
                # request at a time the order is kept. An idempotent producer (KIP-98) keeps it
                # too, but waits 0.5 s for its id, in each test.
                "max.in.flight.requests.per.connection": 1,
                **(config or {}),
            }
        )


def _close(producer: Producer) -> None:
    """Close a producer, which otherwise logs to stderr when its cluster ends, without waiting."""
    producer.purge()
    producer.close()


def produce_with(producer: Producer, partition: TopicPartition, records: Sequence[Record]) -> None:
    """Append records with a producer, and wait for their acknowledgement."""
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
