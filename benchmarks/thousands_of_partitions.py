"""Ten thousand partitions: planning, triggers without new data, and the memory of the planner."""

from __future__ import annotations

import statistics
import time
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from pyspark_kafka.brokers import KafkaCluster

from .bench import CLIENTS
from .idle_triggers import IDLE_EVENTS, idling
from .memory import peak_of, processes_of
from .results import MEGABYTES, MILLISECONDS, Comparison, Samples, Section
from .rounds import alternate
from .spark import CORES, JVM, spark_session
from .trickle import WARM_UP_TRIGGERS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

    from .bench import Bench
    from .plan import Plan

TASKS: Final = 4
MAX_IDLE_TRIGGERS: Final = 20

SOURCES: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    JVM: ("kafka", {}),
    **{client: ("pyspark_kafka", {"client": client}) for client in CLIENTS},
}
JOINED: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    f"{client}, {TASKS} tasks": (
        "pyspark_kafka",
        {"client": client, "maxPartitions": str(TASKS)},
    )
    for client in CLIENTS
}

BROKER: Final[Mapping[str, str]] = {"log.index.size.max.bytes": "4096"}
"""Kafka's default would reserve 20 MB of address space for each partition."""

PLANNER: Final = "pyspark.sql.streaming.python_streaming_source_runner"
"""The module of the driver's Python process that plans a stream."""

ABOUT: Final = (
    "{topics} topics of {partitions:,} partitions each, without records. Planning is the time "
    f"until Spark knows the tasks of a new batch query, on `local[{CORES}]`; of it, a Python "
    f"source's processes take a second to start. With {TASKS} tasks the option is "
    f"`maxPartitions={TASKS}`. The idle trigger is the median time from one trigger to the next of "
    "a stream with `processingTime=0` that has nothing to read."
)
MEMORY: Final = (
    "The peak resident memory (`VmHWM`) of the driver's Python process that plans the same stream."
)


def measure_thousands_of_partitions(bench: Bench) -> tuple[Section, ...]:
    """Compare planning and idle triggers, and measure the memory of each client."""
    topics, partitions = bench.plan.thousands
    names = [f"thousands-{number}" for number in range(topics)]
    # Another broker: with so many partitions it is slower for the other measurements.
    with KafkaCluster(config=BROKER) as kafka, spark_session() as spark:
        for name in names:
            kafka.create_topic(name, partitions)
        spark.conf.set(IDLE_EVENTS, "0")
        options = {**kafka.options, "subscribe": ",".join(names)}
        size = f"{topics * partitions:,} partitions"
        speed = tuple(_speed(bench.plan, spark, options, size))
        memory = tuple(
            Samples(client, (_planner_megabytes(spark, {**options, "client": client}),))
            for client in CLIENTS
        )
    about = ABOUT.format(topics=topics, partitions=partitions)
    title, memory_title = "Spark, thousands of partitions", "Peak memory of the planner"
    return (
        Section("thousands", title, about, MILLISECONDS, speed, peers=(JVM,)),
        Section("thousands-memory", memory_title, MEMORY, MEGABYTES, (Comparison(size, memory),)),
    )


def _speed(
    plan: Plan, spark: SparkSession, options: Mapping[str, str], size: str
) -> Iterator[Comparison]:
    planning = {
        name: partial(_planning_ms, spark, source, {**options, **chosen})
        for name, (source, chosen) in {**SOURCES, **JOINED}.items()
    }
    yield Comparison(f"{size}; planning", alternate(planning, plan))
    triggers = min(MAX_IDLE_TRIGGERS, plan.triggers)
    idle = {
        name: partial(_idle_ms, spark, source, {**options, **chosen}, triggers)
        for name, (source, chosen) in SOURCES.items()
    }
    yield Comparison(f"{size}; idle trigger", alternate(idle, plan))


def _planning_ms(spark: SparkSession, source: str, options: Mapping[str, str]) -> float:
    began = time.perf_counter()
    spark.read.format(source).options(**options).load().rdd.getNumPartitions()
    return (time.perf_counter() - began) * 1_000


def _idle_ms(spark: SparkSession, source: str, options: Mapping[str, str], triggers: int) -> float:
    with idling(spark, source, options, WARM_UP_TRIGGERS + triggers) as starts:
        pauses = [after - before for before, after in pairwise(starts[WARM_UP_TRIGGERS - 1 :])]
    return statistics.median(pauses) * 1_000


def _planner_megabytes(spark: SparkSession, options: Mapping[str, str]) -> float:
    with idling(spark, "pyspark_kafka", options, WARM_UP_TRIGGERS):
        return max(map(peak_of, processes_of(PLANNER)))
