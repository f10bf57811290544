"""The latency of records through continuous pipelines, from topic to topic."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from .end_to_end import VALUE_BYTES, Load, Route, measure
from .pipelines import JVM_CONTINUOUS, JVM_REAL_TIME, PIPELINES, PLAIN, Pipeline
from .plan import FULL
from .results import Latencies, LatencyComparison, LatencySection, Percentiles
from .rounds import run_rounds
from .spark import CORES
from .topics import partitions_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_kafka.brokers import KafkaCluster

    from .bench import Bench

MANY_PARTITIONS: Final = 8
MAX_RATE_OF_ONE_PARTITION: Final = 5_000
"""The maximum of records per second for topics with one partition; others have eight."""

PEERS: Final = (PLAIN, JVM_REAL_TIME, JVM_CONTINUOUS)

ABOUT: Final = (
    f"A sender puts records of {VALUE_BYTES} B into a topic; a pipeline passes them on to another "
    "one, from which a receiver takes them. Each is a process of its own, and the latency is the "
    "time from one to the other, by one clock. The sender has `linger.ms=0`, the receiver's fetch "
    "requests wait at the broker. The plain loop is confluent-kafka's `Consumer.poll` and "
    "`Producer.produce` in a process, without Spark: what the machine allows. The JVM connector "
    'runs with `trigger(continuous="1 second")` and with `trigger(realTime="5 minutes")`, on '
    f"`local[n]` with a slot for each partition and at least {CORES}. `kafka-python` and "
    f"`confluent` are `pyspark_kafka.continuous` on `local[{CORES}]`, with epochs of a second and "
    "a function that selects the key, the value and the partition. Latencies count after some "
    "seconds of warming up. The percentiles are medians of the rounds, of which there are "
    f"{FULL.max_continuous_rounds} at most."
)

_NUMBERS: Final = itertools.count()


def measure_continuous(bench: Bench) -> LatencySection:
    """Compare the pipelines at each rate."""
    plan = bench.plan
    comparisons = tuple(
        compare(bench, PIPELINES, Load(rate, plan.latency_seconds, plan.latency_warm_up_seconds))
        for rate in plan.rates
    )
    return LatencySection(
        "continuous", "Continuous processing, latency", ABOUT, comparisons, PEERS, is_plotted=True
    )


def compare(bench: Bench, pipelines: Mapping[str, Pipeline], load: Load) -> LatencyComparison:
    """Compare pipelines under a load, in as many rounds as the plan has and allows."""
    partitions = 1 if load.rate <= MAX_RATE_OF_ONE_PARTITION else MANY_PARTITIONS
    runs = {
        name: partial(latencies, bench.kafka, pipeline, load, partitions)
        for name, pipeline in pipelines.items()
    }
    # Each run warms up itself.
    rounds = min(bench.plan.runs, bench.plan.max_continuous_rounds)
    plan = replace(bench.plan, warm_up_rounds=0, runs=rounds)
    return LatencyComparison(
        f"{load.text}, {partitions_text(partitions)}",
        tuple(Latencies(name, figures) for name, figures in run_rounds(runs, plan).items()),
    )


def latencies(kafka: KafkaCluster, pipeline: Pipeline, load: Load, partitions: int) -> Percentiles:
    """Return the latencies of a pipeline between new topics."""
    number = next(_NUMBERS)
    source, sink = (f"{end}-{number}" for end in ("source", "sink"))
    for topic in (source, sink):
        kafka.create_topic(topic, partitions)
    route = Route(kafka.bootstrap_servers, source, sink, partitions)
    with pipeline.open(route):
        found = measure(route, load, pipeline.isolation_level)
    for topic in (source, sink):
        kafka.delete_topic(topic)
    return found
