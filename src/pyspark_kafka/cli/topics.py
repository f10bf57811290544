"""The topic that the demo reads: embedded, made for it on a Kafka, or the user's."""

from __future__ import annotations

import secrets
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from kafka import KafkaAdminClient

from ..adapters.kafka_python.failures import Cluster
from ..adapters.kafka_python.settings import admin_config, client_config
from ..brokers import EmbeddedBroker
from ..container import container_for
from ..domain.options import Query, parse_source_options

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PARTITIONS: Final = 4
TIMEOUT_MS: Final = 10_000

_NAME: Final = "pyspark-kafka-demo"


@final
@dataclass(frozen=True, slots=True)
class TopicSource:
    """A topic, and the options of a query that reads it from its beginning."""

    topic: str
    options: Mapping[str, str]
    partitions: int


@contextmanager
def embedded_topic(client: str) -> Iterator[TopicSource]:
    """Run a broker in this process, with one topic."""
    with EmbeddedBroker() as broker:
        broker.create_topic(_NAME, PARTITIONS)
        yield existing_topic(broker.options, _NAME, client)


@contextmanager
def temporary_topic(bootstrap_servers: str, client: str) -> Iterator[TopicSource]:
    """Create a topic with a name of its own on a Kafka; it is deleted in the end."""
    connection = {"kafka.bootstrap.servers": bootstrap_servers}
    topic = f"{_NAME}-{secrets.token_hex(4)}"
    with _admin(_options(connection, topic, client)) as admin:
        admin.create_topics({topic: {"num_partitions": PARTITIONS}}, wait_for_metadata=True)
    try:
        yield existing_topic(connection, topic, client)
    finally:
        with _admin(_options(connection, topic, client)) as admin:
            admin.delete_topics([topic])


def existing_topic(connection: Mapping[str, str], topic: str, client: str) -> TopicSource:
    """Find a topic with the client that is to read it.

    :raises PysparkKafkaError: if no broker answers, there is no such topic, or no such client.
    """
    options = _options(connection, topic, client)
    parsed = parse_source_options(options, Query.STREAM)
    container = container_for(parsed)
    try:
        partitions = container.offset_fetcher().partitions(parsed.subscription)
    finally:
        container.shutdown_resources()
    return TopicSource(topic, options, len(partitions))


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
    parsed = parse_source_options(options, Query.STREAM)
    with Cluster(parsed.bootstrap_servers, TIMEOUT_MS).mapped_errors("a request about topics"):
        admin = KafkaAdminClient(**admin_config(client_config(dict(parsed.kafka))))
        try:
            yield admin
        finally:
            admin.close()
