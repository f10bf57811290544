"""Batch reads in Spark: both clients compared with the JVM connector."""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

from . import synthetic
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


SYNTHETIC: Final = "synthetic source"

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
    + "; all other settings are defaults. The synthetic source is a Python source without a "
    "broker, with a batch of the same rows in memory: its rate is what Spark allows a Python "
    "source."
)


def measure_batch_read(bench: Bench) -> Section:
    """Compare the readers in every case."""
    topics = [bench.topics.filled(case.shape, case.partitions) for case in CASES]
    with tempfile.TemporaryDirectory(prefix="batches-") as directory, spark_session() as spark:
        spark.dataSource.register(synthetic.SyntheticSource)
        comparisons = tuple(
            _compare(bench, spark, case, topic, Path(directory))
            for case, topic in zip(CASES, topics, strict=True)
        )
    return Section(
        "batch",
        "Spark, batch",
        ABOUT,
        RECORDS_PER_SECOND,
        comparisons,
        peers=(JVM, JVM_TUNED, SYNTHETIC),
        limit=SYNTHETIC,
    )


def _compare(
    bench: Bench, spark: SparkSession, case: Case, topic: Topic, directory: Path
) -> Comparison:
    options = {
        **bench.kafka.options,
        "subscribe": topic.name,
        "includeHeaders": str(case.shape.has_headers).lower(),
    }
    made = Reader(synthetic.FORMAT, synthetic.options_for(topic, directory))
    runs = {
        name: partial(_rate, spark, reader, options, topic.records)
        for name, reader in {**READERS, SYNTHETIC: made}.items()
    }
    return Comparison(case.name, alternate(runs, bench.plan), topic.shape.value_bytes)


def _rate(spark: SparkSession, reader: Reader, options: Mapping[str, str], records: int) -> float:
    began = time.perf_counter()
    frame = spark.read.format(reader.source).options(**options, **reader.options).load()
    frame.write.format("noop").mode("overwrite").save()
    return records / (time.perf_counter() - began)
