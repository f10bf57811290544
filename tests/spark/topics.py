"""Topics with records of every shape."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from confluent_kafka import Producer

from pyspark_kafka.brokers import KafkaCluster

Headers = list[tuple[str, str | bytes | None]]

SHAPES: tuple[tuple[bytes | None, bytes | None, Headers], ...] = (
    (b"key", b"value", []),
    (None, b"no key", [("one", b"1")]),
    (b"no value", None, [("b", b"2"), ("a", None), ("b", b"")]),
    (b"", b"", [("", b"\x00\xff")]),
    (None, None, []),
    ("ключ".encode(), b"\x00" * 1_000, [("ключ", "значение".encode())]),
)
"""Keys, values and headers: null, empty, binary, duplicate and none at all."""


@dataclass(frozen=True)
class Topics:
    """Makes topics on the run's broker and writes to them with librdkafka."""

    cluster: KafkaCluster
    fresh_name: Callable[[], str]

    def create(self, partitions: int = 1, **config: str) -> str:
        name = self.fresh_name()
        self.cluster.create_topic(
            name, partitions, config={key.replace("__", "."): text for key, text in config.items()}
        )
        return name

    def fill(self, topic: str, sizes: Mapping[int, int]) -> None:
        producer = self._producer()
        for partition, size in sizes.items():
            for number in range(size):
                key, value, headers = SHAPES[number % len(SHAPES)]
                producer.produce(
                    topic, value, key, partition, headers=headers, timestamp=1_000_000 + number
                )
        assert producer.flush(30) == 0

    def values(self, topic: str, values: Iterable[bytes | None], key: bytes | None = None) -> None:
        self.pairs(topic, ((key, value) for value in values))

    def pairs(self, topic: str, pairs: Iterable[tuple[bytes | None, bytes | None]]) -> None:
        producer = self._producer()
        for key, value in pairs:
            producer.produce(topic, value, key, 0)
        assert producer.flush(30) == 0

    def numbers(self, topic: str, partition: int, numbers: range) -> None:
        producer = self._producer()
        for number in numbers:
            producer.produce(topic, str(number), partition=partition)
        assert producer.flush(30) == 0

    def _producer(self) -> Producer:
        # A new one each time: an old one may not have heard of partitions that were added.
        return Producer(
            {
                "bootstrap.servers": self.cluster.bootstrap_servers,
                "log_level": 0,
                # In order, also when a new partition rejects the first batch. An idempotent
                # producer keeps the order too, but waits 0.5 s for its id.
                "max.in.flight.requests.per.connection": 1,
            }
        )
