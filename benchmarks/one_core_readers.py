"""The readers that are compared on one core; each yields numbers of records."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from .bench import READ_UNCOMMITTED, reader_options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager

    import pyarrow as pa

    from pyspark_kafka.domain.reading.ranges import OffsetRange

    Read = Callable[[OffsetRange], Iterator[int]]
    Open = Callable[[str], AbstractContextManager[Read]]

CONSUME: Final = "Consumer.consume"
POLL: Final = "KafkaConsumer.poll"
SOCKET: Final = "plain socket"

MAX_POLL_RECORDS: Final = 10_000
CONSUMED_COLUMNS: Final = ["key", "value", "offset", "timestamp"]

FETCH_WAIT_MS: Final = 10

CONSUMER_SETTINGS: Final[Mapping[str, Any]] = {
    "group.id": "benchmarks",
    "enable.auto.commit": False,
    "auto.offset.reset": "error",
    "check.crcs": True,
    "queued.min.messages": 1_000_000,
    "fetch.queue.backoff.ms": 1,
    "queued.max.messages.kbytes": 65_536,
    # A fetch that waits at the end of a partition would delay the next partition.
    "fetch.wait.max.ms": FETCH_WAIT_MS,
    "log_level": 0,
}


@contextmanager
def record_reader(
    bootstrap_servers: str, client: str, isolation_level: str = READ_UNCOMMITTED
) -> Iterator[Read]:
    """Yield a function that reads ranges with a ``RecordReader``."""
    from pyspark_kafka.bootstrap.container import closing_clients, container_for
    from pyspark_kafka.domain.reading.records import WITHOUT_HEADERS

    options = reader_options(bootstrap_servers, client, "any", isolation_level)
    with closing_clients(container_for(options)) as container:
        reader = container.record_reader()

        def read(offset_range: OffsetRange) -> Iterator[int]:
            for batch in reader.read(offset_range, WITHOUT_HEADERS):
                yield batch.num_rows

        yield read


def _by_kafka_python(bootstrap_servers: str) -> AbstractContextManager[Read]:
    return record_reader(bootstrap_servers, "kafka-python")


def _by_confluent(bootstrap_servers: str) -> AbstractContextManager[Read]:
    return record_reader(bootstrap_servers, "confluent")


@contextmanager
def _by_consume(bootstrap_servers: str) -> Iterator[Read]:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": bootstrap_servers, **CONSUMER_SETTINGS})

    def read(offset_range: OffsetRange) -> Iterator[int]:
        partition = offset_range.partition
        consumer.assign(
            [TopicPartition(partition.topic, partition.partition, offset_range.from_offset)]
        )
        left = offset_range.size
        while left:
            # Requesting more than remain would wait for the time-out.
            batch = _into_arrow(consumer.consume(min(left, MAX_POLL_RECORDS), 1.0))
            left -= batch.num_rows
            yield batch.num_rows

    try:
        yield read
    finally:
        consumer.close()


def _into_arrow(messages: list[Any]) -> pa.RecordBatch:
    import pyarrow as pa
    from confluent_kafka import KafkaException

    for message in messages:
        if message.error():
            raise KafkaException(message.error())
    keys = pa.array([message.key() for message in messages], pa.binary())
    values = pa.array([message.value() for message in messages], pa.binary())
    offsets = pa.array([message.offset() for message in messages], pa.int64())
    timestamps = pa.array([message.timestamp()[1] for message in messages], pa.timestamp("ms"))
    return pa.RecordBatch.from_arrays([keys, values, offsets, timestamps], CONSUMED_COLUMNS)


@contextmanager
def _by_poll(bootstrap_servers: str) -> Iterator[Read]:
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap_servers,
        group_id=None,
        enable_auto_commit=False,
        fetch_max_wait_ms=FETCH_WAIT_MS,
    )

    def read(offset_range: OffsetRange) -> Iterator[int]:
        partition = TopicPartition(offset_range.partition.topic, offset_range.partition.partition)
        consumer.assign([partition])
        consumer.seek(partition, offset_range.from_offset)
        left = offset_range.size
        while left > 0:
            polled = consumer.poll(timeout_ms=1_000, max_records=MAX_POLL_RECORDS)
            count = len(polled.get(partition, ()))
            left -= count
            yield count

    try:
        yield read
    finally:
        consumer.close()


@contextmanager
def _by_socket(bootstrap_servers: str) -> Iterator[Read]:
    from .raw_fetch import RawFetch

    with RawFetch(bootstrap_servers) as fetch:

        def read(offset_range: OffsetRange) -> Iterator[int]:
            offset = offset_range.from_offset
            for fetched in fetch.read(offset_range):
                yield fetched.next_offset - offset
                offset = fetched.next_offset

        yield read


READERS: Final[Mapping[str, Open]] = {
    "kafka-python": _by_kafka_python,
    "confluent": _by_confluent,
    CONSUME: _by_consume,
    POLL: _by_poll,
    SOCKET: _by_socket,
}
