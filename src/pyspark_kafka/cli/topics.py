"""The topics of the demo: embedded, made for it on a Kafka, or the user's."""

from __future__ import annotations

import secrets
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, final

from kafka import KafkaAdminClient

from ..adapters.kafka_python.failures import Cluster
from ..adapters.kafka_python.settings import admin_config, client_config
from ..bootstrap.container import container_for
from ..brokers import EmbeddedBroker
from ..domain.options import QueryKind, parse_source_options

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PARTITIONS: Final = 4
TIMEOUT_MS: Final = 10_000

_NAME: Final = "pyspark-kafka-demo"


@final
@dataclass(frozen=True, slots=True)
class TopicSource:
    """A topic, and the options of a query that reads it from its beginning.

    ``results`` is the topic that the demo writes to, unless the first one is the user's.
    """

    topic: str
    options: Mapping[str, str]
    partitions: int
    results: str | None = None

    @property
    def connection(self) -> dict[str, str]:
        """The options that lead to the cluster, by which the demo writes."""
        return {
            name: value
            for name, value in self.options.items()
            if name == "client" or name.startswith("kafka.")
        }


@contextmanager
def embedded_topic(client: str) -> Iterator[TopicSource]:
    """Run a broker in this process, with a topic to read and one for results."""
    with EmbeddedBroker() as broker:
        results = _results_of(_NAME)
        for topic in (_NAME, results):
            broker.create_topic(topic, PARTITIONS)
        yield replace(existing_topic(broker.options, _NAME, client), results=results)


@contextmanager
def temporary_topic(bootstrap_servers: str, client: str) -> Iterator[TopicSource]:
    """Create topics with names of their own on a Kafka; they are deleted in the end."""
    connection = {"kafka.bootstrap.servers": bootstrap_servers}
    topic = f"{_NAME}-{secrets.token_hex(4)}"
    both = [topic, _results_of(topic)]
    with _admin(_options(connection, topic, client)) as admin:
        admin.create_topics(
            {name: {"num_partitions": PARTITIONS} for name in both}, wait_for_metadata=True
        )
    try:
        yield replace(existing_topic(connection, topic, client), results=both[1])
    finally:
        with _admin(_options(connection, topic, client)) as admin:
            admin.delete_topics(both)


def existing_topic(connection: Mapping[str, str], topic: str, client: str) -> TopicSource:
    """Find a topic with the client that is to read it.

    :raises PysparkKafkaError: if no broker answers, there is no such topic, or no such client.
    """
    options = _options(connection, topic, client)
    parsed = parse_source_options(options, QueryKind.STREAM)
    container = container_for(parsed)
    try:
        partitions = container.offset_fetcher().partitions(parsed.subscription)
    finally:
        container.shutdown_resources()
    return TopicSource(topic, options, len(partitions))


def _results_of(topic: str) -> str:
    return f"{topic}-by-country"


def _options(connection: Mapping[str, str], topic: str, client: str) -> dict[str, str]:
    return {
        **connection,
        "kafka.default.api.timeout.ms": str(TIMEOUT_MS),
        "client": client,
        "subscribe": topic,
        "startingOffsets": "earliest",
    }


@contextmanager
def _admin(options: Mapping[str, str]) -> Iterator[KafkaAdminClient]:
    parsed = parse_source_options(options, QueryKind.STREAM)
    with Cluster(parsed.bootstrap_servers, TIMEOUT_MS).mapped_errors("a request about topics"):
        admin = KafkaAdminClient(**admin_config(client_config(dict(parsed.kafka))))
        try:
            yield admin
        finally:
            admin.close()
