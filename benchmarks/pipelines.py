"""The pipelines from topic to topic that are compared; each passes records on as they are."""

from __future__ import annotations

import gc
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, final

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from pyspark_kafka import continuous

from .bench import CLIENTS, READ_COMMITTED, READ_UNCOMMITTED
from .spark import CORES, spark_session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager
    from multiprocessing.synchronize import Event

    import pyarrow as pa

    from .end_to_end import Route

    Open = Callable[[Route], AbstractContextManager[None]]

PLAIN: Final = "plain loop"
JVM_CONTINUOUS: Final = "JVM, continuous"
JVM_REAL_TIME: Final = "JVM, real-time"

END_SECONDS: Final = 30.0
COLUMNS: Final = ["key", "value", "partition"]
NO_OPTIONS: Final[Mapping[str, str]] = MappingProxyType({})


@final
@dataclass(frozen=True, slots=True)
class Pipeline:
    """How a pipeline is opened, and how its output has to be read."""

    open: Open
    isolation_level: str = READ_UNCOMMITTED


@contextmanager
def _plain(route: Route) -> Iterator[None]:
    context = get_context("spawn")
    ended = context.Event()
    process = context.Process(target=pass_on, args=(route, ended), name=PLAIN)
    process.start()
    try:
        yield
    finally:
        ended.set()
        process.join(END_SECONDS)
        if process.exitcode != 0:
            process.kill()
            raise RuntimeError(f"the {PLAIN} ended with {process.exitcode}")


def pass_on(route: Route, ended: Event) -> None:
    """Produce each record that is polled, until the end; in a separate process."""
    gc.disable()
    consumer = Consumer(
        {
            "bootstrap.servers": route.bootstrap_servers,
            "group.id": "benchmarks",
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    producer = Producer(
        {
            "bootstrap.servers": route.bootstrap_servers,
            "linger.ms": 0,
            "acks": "all",
            "delivery.report.only.error": True,
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(route.source, number, 0) for number in range(route.partitions)])
    while not ended.is_set():
        # It returns as soon as there is a record.
        message = consumer.poll(0.5)
        if message is not None:
            if error := message.error():
                raise KafkaException(error)
            key, value, partition = message.key(), message.value(), message.partition()
            assert partition is not None
            producer.produce(route.sink, value, key, partition)
        producer.poll(0)
    producer.flush(END_SECONDS)
    consumer.close()


@contextmanager
def _by_jvm(route: Route, output_mode: str, trigger: Mapping[str, str]) -> Iterator[None]:
    servers = {"kafka.bootstrap.servers": route.bootstrap_servers}
    # Both modes need a slot for each partition.
    slots = max(CORES, route.partitions)
    with temporary_checkpoint() as checkpoint, spark_session(slots) as spark:
        query = (
            spark.readStream.format("kafka")
            .options(**servers, subscribe=route.source, startingOffsets="earliest")
            .load()
            .select(*COLUMNS)
            .writeStream.format("kafka")
            .options(**servers, topic=route.sink, checkpointLocation=checkpoint)
            .outputMode(output_mode)
            .trigger(**trigger)
            .start()
        )
        try:
            yield
            if error := query.exception():
                raise error
        finally:
            query.stop()


@contextmanager
def _continuous_mode(route: Route) -> Iterator[None]:
    with _by_jvm(route, "append", {"continuous": "1 second"}):
        yield


@contextmanager
def _real_time_mode(route: Route) -> Iterator[None]:
    with _by_jvm(route, "update", {"realTime": "5 minutes"}):
        yield


@contextmanager
def temporary_checkpoint() -> Iterator[str]:
    """Yield a local directory."""
    with tempfile.TemporaryDirectory(prefix="benchmarks-") as directory:
        yield directory


def continuous_query(
    client: str, guarantee: str = "at-least-once", near: Mapping[str, str] = NO_OPTIONS
) -> Open:
    """Return a function that opens a continuous query; ``near`` are further source options."""

    @contextmanager
    def opened(route: Route) -> Iterator[None]:
        options = {"kafka.bootstrap.servers": route.bootstrap_servers, "client": client}
        with temporary_checkpoint() as checkpoint, spark_session() as spark:
            query = continuous.start(
                spark,
                select_columns,
                source={
                    **options,
                    **near,
                    "subscribe": route.source,
                    "startingOffsets": "earliest",
                },
                sink={**options, "topic": route.sink, "deliveryGuarantee": guarantee},
                checkpointLocation=checkpoint,
                epoch="1 second",
            )
            try:
                yield
                if error := query.exception():
                    raise error
            finally:
                query.stop()

    return opened


def select_columns(records: pa.RecordBatch) -> pa.RecordBatch:
    """Return the columns of records that are passed on."""
    return records.select(COLUMNS)


PIPELINES: Final[Mapping[str, Pipeline]] = {
    PLAIN: Pipeline(_plain),
    JVM_CONTINUOUS: Pipeline(_continuous_mode),
    JVM_REAL_TIME: Pipeline(_real_time_mode),
    **{client: Pipeline(continuous_query(client)) for client in CLIENTS},
    "kafka-python, exactly-once": Pipeline(
        continuous_query("kafka-python", "exactly-once"), READ_COMMITTED
    ),
}
