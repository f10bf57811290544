"""Servers that a run starts once and shares."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from pyspark_kafka.brokers import KafkaCluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BROKER_CONFIG = {
    # Compaction is looked at every 15 s by default, which a test would have to wait for.
    "log.cleaner.backoff.ms": "100",
    "log.retention.check.interval.ms": "200",
    # Tests write records with old timestamps; a topic that is to lose them says so itself.
    "log.retention.ms": "-1",
}


@pytest.fixture(scope="session")
def kafka() -> Iterator[KafkaCluster]:
    """Run a real Apache Kafka broker for as long as the tests run."""
    with KafkaCluster(config=BROKER_CONFIG) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def fresh_name() -> Callable[[], str]:
    """Give a name that no other test uses."""
    numbers = itertools.count(1)
    return lambda: f"t{next(numbers)}"
