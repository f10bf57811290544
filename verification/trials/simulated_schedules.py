"""Schedules of the source's simulator, by this source and by the JVM connector in Spark.

They check the simulator's model of the connector. Nothing fails here, and topics change between the
runs of a query only.
"""

from dataclasses import dataclass, replace
from random import Random
from typing import Final

from confluent_kafka import Producer

from pyspark_kafka.brokers import KafkaCluster
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.testing import Record, await_until
from pyspark_kafka.testing.kafka_world import produce_with

from ..simulator.engine.scheduler import Scheduler
from ..simulator.source.faults import Fault, SourceSettings, Trigger
from ..simulator.source.kafka import Kafka
from ..simulator.source.query import COMMITTED, EARLIEST, FALLBACK, Bound, Query
from ..simulator.source.world import World
from .changing_topics import await_deleted
from .differential import Differential
from .random_options import Options

_CHANGES: Final = frozenset({Fault.ADDED_PARTITIONS, Fault.RETENTION, Fault.NEW_TOPIC})
"""Changes of topics; what connectors know of topics that are created again differs."""

_OURS_ALONE: Final = (
    "allowLimitsWithoutTrigger",
    "client",
    "commitOffsetsToGroup",
    "kafka.bootstrap.servers",
    "maxBytesPerTrigger",
    "maxPartitions",
    "metadataPath",
    "minOffsetsPerTrigger",
    FALLBACK,
)
"""Options of ours, and one that makes a query wait, which two queries do at other times."""


class MirroredKafka(Kafka):
    """A cluster in memory, and a real one with the same topics, whose names have a prefix."""

    def __init__(self, scheduler: Scheduler, cluster: KafkaCluster, prefix: str) -> None:
        super().__init__(scheduler)
        self._real = cluster
        self._prefix = prefix
        self._producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})

    def create(self, topic: str, partitions: int) -> None:
        super().create(topic, partitions)
        self._real.create_topic(self._prefix + topic, partitions, config={"retention.ms": "-1"})

    def add_partitions(self, topic: str, total: int) -> None:
        super().add_partitions(topic, total)
        name = self._prefix + topic
        self._real.add_partitions(name, total)
        await_until(lambda: len(self._producer.list_topics(name).topics[name].partitions) == total)

    def delete_records(self, partition: TopicPartition, before: int) -> None:
        super().delete_records(partition, before)
        name = self._prefix + partition.topic
        self._real.delete_records({(name, partition.partition): before})
        await_deleted(self._real, TopicPartition(name, partition.partition), before)

    def append(self, partition: TopicPartition, timestamp: int, *, is_open: bool = False) -> None:
        super().append(partition, timestamp, is_open=is_open)
        named = TopicPartition(self._prefix + partition.topic, partition.partition)
        value = next(reversed(self.written))
        produce_with(self._producer, named, [Record(value, timestamp=timestamp)])


@dataclass
class SimulatedSchedules:
    """Rounds of one schedule each, which must end equal."""

    trial: Differential

    def run_round(self, seed: int) -> bool:
        """Run a schedule, and return whether nothing has differed."""
        trial, prefix = self.trial, f"simulated{seed}-"
        before = trial.counts["different"]
        settings = _settings(seed)
        world = World(settings, lambda scheduler: MirroredKafka(scheduler, trial.kafka, prefix))
        options = _options(world.query, prefix, is_batch=settings.is_batch)
        random = Random(seed)  # noqa: S311
        if settings.is_batch:
            for _ in range(settings.runs):
                trial.run_batch(options, random)
                world.topics.change()
        else:
            trial.run_stream(options, f"{prefix}stream", world.topics.change, random)
        trial.say(f"schedule {seed}: {dict(trial.counts)}")
        return trial.counts["different"] == before


def _settings(seed: int) -> SourceSettings:
    settings = SourceSettings.of(seed)
    return replace(
        settings, kinds=settings.kinds & _CHANGES, trigger=Trigger.AVAILABLE_NOW, kept=None
    )


def _options(query: Query, prefix: str, *, is_batch: bool) -> Options:
    """Return the options of both connectors, with the names of the real topics."""
    if query.start.every == COMMITTED:
        query = replace(query, start=Bound(is_time=False, every=EARLIEST))
    given = query.with_prefix(prefix).options(is_batch=is_batch)
    return {
        name: text
        for name, text in given.items()
        if name not in _OURS_ALONE and not name.startswith("include")
    }
