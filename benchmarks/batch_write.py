"""Batch writes from Spark: both clients compared with the JVM connector's sink."""

from __future__ import annotations

import itertools
import tempfile
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

from .results import RECORDS_PER_SECOND, Comparison, Section
from .rounds import alternate
from .rows import Rows, write_rows
from .spark import CORES, JVM, JVM_TUNED, spark_session
from .topics import B100, JSON1K, JSON100, KB1, Shape
from .trivial import FORMAT, TrivialSource

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

    from .bench import Bench

PARTITIONS: Final = 4

TUNED: Final[Mapping[str, str]] = {
    "kafka.batch.size": "524288",
    "kafka.linger.ms": "20",
    "kafka.buffer.memory": "67108864",
}
"""The client settings that make the JVM connector's sink faster."""


@final
@dataclass(frozen=True, slots=True)
class Writer:
    """A Spark sink with its options."""

    sink: str
    options: Mapping[str, str]


TRIVIAL: Final = "trivial sink"

WRITERS: Final[Mapping[str, Writer]] = {
    JVM: Writer("kafka", {}),
    JVM_TUNED: Writer("kafka", TUNED),
    "kafka-python": Writer("pyspark_kafka", {"client": "kafka-python"}),
    "confluent": Writer("pyspark_kafka", {"client": "confluent"}),
    TRIVIAL: Writer(FORMAT, {}),
}

SHAPES: Final = (B100, JSON100, KB1, JSON1K)

ABOUT: Final = (
    f"A batch query writes uncompressed Parquet files to a topic with {PARTITIONS} partitions, on "
    f"`local[{CORES}]`. Rows have a key of 8 B, which determines the partition, and a value. The "
    f"broker acknowledges every record. The tuned JVM connector has "
    + ", ".join(f"`{name}={value}`" for name, value in TUNED.items())
    + "; all other settings except a named codec are defaults. The trivial sink is a Python sink "
    "that keeps nothing: its rate is what Spark allows a Python sink."
)


def measure_batch_write(bench: Bench) -> Section:
    """Compare the writers for every shape."""
    with tempfile.TemporaryDirectory(prefix="rows-") as directory, spark_session() as spark:
        spark.dataSource.register(TrivialSource)
        comparisons = tuple(_compare(bench, spark, shape, Path(directory)) for shape in SHAPES)
    return Section(
        "write",
        "Spark, batch writes",
        ABOUT,
        RECORDS_PER_SECOND,
        comparisons,
        peers=(JVM, JVM_TUNED, TRIVIAL),
        limit=TRIVIAL,
    )


def _compare(bench: Bench, spark: SparkSession, shape: Shape, directory: Path) -> Comparison:
    size = bench.plan.records * B100.value_bytes * shape.volume
    rows = write_rows(directory, shape, size // shape.value_bytes)
    topics = (f"written-{shape.topic_name}-{number}" for number in itertools.count())
    runs = {
        name: partial(_rate, bench, spark, writer, rows, topics) for name, writer in WRITERS.items()
    }
    return Comparison(shape.name, alternate(runs, bench.plan), shape.value_bytes)


def _rate(
    bench: Bench, spark: SparkSession, writer: Writer, rows: Rows, topics: Iterator[str]
) -> float:
    topic = next(topics)
    bench.kafka.create_topic(topic, PARTITIONS)
    frame = spark.read.parquet(str(rows.path))
    options = {
        **bench.kafka.options,
        **writer.options,
        "topic": topic,
        "kafka.compression.type": rows.shape.compression,
    }
    began = time.perf_counter()
    frame.write.format(writer.sink).mode("append").options(**options).save()
    seconds = time.perf_counter() - began
    bench.kafka.delete_topic(topic)
    return rows.count / seconds
