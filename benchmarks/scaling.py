"""The growth of a query's cost with executors, partitions and brokers: a separate page."""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import pyspark

from pyspark_kafka.brokers import KafkaCluster
from tests.servers.standalone_spark import standalone_cluster

from .batch_read import READERS
from .batch_write import WRITERS
from .bench import CLIENTS, Bench
from .costs import BASE_KB1, COPIED, COPY, DIMENSIONS, READ, ROUNDS, Cost, Costs, Setup
from .plan import FULL, Plan
from .processor_time import Seconds, running_processes, spent_between
from .rounds import run_rounds
from .spark import JVM_TUNED, spark_session
from .topics import Topic, Topics

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

COMPETITORS: Final = (JVM_TUNED, *CLIENTS)

BROKER: Final[Mapping[str, str]] = {"default.replication.factor": "1"}
"""Brokers that do not copy records to each other, so that their time is a query's."""

EXECUTORS: Final[Mapping[str, str]] = {
    "spark.executor.cores": "1",
    # A query begins when all executors are there.
    "spark.scheduler.minRegisteredResourcesRatio": "1",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
}

PAGE: Final = Path(__file__).parents[1] / "docs" / "reference" / "scaling.md"
PLOT: Final = PAGE.with_suffix(".svg")

_NUMBERS: Final = itertools.count()

_Key: TypeAlias = tuple[Setup, str, str]
"""A setup, ``READ`` or ``COPY``, and a competitor."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure all setups, and write the page."""
    chosen = parser().parse_args(arguments)
    plan = Plan(runs=chosen.runs, warm_up_rounds=0, records=chosen.records)
    costs = measure(plan)
    _publish(costs, plan)


def parser() -> argparse.ArgumentParser:
    """Return the command line's parser."""
    made = argparse.ArgumentParser(prog="python -m benchmarks.scaling", description=__doc__)
    made.add_argument("--runs", type=int, default=ROUNDS, help=f"counted rounds ({ROUNDS})")
    made.add_argument(
        "--records", type=int, default=FULL.records, help=f"records of 100 B ({FULL.records:,})"
    )
    return made


def measure(plan: Plan) -> Costs:
    """Return the costs in every setup."""
    # Spark's scripts are run by this name, as on the page of the standalone cluster.
    os.environ.setdefault("SPARK_HOME", str(Path(pyspark.__file__).parent))
    setups = sorted(
        {BASE_KB1, *itertools.chain(*DIMENSIONS.values())},
        key=lambda setup: (setup.brokers, setup.executors, setup.shape.name, setup.partitions),
    )
    workers = max(setup.executors for setup in setups)
    began = time.monotonic()
    costs: dict[tuple[Setup, str], Sequence[Cost]] = {}
    with (
        tempfile.TemporaryDirectory(prefix="scaling-") as directory,
        standalone_cluster(Path(directory), [{}] * workers) as master,
    ):
        for brokers, of_brokers in itertools.groupby(setups, lambda setup: setup.brokers):
            with KafkaCluster(brokers, config=BROKER) as kafka:
                bench = Bench(kafka, Topics(kafka, plan.records), plan)
                for executors, same in itertools.groupby(of_brokers, lambda one: one.executors):
                    print(
                        f"{time.monotonic() - began:4.0f} s: {brokers=} {executors=} ...",
                        file=sys.stderr,
                        flush=True,
                    )
                    costs |= _costs(bench, master, executors, list(same))
    print(f"{time.monotonic() - began:4.0f} s: done", file=sys.stderr, flush=True)
    return costs


def _costs(bench: Bench, master: str, executors: int, setups: Sequence[Setup]) -> Costs:
    """Return the costs in setups with the same executors and brokers, of one session."""
    topics = {setup: _topics(bench.topics, setup) for setup in setups}
    keys: list[_Key] = [
        (setup, work, competitor)
        for setup in setups
        for work in (READ, COPY)
        if work == READ or setup in COPIED
        for competitor in COMPETITORS
    ]
    warm_ups = {(work, competitor): (setup, work, competitor) for setup, work, competitor in keys}
    settings = {**EXECUTORS, "spark.master": master, "spark.cores.max": str(executors)}
    with spark_session(settings=settings) as spark:
        for key in warm_ups.values():
            _spent(bench.kafka, spark, key, topics[key[0]][1])
        runs = {
            (key, topic): partial(_spent, bench.kafka, spark, key, topic)
            for key in keys
            for topic in topics[key[0]]
        }
        seconds = run_rounds(runs, bench.plan)
    costs: dict[tuple[Setup, str], list[Cost]] = {}
    for key in keys:
        setup, work, competitor = key
        small, full = topics[setup]
        costs.setdefault((setup, work), []).append(
            Cost(
                competitor,
                seconds[key, small],
                seconds[key, full],
                full.records - small.records,
            )
        )
    return costs


def _topics(topics: Topics, setup: Setup) -> tuple[Topic, Topic]:
    """Return a topic with one record in each partition, and a full one."""
    partitions, shape = setup.partitions, setup.shape
    small = topics.of_bytes(shape, partitions, partitions * shape.value_bytes)
    return small, topics.filled(shape, partitions)


def _spent(kafka: KafkaCluster, spark: SparkSession, key: _Key, topic: Topic) -> Seconds:
    _, work, competitor = key
    if work == READ:
        return _seconds_of(partial(_read, kafka, spark, competitor, topic))
    copy = f"copy-{next(_NUMBERS)}"
    kafka.create_topic(copy, topic.partitions)
    seconds = _seconds_of(partial(_copy, kafka, spark, competitor, topic, copy))
    kafka.delete_topic(copy)
    return seconds


def _seconds_of(query: Callable[[], None]) -> Seconds:
    before = list(running_processes())
    query()
    return spent_between(before, running_processes(), os.getpid())


def _read(kafka: KafkaCluster, spark: SparkSession, competitor: str, topic: Topic) -> None:
    _frame(kafka, spark, competitor, topic).write.format("noop").mode("overwrite").save()


def _copy(
    kafka: KafkaCluster, spark: SparkSession, competitor: str, topic: Topic, copy: str
) -> None:
    writer = WRITERS[competitor]
    options = {**kafka.options, **writer.options, "topic": copy, "kafka.compression.type": "none"}
    frame = _frame(kafka, spark, competitor, topic).select("key", "value")
    frame.write.format(writer.sink).mode("append").options(**options).save()


def _frame(kafka: KafkaCluster, spark: SparkSession, competitor: str, topic: Topic) -> DataFrame:
    reader = READERS[competitor]
    options = {**kafka.options, **reader.options, "subscribe": topic.name}
    return spark.read.format(reader.source).options(**options).load()


def _publish(costs: Costs, plan: Plan) -> None:
    from .machine import describe_machine
    from .plot import write_cost_plot
    from .scaling_page import bars, page

    write_cost_plot(bars(costs), PLOT)
    command = " ".join(("python -m benchmarks.scaling", *sys.argv[1:]))
    PAGE.write_text(page(costs, describe_machine(), plan, command, PLOT.name))


if __name__ == "__main__":
    main()
