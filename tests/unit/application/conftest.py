from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from pyspark_kafka.adapters.memory.clock import MemoryClock
from pyspark_kafka.adapters.memory.cluster import MemoryCluster
from pyspark_kafka.adapters.memory.source_events import MemorySourceEvents
from pyspark_kafka.bootstrap.container import Container, container_for
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.source import parse_source_options
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.topic_partition import TopicPartition


@dataclass
class Kit:
    """A cluster in memory, and containers whose clock and reports a test can look at."""

    cluster: MemoryCluster = field(default_factory=MemoryCluster)
    clock: MemoryClock = field(default_factory=MemoryClock)
    events: MemorySourceEvents = field(default_factory=MemorySourceEvents)

    def container(
        self, options: Mapping[str, str] | None = None, query: QueryKind = QueryKind.STREAM
    ) -> Container:
        """Return a container for a query of the topic ``t``."""
        given = {
            "kafka.bootstrap.servers": "memory",
            "client": "memory",
            "subscribe": "t",
            **(options or {}),
        }
        if given.keys() & {"assign", "subscribePattern"}:
            del given["subscribe"]
        container = container_for(parse_source_options(given, query))
        container.memory_cluster.override(self.cluster)
        container.clock.override(self.clock)
        container.events.override(self.events)
        return container

    def produce(self, count: int, partition: int = 0, topic: str = "t") -> None:
        for number in range(count):
            self.cluster.produce(topic, b"%d" % number, partition=partition)


@pytest.fixture
def kit():
    """Return a kit whose cluster has the topic ``t`` of two partitions."""
    made = Kit()
    made.cluster.create_topic("t", 2)
    return made


def tp(partition: int, topic: str = "t") -> TopicPartition:
    return TopicPartition(topic, partition)


def offsets(*values: int) -> PartitionOffsets:
    """Return offsets of the partitions of ``t``, from 0 on."""
    return PartitionOffsets((tp(number), value) for number, value in enumerate(values))
