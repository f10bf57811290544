"""Every client, and the cluster against which it is held to the contracts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .worlds import ConsumeWorld, KafkaWorld, MemoryWorld, World

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_kafka.brokers import KafkaCluster


def memory_world(
    client: str, fresh_name: Callable[[], str], _kafka: Callable[[], KafkaCluster]
) -> World:
    """Make a new cluster in memory."""
    return MemoryWorld(client, fresh_name)


def kafka_world(
    client: str, fresh_name: Callable[[], str], kafka: Callable[[], KafkaCluster]
) -> World:
    """Take the run's real Kafka."""
    return KafkaWorld(client, fresh_name, kafka())


def consume_world(
    _client: str, fresh_name: Callable[[], str], kafka: Callable[[], KafkaCluster]
) -> World:
    """Take the run's real Kafka, and a reader that does not find librdkafka's C API."""
    return ConsumeWorld("confluent", fresh_name, kafka())


WORLDS: dict[str, Callable[[str, Callable[[], str], Callable[[], KafkaCluster]], World]] = {
    "confluent": kafka_world,
    "kafka-python": kafka_world,
    "memory": memory_world,
}

READER_WORLDS = {**WORLDS, "confluent without the C API": consume_world}
"""The clients, and the other ways in which they read."""
