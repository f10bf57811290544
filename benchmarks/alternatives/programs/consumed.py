"""The consumer and producer of confluent-kafka that the loops of Polars and DuckDB share."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from benchmarks.alternatives.task import Task

Columns: TypeAlias = dict[str, list[Any]]

BATCH: Final = 10_000

CONSUMER: Final[Mapping[str, Any]] = {
    "group.id": "alternatives",
    "enable.auto.commit": False,
    "auto.offset.reset": "earliest",
    # librdkafka's advice for throughput: more is fetched ahead, with shorter pauses.
    "queued.min.messages": 1_000_000,
    "fetch.queue.backoff.ms": 1,
}
PRODUCER: Final[Mapping[str, Any]] = {
    "acks": "all",
    "linger.ms": 50,
    "queue.buffering.max.messages": 1_000_000,
}


def consumed(task: Task) -> Iterator[Columns]:
    """Yield the records of a process's partitions up to their present ends, as lists."""
    consumer = Consumer({"bootstrap.servers": task.bootstrap_servers, **CONSUMER})
    partitions = [TopicPartition(task.source, number, 0) for number in task.partitions]
    left = sum(consumer.get_watermark_offsets(each)[1] for each in partitions)
    consumer.assign(partitions)
    while left:
        # Requesting more than remain would wait for the time-out.
        messages = consumer.consume(min(left, BATCH), 1.0)
        for message in messages:
            if error := message.error():
                raise KafkaException(error)
        left -= len(messages)
        if messages:
            yield {
                "key": [message.key() for message in messages],
                "value": [message.value() for message in messages],
                "partition": [message.partition() for message in messages],
                "offset": [message.offset() for message in messages],
                "timestamp": [message.timestamp()[1] for message in messages],
            }
    consumer.close()


@contextmanager
def producing(
    task: Task,
) -> Iterator[Callable[[Iterable[tuple[bytes | None, bytes | None]]], int]]:
    """Yield a function that produces keys and values; all are acknowledged in the end."""
    errors: list[Any] = []
    producer = Producer(
        {
            "bootstrap.servers": task.bootstrap_servers,
            **PRODUCER,
            "delivery.report.only.error": True,
            "on_delivery": lambda error, _message: errors.append(error),
        }
    )

    def produce(rows: Iterable[tuple[bytes | None, bytes | None]]) -> int:
        count = 0
        for key, value in rows:
            while True:
                try:
                    producer.produce(task.target, value, key)
                except BufferError:
                    producer.poll(0.05)
                else:
                    break
            count += 1
        producer.poll(0)
        return count

    yield produce
    if producer.flush(120) or errors:
        raise RuntimeError(f"records were not acknowledged: {errors[:3]}")
