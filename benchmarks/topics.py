"""Topics with records, each created on first use."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Final, final

from confluent_kafka import Producer

from pyspark_kafka.domain.reading.ranges import OffsetRange
from pyspark_kafka.domain.topic_partition import TopicPartition

from .values import json_event, json_events, padded_bytes, random_bytes, short_json_event

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark_kafka.brokers import KafkaCluster

Headers = list[tuple[str, str | bytes | None]]

HEADERS: Final[Headers] = [("trace", b"4bf92f3577b34da6"), ("source", b"checkout")]

POOL_BYTES: Final = 8 << 20
"""The bytes of distinct values: more than fit into a batch, so that none repeats in it."""

POLL_EVERY: Final = 10_000
FLUSH_SECONDS: Final = 300


@final
@dataclass(frozen=True, slots=True)
class Shape:
    """The records of a topic."""

    name: str
    value_bytes: int
    make_value: Callable[[Random, int], bytes] = random_bytes
    compression: str = "none"
    has_headers: bool = False
    has_keys: bool = False
    """Whether records have their number as a key of 8 B."""

    volume: int = 1
    """A factor for the bytes of topics, so that reads of large records take seconds, too: much
    longer than the start of a query.
    """

    @property
    def topic_name(self) -> str:
        """The name with characters that Kafka allows."""
        return self.name.replace(" ", "-").replace(",", "")


B100: Final = Shape("100 B", 100)
B100_HEADERS: Final = Shape("100 B, 2 headers", 100, has_headers=True)
B100_KEYS: Final = Shape("100 B, 8 B keys", 100, has_keys=True)
JSON200: Final = Shape("200 B JSON, zstd", 200, json_event, "zstd")
JSON100: Final = Shape("100 B JSON, zstd", 100, short_json_event, "zstd")
KB1: Final = Shape("1 kB", 1_000, volume=3)
JSON1K: Final = Shape("1 kB JSON, zstd", 1_000, json_events, "zstd", volume=3)
KB10: Final = Shape("10 kB JSON, lz4", 10_000, json_events, "lz4", volume=3)
KB10_PADDED: Final = Shape("10 kB padded, lz4", 10_000, padded_bytes, "lz4")


def partitions_text(count: int) -> str:
    """Return a number of partitions as text."""
    return "1 partition" if count == 1 else f"{count:,} partitions"


@final
@dataclass(frozen=True, slots=True)
class Topic:
    """A filled topic."""

    name: str
    shape: Shape
    partitions: int
    records: int

    @property
    def ranges(self) -> tuple[OffsetRange, ...]:
        """The range of each partition."""
        each = self.records // self.partitions
        return tuple(
            OffsetRange(TopicPartition(self.name, number), 0, each)
            for number in range(self.partitions)
        )


@final
@dataclass(frozen=True, slots=True)
class Topics:
    """The filled topics of a cluster."""

    kafka: KafkaCluster
    records: int
    """Records of a topic with 100 B values; others have as many bytes, times their volume."""

    _filled: dict[tuple[Shape, int, int], Topic] = field(default_factory=dict)

    def filled(self, shape: Shape, partitions: int) -> Topic:
        """Return a topic of a shape's default size."""
        return self.of_bytes(shape, partitions, self.records * B100.value_bytes * shape.volume)

    def of_bytes(self, shape: Shape, partitions: int, value_bytes: int) -> Topic:
        """Return a topic with ``value_bytes`` of values in total; created on the first call."""
        key = (shape, partitions, value_bytes)
        if key not in self._filled:
            each = max(1, value_bytes // shape.value_bytes // partitions)
            name = f"{shape.topic_name}-{partitions}-{value_bytes}"
            topic = Topic(name, shape, partitions, each * partitions)
            self.kafka.create_topic(name, partitions)
            _fill(self.kafka.bootstrap_servers, topic)
            self._filled[key] = topic
        return self._filled[key]


def _fill(bootstrap_servers: str, topic: Topic) -> None:
    errors: list[object] = []
    producer = Producer(
        {
            "bootstrap.servers": bootstrap_servers,
            "compression.type": topic.shape.compression,
            "enable.idempotence": True,
            "linger.ms": 50,
            "queue.buffering.max.messages": 1_000_000,
            "delivery.report.only.error": True,
            "on_delivery": lambda error, _message: errors.append(error),
            "log_level": 0,
        }
    )
    headers = HEADERS if topic.shape.has_headers else None
    values = itertools.cycle(values_of(topic.shape))
    for number, value in enumerate(itertools.islice(values, topic.records)):
        key = b"%08d" % number if topic.shape.has_keys else None
        _produce(producer, topic.name, key, value, number % topic.partitions, headers)
        if number % POLL_EVERY == 0:
            producer.poll(0)
    if producer.flush(FLUSH_SECONDS) or errors:
        raise RuntimeError(f"the topic '{topic.name}' was not filled: {errors[:3]}")


def _produce(
    producer: Producer,
    topic: str,
    key: bytes | None,
    value: bytes,
    partition: int,
    headers: Headers | None,
) -> None:
    while True:
        try:
            producer.produce(topic, value, key, partition, headers=headers)
        except BufferError:
            producer.poll(0.05)
        else:
            return


def values_of(shape: Shape) -> Sequence[bytes]:
    """Return values of a shape, the same on each call."""
    generator = Random(shape.name)  # noqa: S311 - the same data in every run, and no secret
    # An odd number, so that each of an even number of partitions gets all values in turn.
    size = POOL_BYTES // shape.value_bytes | 1
    return [shape.make_value(generator, shape.value_bytes) for _ in range(size)]
