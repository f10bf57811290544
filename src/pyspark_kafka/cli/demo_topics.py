"""The topics of the demo: on the embedded broker, temporary ones on a Kafka, or the user's."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final, final

from ..bootstrap.container import closing_clients, container_for
from ..bootstrap.option_policy import operator_policy
from ..brokers import EmbeddedBroker, temporary_topics
from ..domain.options.option import QueryKind
from ..domain.options.source import parse_source_options

PARTITIONS: Final = 4
TIMEOUT_SECONDS: Final = 10

_NAME: Final = "pyspark-kafka-demo"


@final
@dataclass(frozen=True, slots=True)
class TopicSource:
    """A topic, and the options of a query that reads it from its beginning.

    ``results`` is the topic that the demo writes to; ``None`` if ``topic`` is the user's own.
    """

    topic: str
    options: Mapping[str, str]
    partitions: int
    results: str | None = None

    @property
    def connection(self) -> dict[str, str]:
        """The client and the ``kafka.*`` options, for queries on other topics."""
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
    """Create a topic to read and one for results on a Kafka, and delete both at the end."""
    topic = f"{_NAME}-{secrets.token_hex(4)}"
    results = _results_of(topic)
    partitions = {topic: PARTITIONS, results: PARTITIONS}
    with temporary_topics(bootstrap_servers, partitions, TIMEOUT_SECONDS):
        connection = {"kafka.bootstrap.servers": bootstrap_servers}
        yield replace(existing_topic(connection, topic, client), results=results)


def existing_topic(connection: Mapping[str, str], topic: str, client: str) -> TopicSource:
    """Look a topic up with the client that is going to read it.

    :raises PysparkKafkaError: if no broker answers, there is no such topic, or no such client.
    """
    options = {
        **connection,
        "kafka.default.api.timeout.ms": str(TIMEOUT_SECONDS * 1_000),
        "client": client,
        "subscribe": topic,
        "startingOffsets": "earliest",
    }
    parsed = parse_source_options(options, QueryKind.STREAM, operator_policy())
    with closing_clients(container_for(parsed)) as container:
        partitions = container.offset_fetcher().partitions(parsed.subscription)
    return TopicSource(topic, options, len(partitions))


def _results_of(topic: str) -> str:
    return f"{topic}-by-country"
