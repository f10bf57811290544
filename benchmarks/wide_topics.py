"""Topics of many partitions with little in each: batches, and triggers of a stream."""

from __future__ import annotations

import itertools
import statistics
import time
from functools import partial
from typing import TYPE_CHECKING, Final

from confluent_kafka import Producer

from .bench import CLIENTS
from .results import MILLISECONDS, Comparison, Section
from .rounds import alternate
from .spark import CORES, spark_session
from .trickle import await_executions, running

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql import SparkSession

    from .bench import Bench

JVM_UNWAITING: Final = "JVM connector, tuned"
TASKS: Final = 4
TRIGGERS: Final = 3
VALUE: Final = b"a small event"
FLUSH_SECONDS: Final = 120.0

SOURCES: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    JVM_UNWAITING: ("kafka", {"kafka.fetch.max.wait.ms": "1"}),
    **{client: ("pyspark_kafka", {"client": client}) for client in CLIENTS},
    **{
        f"{client}, {TASKS} tasks": (
            "pyspark_kafka",
            {"client": client, "maxPartitions": str(TASKS)},
        )
        for client in CLIENTS
    },
}

ABOUT: Final = (
    f"Each partition of a topic has as many records of {len(VALUE)} B. A batch query counts them, "
    "and a stream with `processingTime=0` reads as many new ones into `noop`, on "
    f"`local[{CORES}]`: the time of a batch, and the median of `triggerExecution` of a warm query. "
    f"With {TASKS} tasks the option is `maxPartitions={TASKS}`. The tuned JVM connector has "
    "`kafka.fetch.max.wait.ms=1`: as it comes, it waits half a second for each small partition "
    "of a batch."
)


def measure_wide_topics(bench: Bench) -> Section:
    """Compare batches and triggers for each width of a topic."""
    with spark_session() as spark:
        comparisons = [
            comparison
            for partitions, records in bench.plan.wide_topics
            for comparison in _compared(bench, spark, partitions, records)
        ]
    return Section(
        "wide",
        "Spark, topics of many partitions",
        ABOUT,
        MILLISECONDS,
        tuple(comparisons),
        peers=(JVM_UNWAITING,),
    )


def _compared(
    bench: Bench, spark: SparkSession, partitions: int, records: int
) -> Iterator[Comparison]:
    case = f"{partitions:,} partitions of {records:,} records"
    topic = f"wide-{partitions}"
    bench.kafka.create_topic(topic, partitions)
    refill = partial(fill, bench.kafka.bootstrap_servers, topic, partitions, records)
    options = {**bench.kafka.options, "subscribe": topic}
    refill()
    batches = {
        name: partial(_batch_ms, spark, source, {**options, **chosen}, partitions * records)
        for name, (source, chosen) in SOURCES.items()
    }
    yield Comparison(f"{case}; batch", alternate(batches, bench.plan))
    stream = {**options, "startingOffsets": "earliest", **_until(partitions * records)}
    triggers = {
        name: partial(_trigger_ms, spark, source, {**stream, **chosen}, refill)
        for name, (source, chosen) in SOURCES.items()
    }
    yield Comparison(f"{case}; trigger", alternate(triggers, bench.plan))
    bench.kafka.delete_topic(topic)


def _until(offsets: int) -> dict[str, str]:
    """Return options with which no trigger reads fewer records than are written at once."""
    return {"minOffsetsPerTrigger": str(offsets), "maxTriggerDelay": "10m"}


def fill(bootstrap_servers: str, topic: str, partitions: int, records: int) -> None:
    """Write so many records to each partition."""
    producer = Producer({"bootstrap.servers": bootstrap_servers, "linger.ms": 50, "log_level": 0})
    for partition in range(partitions):
        for _ in range(records):
            producer.produce(topic, VALUE, partition=partition)
        producer.poll(0)
    if left := producer.flush(FLUSH_SECONDS):
        raise TimeoutError(f"{left} records were not sent")


def _batch_ms(spark: SparkSession, source: str, options: Mapping[str, str], expected: int) -> float:
    began = time.perf_counter()
    found = spark.read.format(source).options(**options).load().count()
    milliseconds = (time.perf_counter() - began) * 1_000
    if found != expected:
        raise RuntimeError(f"{source} read {found} of {expected} records")
    return milliseconds


def _trigger_ms(
    spark: SparkSession, source: str, options: Mapping[str, str], fill: Callable[[], None]
) -> float:
    frame = spark.readStream.format(source).options(**options).load()
    with running(frame) as query:
        # The first one reads existing records, and starts workers and clients.
        executions = await_executions(query, 1)
        for count in itertools.islice(itertools.count(2), TRIGGERS):
            fill()
            executions = await_executions(query, count)
    return statistics.median(executions[1:])
