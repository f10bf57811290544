"""Clusters in which the contract suites test a client, and the base of those suites."""

from __future__ import annotations

import enum
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, final

import pytest

from ..bootstrap.container import Container, SinkContainer, container_for, sink_container_for
from ..domain.options import (
    QueryKind,
    SinkOptions,
    SourceOptions,
    parse_sink_options,
    parse_source_options,
    with_any_topic,
)
from ..domain.topic_partition import TopicPartition
from ..ports.deadline import Deadline

COMMITTED: Final = {"kafka__isolation__level": "read_committed"}


class Capability(enum.Enum):
    """A feature that a world declares; tests that need an undeclared one are skipped."""

    ADD_PARTITIONS = "adding partitions to topics"
    COMPRESSION = "topics with a `compression.type`"
    DELETE_RECORDS = "deleting records"
    DELETE_TOPICS = "deleting topics"
    GROUPS = "committed offsets of consumer groups"
    HEADERS = "record headers"
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


def await_until(condition: Callable[[], bool], seconds: float = 30.0) -> None:
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
        self._containers: list[Container | SinkContainer] = []

    @property
    @abstractmethod
    def addresses(self) -> Mapping[str, str]:
        """The options that connect to the cluster, such as ``kafka.bootstrap.servers``."""

    @abstractmethod
    def topic(self, partitions: int = 1, **config: str) -> str:
        """Create a topic with a new name, and return that.

        ``config`` is the topic's configuration, with ``__`` for a dot. A world ignores settings
        that it does not support.
        """

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
        given = {name.replace("__", "."): value for name, value in raw.items()}
        options = parse_sink_options(
            {**self.addresses, "client": self.client, **given}, QueryKind.STREAM
        )
        container = self.make_sink_container(options)
        self._containers.append(container)
        return container

    def container(self, query: QueryKind = QueryKind.BATCH, /, **raw: str) -> Container:
        """Return a container for a query with further options; it is closed with the world."""
        container = self.make_container(self.options(query, **raw))
        self._containers.append(container)
        return container

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
            pytest.skip(f"{type(self).__name__} does not declare: {', '.join(missing)}")

    def close(self) -> None:
        """Close all containers. A second call has no effect."""
        while self._containers:
            self._containers.pop().shutdown_resources()


class WorldContract:
    """A suite that runs in a ``World``; a subclass overrides the fixture ``world``."""

    @pytest.fixture
    def world(self) -> World:
        """Return a cluster with the client under test."""
        raise NotImplementedError(f"{type(self).__name__} must override the fixture 'world'")

    @pytest.fixture(autouse=True)
    def _closing(self, world: World) -> Iterator[None]:
        """Close the world after each test."""
        yield
        world.close()
