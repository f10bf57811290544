"""The environment of all measurements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from pyspark_kafka import QueryKind, parse_source_options

if TYPE_CHECKING:
    from pyspark_kafka import SourceOptions
    from pyspark_kafka.brokers import KafkaCluster

    from .plan import Plan
    from .topics import Topics

CLIENTS: Final = ("kafka-python", "confluent")
"""The clients that connect to a cluster."""

READ_UNCOMMITTED: Final = "read_uncommitted"
READ_COMMITTED: Final = "read_committed"


@final
@dataclass(frozen=True, slots=True)
class Bench:
    """The broker of a run, its topics, and its plan."""

    kafka: KafkaCluster
    topics: Topics
    plan: Plan


def reader_options(
    bootstrap_servers: str, client: str, topic: str, isolation_level: str = READ_UNCOMMITTED
) -> SourceOptions:
    """Return the options of a batch query by one of our clients."""
    return parse_source_options(
        {
            "kafka.bootstrap.servers": bootstrap_servers,
            "kafka.isolation.level": isolation_level,
            "client": client,
            "subscribe": topic,
        },
        QueryKind.BATCH,
    )
