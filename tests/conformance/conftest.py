"""What the suites share: queries on the run's broker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pytest

from pyspark_kafka.bootstrap.container import Container, container_for
from pyspark_kafka.domain.options import QueryKind, parse_source_options
from pyspark_kafka.testing import KafkaWorld

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark_kafka.brokers import KafkaCluster


class OpenContainer(Protocol):
    """Gives a container for a query, by its options besides the broker and the client."""

    def __call__(self, query: QueryKind, **options: str) -> Container: ...


@pytest.fixture
def world(kafka: KafkaCluster, fresh_name: Callable[[], str], client: str) -> Iterator[KafkaWorld]:
    """Yield a function to create and write topics."""
    made = KafkaWorld(client, fresh_name, kafka)
    yield made
    made.close()


@pytest.fixture
def open_container(world: KafkaWorld) -> Iterator[OpenContainer]:
    """Yield a factory of containers, which are closed with the test."""
    made: list[Container] = []

    def opened(query: QueryKind, **options: str) -> Container:
        given = {**world.addresses, "client": world.client, **options}
        made.append(container_for(parse_source_options(given, query)))
        return made[-1]

    yield opened
    for container in made:
        container.shutdown_resources()
