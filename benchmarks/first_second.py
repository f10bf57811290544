"""The first query, micro-batch and write of a new session, and the minimum that Spark needs."""

from __future__ import annotations

import compileall
import os
import time
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, final

import pyspark_kafka

from .bench import CLIENTS
from .fresh_process import on_all_cores
from .results import MILLISECONDS, Comparison, Section
from .rounds import alternate
from .spark import CORES, JVM, SPARKS_DAEMON, spark_session
from .trickle import await_executions, running
from .trivial import FORMAT, PARTITIONS, RECORDS, TrivialSource
from .wide_topics import fill

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql import SparkSession

    from .bench import Bench

TRIVIAL: Final = "trivial Python source and sink"
TOPIC: Final = "first-second"
WRITTEN: Final = "first-second-written"
PARTITION_COUNT: Final = 2
RECORDS_EACH: Final = 500
RECORD_COUNT: Final = PARTITION_COUNT * RECORDS_EACH


@final
@dataclass(frozen=True, slots=True)
class Format:
    """A source and sink with its options, and the settings of its sessions."""

    name: str
    options: Mapping[str, str]
    settings: Mapping[str, str]


ABOUT: Final = (
    f"Each sample is a new process with a new session on `local[{CORES}]`. The session has "
    f"started; its first query counts {RECORD_COUNT:,} records of a topic with {PARTITION_COUNT} "
    "partitions, its first micro-batch (`triggerExecution`) reads them into `noop`, or its first "
    "write writes as many rows. The trivial Python source and sink use no Kafka: nothing that is "
    "written in Python takes less. They are registered within the time: a session's first "
    "registration looks for all formats, as the first query of a format that is not registered "
    "does. They and the JVM connector have Spark's own daemon of Python workers, since the one of "
    "`pyspark_kafka.session` loads the Kafka clients. All modules have bytecode, which pip "
    "compiles when it installs a package."
)


def measure_first_second(bench: Bench) -> Section:
    """Compare the first queries of sessions, for each kind of query."""
    for package in (pyspark_kafka.__file__, __file__):
        compileall.compile_dir(Path(package).parent, quiet=1)
    kafka = bench.kafka
    for topic in (TOPIC, WRITTEN):
        kafka.create_topic(topic, PARTITION_COUNT)
    fill(kafka.bootstrap_servers, TOPIC, PARTITION_COUNT, RECORDS_EACH)
    formats = dict(_formats({**kafka.options, "startingOffsets": "earliest"}))
    rounds = min(bench.plan.runs, bench.plan.max_session_rounds)
    plan = replace(bench.plan, warm_up_rounds=0, runs=rounds)
    comparisons = tuple(
        Comparison(
            case,
            alternate({name: partial(run, chosen) for name, chosen in formats.items()}, plan),
        )
        for case, run in RUNS.items()
    )
    return Section(
        "first-second",
        "Spark, the first query of a session",
        ABOUT,
        MILLISECONDS,
        comparisons,
        peers=(TRIVIAL, JVM),
    )


def _formats(options: Mapping[str, str]) -> Iterator[tuple[str, Format]]:
    counts = {RECORDS: str(RECORD_COUNT), PARTITIONS: str(PARTITION_COUNT)}
    yield JVM, Format("kafka", options, SPARKS_DAEMON)
    yield TRIVIAL, Format(FORMAT, counts, SPARKS_DAEMON)
    for client in CLIENTS:
        yield client, Format("pyspark_kafka", {**options, "client": client}, {})


def _in_new_session(measure: Callable[[SparkSession, Format], float], chosen: Format) -> float:
    return on_all_cores(_measured, measure, chosen)


def _measured(
    measure: Callable[[SparkSession, Format], float],
    chosen: Format,
    variables: Mapping[str, str] = MappingProxyType({}),
) -> float:
    os.environ |= variables
    with spark_session(settings=chosen.settings) as spark:
        return measure(spark, chosen)


def _register(spark: SparkSession, chosen: Format) -> None:
    if chosen.name == FORMAT:
        spark.dataSource.register(TrivialSource)


def _batch_ms(spark: SparkSession, chosen: Format) -> float:
    began = time.perf_counter()
    _register(spark, chosen)
    reader = spark.read.format(chosen.name).options(**{"subscribe": TOPIC, **chosen.options})
    found = reader.load().count()
    milliseconds = (time.perf_counter() - began) * 1_000
    if found != RECORD_COUNT:
        raise RuntimeError(f"{chosen.name} read {found} of {RECORD_COUNT} records")
    return milliseconds


def _micro_batch_ms(spark: SparkSession, chosen: Format) -> float:
    _register(spark, chosen)
    reader = spark.readStream.format(chosen.name).options(**{"subscribe": TOPIC, **chosen.options})
    with running(reader.load()) as query:
        return await_executions(query, 1)[0]


def _write_ms(spark: SparkSession, chosen: Format) -> float:
    rows = spark.range(0, RECORD_COUNT, numPartitions=PARTITION_COUNT)
    frame = rows.selectExpr("CAST(id AS STRING) AS value")
    options = {name: value for name, value in chosen.options.items() if name != "startingOffsets"}
    began = time.perf_counter()
    _register(spark, chosen)
    writer = frame.write.format(chosen.name).options(**{"topic": WRITTEN, **options})
    writer.mode("append").save()
    return (time.perf_counter() - began) * 1_000


RUNS: Final[Mapping[str, Callable[[Format], float]]] = {
    "first query": partial(_in_new_session, _batch_ms),
    "first micro-batch": partial(_in_new_session, _micro_batch_ms),
    "first write": partial(_in_new_session, _write_ms),
}
