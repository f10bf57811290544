"""Clusters in which the contract suites test a client, and the base of those suites."""

from __future__ import annotations

import enum
import os
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar, Final, final

import pytest

from ..bootstrap.container import Container, SinkContainer, container_for, sink_container_for
from ..domain.continuous.settings import ContinuousSettings
from ..domain.options.option import QueryKind
from ..domain.options.sink import SinkOptions, parse_sink_options
from ..domain.options.source import SourceOptions, parse_source_options, with_any_topic
from ..domain.reading.ranges import OffsetRange
from ..domain.reading.records import ALL_COLUMNS
from ..domain.topic_partition import TopicPartition
from ..ports.client import Client
from ..ports.clock import Deadline
from ..ports.continuous import StreamClient
from .fixtures import required_fixture

COMMITTED: Final = {"kafka__isolation__level": "read_committed"}

PATIENCE_S: Final = float(os.environ.get("PYSPARK_KAFKA_TEST_PATIENCE_S", "30"))
"""How long a test waits for an expected event, by default."""


class Capability(enum.Enum):
    """A feature that a world declares; tests that need an undeclared one are skipped."""

    ADD_PARTITIONS = "adding partitions to topics"
    COMPRESSION = "topics with a `compression.type`"
    CONTINUOUS = "continuous queries"
    CONTINUOUS_TRANSACTIONS = "continuous queries with exactly-once delivery"
    CORRUPTION = "damaging stored records"
    DELETE_RECORDS = "deleting records"
    DELETE_TOPICS = "deleting topics"
    DESCRIBED_TRANSACTIONS = "listing and describing transactions, brokers from Kafka 3.0 on"
    GROUPS = "committed offsets of consumer groups"
    HEADERS = "record headers"
    LIMITS = "topics with a `max.message.bytes`, and compacted ones that take no record without key"
    LOG_APPEND_TIME = "topics with a `message.timestamp.type`"
    OUTAGES = "clusters that do not answer"
    RECREATED_RANGES = "detecting recreated topics while a range is read"
    RECREATED_STREAMS = "detecting recreated topics while a continuous query reads"
    TIMESTAMP_LIMITS = "topics with a `message.timestamp.before.max.ms`, brokers from Kafka 3.6 on"
    TIMESTAMPS = "record timestamps, and offsets by timestamp"
    TRANSACTIONAL_WRITES = "transactions that one process begins and another ends"
    TRANSACTIONS = "transactions that are committed and aborted"


ALL: Final = frozenset(Capability)
"""The capabilities of Apache Kafka."""


@final
@dataclass(frozen=True, slots=True)
class Record:
    """A record to produce; ``timestamp`` is in milliseconds since the epoch."""

    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp: int = 1_700_000_000_000


def numbered(start: int, end: int) -> list[Record]:
    """Return records with the values ``v<start>`` to ``v<end - 1>``."""
    return [Record(b"v%d" % number) for number in range(start, end)]


def unique_name() -> str:
    """Return a name that no topic or group has, also on a cluster that outlives the tests."""
    return f"t{uuid.uuid4().hex}"


def await_until(condition: Callable[[], bool], seconds: float = PATIENCE_S) -> None:
    """Wait until a condition is true, and fail if it is not in time."""
    assert Deadline.after(seconds).poll(condition, 0.02), "the condition did not become true"


class World(ABC):
    """A cluster that tests can modify, and the client that reads from it.

    A subclass provides the cluster's address, creates topics, produces records, and declares its
    ``capabilities``: a method that belongs to a ``Capability`` is called only if it is declared.
    The suites close the world.
    """

    capabilities: frozenset[Capability] = ALL

    def __init__(self, client: str, fresh_name: Callable[[], str] = unique_name) -> None:
        """Take a value of the option ``client``, and a source of new names."""
        self.client = client
        self.fresh_name = fresh_name
        self._closers: list[Callable[[], object]] = []

    @property
    @abstractmethod
    def addresses(self) -> Mapping[str, str]:
        """The options that connect to the cluster, such as ``kafka.bootstrap.servers``."""

    @property
    def unreachable(self) -> Mapping[str, str]:
        """Options with which no broker answers, and requests soon time out (``OUTAGES``)."""
        raise NotImplementedError

    @abstractmethod
    def topic(self, partitions: int = 1, **config: str) -> str:
        """Create a topic with a new name, and return that.

        ``config`` is the topic's configuration, with ``__`` for a dot. A world ignores settings
        that it does not support.
        """

    def create(self, name: str, partitions: int = 1, **config: str) -> None:
        """Create a topic again, which was deleted (``Capability.DELETE_TOPICS``)."""
        raise NotImplementedError

    @abstractmethod
    def produce(self, partition: TopicPartition, records: Sequence[Record]) -> None:
        """Append records to a partition, and return when they are visible."""

    def add_partitions(self, topic: str, total: int) -> None:
        """Add partitions to a topic, up to ``total`` (``Capability.ADD_PARTITIONS``)."""
        raise NotImplementedError

    def delete_topic(self, topic: str) -> None:
        """Delete a topic (``Capability.DELETE_TOPICS``)."""
        raise NotImplementedError

    def delete_records(self, partition: TopicPartition, before: int) -> None:
        """Delete the records before an offset (``Capability.DELETE_RECORDS``)."""
        raise NotImplementedError

    def corrupt(self, partition: TopicPartition, offset: int) -> None:
        """Damage the record batch that has an offset (``Capability.CORRUPTION``)."""
        raise NotImplementedError

    def transaction(
        self, *, commit: bool
    ) -> AbstractContextManager[Callable[[TopicPartition, Sequence[Record]], None]]:
        """Return a context with a function that writes in a transaction (``TRANSACTIONS``).

        The transaction is committed or aborted at the end of the context, with a control record in
        each of its partitions, as in Kafka.
        """
        raise NotImplementedError

    def make_container(self, options: SourceOptions) -> Container:
        """Return a container for a query; override this to override providers."""
        return container_for(options)

    def make_sink_container(self, options: SinkOptions) -> SinkContainer:
        """Return a container for a sink; override this to override providers."""
        return sink_container_for(options)

    def sink_container(self, /, **raw: str) -> SinkContainer:
        """Return a container for a sink with further options; it is closed with the world."""
        container = self.make_sink_container(self.sink_options(**raw))
        self._closers.append(container.shutdown_resources)
        return container

    def container(self, query: QueryKind = QueryKind.BATCH, /, **raw: str) -> Container:
        """Return a container for a query with further options; it is closed with the world."""
        container = self.make_container(self.options(query, **raw))
        self._closers.append(container.shutdown_resources)
        return container

    def stream_client(
        self,
        sink: SinkOptions | None,
        group_id: str = "",
        run_id: str = "",
        first_epoch: int = -1,
        /,
        **raw: str,
    ) -> StreamClient:
        """Return a client of a continuous query (``CONTINUOUS``); it is closed with the world.

        ``raw`` are further options of the source. The group and the run are used with exactly-once
        delivery.
        """
        settings = ContinuousSettings(group_id, run_id, first_epoch)
        container = self.container(QueryKind.STREAM, **raw)
        client: Client = container.client()
        assert client.stream_client is not None, f"client '{self.client}' has no 'stream_client'"
        made = client.stream_client(container.options(), sink, settings)
        self._closers.append(made.close)
        return made

    def records(self, partition: TopicPartition, /, **raw: str) -> list[dict[str, Any]]:
        """Return all visible records of a partition, read with further options of a query."""
        container = self.container(**raw)
        latest = container.offset_fetcher().latest([partition])[partition]
        batches = container.record_reader().read(OffsetRange(partition, 0, latest), ALL_COLUMNS)
        return [row for batch in batches for row in batch.to_pylist()]

    def sink_options(self, /, **raw: str) -> SinkOptions:
        """Return the parsed options of a stream's sink; ``__`` in names stands for a dot."""
        given = {name.replace("__", "."): value for name, value in raw.items()}
        return parse_sink_options(
            {**self.addresses, "client": self.client, **given}, QueryKind.STREAM
        )

    def options(self, query: QueryKind = QueryKind.BATCH, /, **raw: str) -> SourceOptions:
        """Return parsed options; ``__`` in names stands for a dot, and topics are optional."""
        given = {
            **self.addresses,
            "client": self.client,
            "kafkaConsumer.pollTimeoutMs": "10000",
            **{name.replace("__", "."): value for name, value in raw.items()},
        }
        return parse_source_options(with_any_topic(given), query)

    def require(self, *capabilities: Capability) -> None:
        """Skip the current test unless all of these are declared."""
        missing = [one.value for one in capabilities if one not in self.capabilities]
        if missing:
            # Pytest's summary shows the place of a skip, which is here for all tests.
            test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition("::")[2].rpartition(" (")[0]
            pytest.skip(f"{test}: {type(self).__name__} does not declare: {', '.join(missing)}")

    def close(self) -> None:
        """Close all containers and clients. A second call has no effect."""
        while self._closers:
            self._closers.pop()()


class WorldContract:
    """A suite that runs in a ``World``; a subclass overrides the fixture ``world``."""

    min_capabilities: ClassVar[frozenset[Capability]] = frozenset()
    """The capabilities to declare: a suite that skips all tests passes without testing anything."""

    world = required_fixture("Return a cluster with the client under test.")

    @pytest.fixture(autouse=True)
    def _closing(self, world: World) -> Iterator[None]:
        """Close the world after each test."""
        yield
        world.close()

    def test_required_capabilities_are_declared(self, world: World) -> None:
        """No test of a capability in ``min_capabilities`` is skipped."""
        missing = self.min_capabilities - world.capabilities
        assert not missing, f"{type(world).__name__} does not declare {missing}"
