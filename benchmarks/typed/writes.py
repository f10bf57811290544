"""Batch writes of typed values from Spark: both clients beside Spark's functions and JVM sink."""

from __future__ import annotations

import itertools
import tempfile
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Final, final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.functions import col, to_json

from ..batch_write import TUNED
from ..bench import CLIENTS
from ..results import RECORDS_PER_SECOND, Comparison, Section
from ..rounds import alternate
from ..spark import CORES, JVM, JVM_TUNED, spark_session
from .events import AVRO, event

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql import Column, SparkSession

    from ..bench import Bench

PARTITIONS: Final = 4
FILES: Final = 4
EVENTS: Final = 20_000
"""Distinct events; a file repeats them."""

ABOUT: Final = (
    f"A batch query writes events of seven fields from uncompressed Parquet files to a topic with "
    f"{PARTITIONS} partitions, on `local[{CORES}]`, uncompressed, as JSON and as Avro. For the JVM "
    "connector's sink, `to_json` or `to_avro` makes the values; for ours the column is a struct."
)


@final
@dataclass(frozen=True, slots=True)
class Writer:
    """A Spark sink with its options, and how its values are made unless it does so itself."""

    sink: str
    options: Mapping[str, str]
    encode: Callable[[], Column] | None = None


def measure_typed_write(bench: Bench) -> Section:
    """Compare the writers of JSON and of Avro."""
    with tempfile.TemporaryDirectory(prefix="events-") as directory, spark_session() as spark:
        count = _write_events(Path(directory), bench.plan.records)
        numbers = itertools.count()
        comparisons = tuple(
            Comparison(
                case,
                alternate(
                    {
                        name: partial(_rate, bench, spark, writer, (directory, count), numbers)
                        for name, writer in writers.items()
                    },
                    bench.plan,
                ),
            )
            for case, writers in _cases().items()
        )
    return Section(
        "typed-write",
        "Spark, batch writes of typed values",
        ABOUT,
        RECORDS_PER_SECOND,
        comparisons,
        peers=(JVM, JVM_TUNED),
    )


def _cases() -> dict[str, dict[str, Writer]]:
    return {
        "JSON": _writers(_to_json, {"valueFormat": "json"}),
        "Avro": _writers(_to_avro, {"valueFormat": "avro", "valueSchema": AVRO}),
    }


def _writers(encode: Callable[[], Column], typed: Mapping[str, str]) -> dict[str, Writer]:
    jvm = {JVM: Writer("kafka", {}, encode), JVM_TUNED: Writer("kafka", TUNED, encode)}
    ours = {client: Writer("pyspark_kafka", {"client": client, **typed}) for client in CLIENTS}
    return {**jvm, **ours}


def _to_json() -> Column:
    return to_json(col("value"))


def _to_avro() -> Column:
    from pyspark.sql.avro.functions import to_avro

    return to_avro(col("value"), AVRO)


def _rate(
    bench: Bench,
    spark: SparkSession,
    writer: Writer,
    events: tuple[str, int],
    numbers: Iterator[int],
) -> float:
    directory, count = events
    topic = f"typed-{next(numbers)}"
    bench.kafka.create_topic(topic, PARTITIONS)
    rows = spark.read.parquet(directory)
    if writer.encode is not None:
        rows = rows.select(writer.encode().alias("value"))
    options = {**bench.kafka.options, **writer.options, "topic": topic}
    began = time.perf_counter()
    rows.write.format(writer.sink).mode("append").options(**options).save()
    seconds = time.perf_counter() - began
    bench.kafka.delete_topic(topic)
    return count / seconds


def _write_events(directory: Path, count: int) -> int:
    """Write about ``count`` events, evenly distributed to uncompressed files; return how many."""
    generator = Random("events")  # noqa: S311 - the same data in every run, and no secret
    events = pa.array([event(generator) for _ in range(EVENTS)], _TYPE)
    batch = pa.RecordBatch.from_arrays([events], schema=_SCHEMA)
    each = max(1, count // FILES // EVENTS)
    for number in range(FILES):
        path = directory / f"{number}.parquet"
        with pq.ParquetWriter(path, _SCHEMA, compression="none", use_dictionary=False) as writer:
            for _ in range(each):
                writer.write_batch(batch)
    return each * FILES * EVENTS


_TYPE: Final = pa.struct(
    [
        ("id", pa.int64()),
        ("user", pa.string()),
        ("event", pa.string()),
        ("amount", pa.float64()),
        ("session", pa.string()),
        ("page", pa.string()),
        ("ref", pa.string()),
    ]
)
_SCHEMA: Final = pa.schema([("value", _TYPE)])
