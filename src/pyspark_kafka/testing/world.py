"""A cluster in which a client can be put to the test."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

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
from .capability import ALL

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from ..domain.topic_partition import TopicPartition
    from .capability import Capability
    from .record import Record


def unique_name() -> str:
    """Give a name that no topic and no group has, on a cluster that outlives the tests too."""
    return f"t{uuid.uuid4().hex}"


class World(ABC):
    """A cluster as a test arranges it, and the client that reads from it.

    A subclass says where the cluster is, creates topics, produces records, and declares what else
    it is able to do: the methods that belong to a ``Capability`` are called only where
    ``capabilities`` holds it. The suites close it.
    """

    capabilities: frozenset[Capability] = ALL

    def __init__(self, client: str, fresh_name: Callable[[], str] = unique_name) -> None:
        """Take what the option ``client`` names, and what gives names that nobody has."""
        self.client = client
        self.fresh_name = fresh_name
        self._containers: list[Container | SinkContainer] = []

    @property
    @abstractmethod
    def addresses(self) -> Mapping[str, str]:
        """Options that lead the client to the cluster; ``kafka.bootstrap.servers`` is one."""

    @abstractmethod
    def topic(self, partitions: int = 1, **config: str) -> str:
        """Create a topic of a fresh name.

        ``config`` is the topic's configuration, where ``__`` stands for a dot. A world takes no
        notice of what it cannot configure.
        """

    @abstractmethod
    def produce(self, partition: TopicPartition, records: Sequence[Record]) -> None:
        """Append records to a partition, and return when they can be read."""

    def add_partitions(self, topic: str, total: int) -> None:
        """Give a topic more partitions, ``total`` in all (``Capability.ADD_PARTITIONS``)."""
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
        """Give a way to write within a transaction (``Capability.TRANSACTIONS``).

        It ends with the context, committed or aborted. The end takes an offset in each partition
        that was written to, as Kafka's control records do.
        """
        raise NotImplementedError

    def make_container(self, options: SourceOptions) -> Container:
        """Make the container for a query; to be overridden where a provider of it has to be."""
        return container_for(options)

    def make_sink_container(self, options: SinkOptions) -> SinkContainer:
        """Make the container for a sink; to be overridden where a provider of it has to be."""
        return sink_container_for(options)

    def sink_container(self, /, **raw: str) -> SinkContainer:
        """Give a container for a sink's options besides the cluster's; closed with the world."""
        given = {name.replace("__", "."): value for name, value in raw.items()}
        options = parse_sink_options(
            {**self.addresses, "client": self.client, **given}, QueryKind.STREAM
        )
        container = self.make_sink_container(options)
        self._containers.append(container)
        return container

    def container(self, query: QueryKind = QueryKind.BATCH, /, **raw: str) -> Container:
        """Give a container for options besides the cluster's; closed with the world."""
        container = self.make_container(self.options(query, **raw))
        self._containers.append(container)
        return container

    def options(self, query: QueryKind = QueryKind.BATCH, /, **raw: str) -> SourceOptions:
        """Parse options; ``__`` in a name stands for a dot, and topics may be left out."""
        given = {
            **self.addresses,
            "client": self.client,
            "kafkaConsumer.pollTimeoutMs": "10000",
            **{name.replace("__", "."): value for name, value in raw.items()},
        }
        return parse_source_options(with_any_topic(given), query)

    def require(self, *capabilities: Capability) -> None:
        """Skip the test that runs, unless all of these are declared."""
        missing = [one.value for one in capabilities if one not in self.capabilities]
        if missing:
            pytest.skip(f"{type(self).__name__} declares no {', no '.join(missing)}")

    def close(self) -> None:
        """Give back what was made. A second call does nothing."""
        while self._containers:
            self._containers.pop().shutdown_resources()
