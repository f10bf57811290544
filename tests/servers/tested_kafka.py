"""The Kafka that a run tests: the newest, or the version that ``verification.matrix`` asks for."""

import os
from collections.abc import Mapping
from typing import Final

from pyspark_kafka.brokers import KafkaCluster
from pyspark_kafka.brokers.jars import KAFKA_VERSION
from pyspark_kafka.brokers.settings import Node
from pyspark_kafka.testing import ALL, Capability

from .kafka import SharedKafka
from .zookeeper_kafka import SharedZooKeeperKafka, ZooKeeperKafka

VARIABLE: Final = "PYSPARK_KAFKA_TESTED_BROKER"
"""The environment variable with its version."""

_FIRST_WITH_KRAFT: Final = (3, 3)
_FIRST_WITH: Final[Mapping[str, Mapping[Capability, tuple[int, int]]]] = {
    "confluent": {
        Capability.RECREATED_RANGES: (3, 1),
        Capability.TIMESTAMP_LIMITS: (3, 6),  # KIP-937
    },
    "kafka-python": {
        Capability.DESCRIBED_TRANSACTIONS: (3, 0),  # KIP-664
        Capability.RECREATED_RANGES: (3, 1),  # fetches name topics by their ids (KIP-516)
        Capability.RECREATED_STREAMS: (3, 1),
        Capability.TIMESTAMP_LIMITS: (3, 6),
    },
}
"""The first version of Kafka with which a client can do something."""

_NEVER: Final[Mapping[str, frozenset[Capability]]] = {
    "confluent": frozenset({Capability.CONTINUOUS_TRANSACTIONS, Capability.TRANSACTIONAL_WRITES}),
    "kafka-python": frozenset(),
}


def version_of_run() -> str:
    return os.environ.get(VARIABLE, KAFKA_VERSION)


def kafka_of_run(config: Mapping[str, str]) -> KafkaCluster:
    version = version_of_run()
    if _is_before(_FIRST_WITH_KRAFT, version):
        return ZooKeeperKafka(version, config)
    return KafkaCluster(config=config, version=version)


def shared_kafka(nodes: tuple[Node, ...]) -> SharedKafka:
    """Return the run's broker as a process sees it that did not start it."""
    is_with_zookeeper = _is_before(_FIRST_WITH_KRAFT, version_of_run())
    return SharedZooKeeperKafka(nodes) if is_with_zookeeper else SharedKafka(nodes)


def capabilities_of(client: str, version: str) -> frozenset[Capability]:
    """Return what a client can do with brokers of a version."""
    later = {one for one, first in _FIRST_WITH[client].items() if _is_before(first, version)}
    return ALL - _NEVER[client] - later


def _is_before(first: tuple[int, int], version: str) -> bool:
    major, minor, *_ = version.split(".")
    return (int(major), int(minor)) < first
