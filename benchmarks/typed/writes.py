"""Batch writes of typed values from Spark: both clients, and Spark's functions with the JVM sink.

Each sink runs with its defaults and tuned. All read the same files, with the same acknowledgements,
idempotence and codec. Our sinks are tuned by a setting of Spark that only Python workers have: it
keeps Spark from measuring an Arrow batch again for each row, which for structs takes longer than
converting the row (decision 31). The JVM connector's sink has no Arrow batches, so the setting
would change nothing there.
"""

from __future__ import annotations

import itertools
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
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

TUNED_SESSION: Final[Mapping[str, str]] = {
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1)
}
"""The setting of Spark that makes our sink of structs faster: Arrow batches are limited in rows."""

ABOUT: Final = (
    f"A batch query writes events of seven fields from uncompressed Parquet files to a topic with "
    f"{PARTITIONS} partitions, on `local[{CORES}]`, uncompressed, as JSON and as Avro. For the JVM "
    "connector's sink, `to_json` or `to_avro` makes the values; for ours the column is a struct. "
    "Tuned, ours runs with "
    + ", ".join(f"`{name}={value}`" for name, value in TUNED_SESSION.items())
    + ", and the JVM connector's with "
    + ", ".join(f"`{name}={value}`" for name, value in TUNED.items())
    + "."
)


@final
@dataclass(frozen=True, slots=True)
class Writer:
    """A Spark sink with its options, and how its values are made unless it does so itself.

    ``session`` has the settings of Spark during its runs.
    """

    sink: str
    options: Mapping[str, str]
    encode: Callable[[], Column] | None = None
    session: Mapping[str, str] = field(default_factory=dict)


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
            for case, writers in cases().items()
        )
    return Section(
        "typed-write",
        "Spark, batch writes of typed values",
        ABOUT,
        RECORDS_PER_SECOND,
        comparisons,
        peers=(JVM, JVM_TUNED),
    )


def cases() -> dict[str, dict[str, Writer]]:
    """Return the writers of each format, by the names of competitors."""
    return {
        "JSON": _writers(_to_json, {"valueFormat": "json"}),
        "Avro": _writers(_to_avro, {"valueFormat": "avro", "valueSchema": AVRO}),
    }


def _writers(encode: Callable[[], Column], typed: Mapping[str, str]) -> dict[str, Writer]:
    jvm = {JVM: Writer("kafka", {}, encode), JVM_TUNED: Writer("kafka", TUNED, encode)}
    ours = {
        f"{client}{suffix}": Writer("pyspark_kafka", {"client": client, **typed}, session=session)
        for client in CLIENTS
        for suffix, session in (("", {}), (", tuned", TUNED_SESSION))
    }
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
    with _configured(spark, writer.session):
        began = time.perf_counter()
        rows.write.format(writer.sink).mode("append").options(**options).save()
        seconds = time.perf_counter() - began
    bench.kafka.delete_topic(topic)
    return count / seconds


@contextmanager
def _configured(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name in settings:
            spark.conf.unset(name)


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
