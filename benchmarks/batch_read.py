"""Batch reads in Spark: both clients beside the JVM connector."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, final

from .results import RECORDS_PER_SECOND, Comparison, Section
from .rounds import alternate
from .spark import CORES, JVM, JVM_TUNED, TUNED, spark_session
from .topics import B100, B100_HEADERS, JSON200, KB1, KB10, Shape, Topic, partitions_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from .bench import Bench


@final
@dataclass(frozen=True, slots=True)
class Reader:
    """A Spark source with its options."""

    source: str
    options: Mapping[str, str]


@final
@dataclass(frozen=True, slots=True)
class Case:
    """The topic of a comparison."""

    shape: Shape
    partitions: int

    @property
    def name(self) -> str:
        """The name in the tables."""
        return f"{self.shape.name}; {partitions_text(self.partitions)}"


READERS: Final[Mapping[str, Reader]] = {
    JVM: Reader("kafka", {}),
    JVM_TUNED: Reader("kafka", TUNED),
    "kafka-python": Reader("pyspark_kafka", {"client": "kafka-python"}),
    "confluent": Reader("pyspark_kafka", {"client": "confluent"}),
}

CASES: Final = (
    Case(B100, 4),
    Case(B100, 1),
    Case(B100_HEADERS, 4),
    Case(JSON200, 4),
    Case(KB1, 4),
    Case(KB10, 4),
)

ABOUT: Final = (
    f"A batch query reads from the earliest to the latest offset into Spark's sink `noop`, on "
    f"`local[{CORES}]`. It reads all columns, but headers only where the records have them. The "
    f"tuned JVM connector has "
    + ", ".join(f"`{name}={value}`" for name, value in TUNED.items())
    + "; all other settings are defaults."
)


def measure_batch_read(bench: Bench) -> Section:
    """Compare the readers in every case."""
    topics = [bench.topics.filled(case.shape, case.partitions) for case in CASES]
    with spark_session() as spark:
        comparisons = tuple(
            _compare(bench, spark, case, topic) for case, topic in zip(CASES, topics, strict=True)
        )
    return Section(
        "batch", "Spark, batch", ABOUT, RECORDS_PER_SECOND, comparisons, peers=(JVM, JVM_TUNED)
    )


def _compare(bench: Bench, spark: SparkSession, case: Case, topic: Topic) -> Comparison:
    options = {
        **bench.kafka.options,
        "subscribe": topic.name,
        "includeHeaders": str(case.shape.has_headers).lower(),
    }
    runs = {
        name: partial(_rate, spark, reader, options, topic.records)
        for name, reader in READERS.items()
    }
    return Comparison(case.name, alternate(runs, bench.plan), topic.shape.value_bytes)


def _rate(spark: SparkSession, reader: Reader, options: Mapping[str, str], records: int) -> float:
    began = time.perf_counter()
    frame = spark.read.format(reader.source).options(**options, **reader.options).load()
    frame.write.format("noop").mode("overwrite").save()
    return records / (time.perf_counter() - began)
