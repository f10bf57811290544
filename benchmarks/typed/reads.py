"""Batch reads of typed values in Spark: both clients, and the JVM connector with functions."""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

from pyspark.sql.functions import col, from_json

from ..bench import CLIENTS
from ..results import RECORDS_PER_SECOND, Comparison, Section
from ..rounds import alternate
from ..spark import CORES, JVM, JVM_TUNED, TUNED, spark_session
from .events import (
    AVRO,
    AVRO_EVENTS,
    BAD_JSON,
    DDL,
    JSON,
    MESSAGE,
    PROTOBUF_EVENTS,
    descriptor_set,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import Column, SparkSession

    from ..bench import Bench
    from ..topics import Shape, Topic

    Parse = Callable[[], Column]

PARTITIONS: Final = 4
SCHEMA: Final = f"value struct<{DDL.replace(' ', ':').replace(',:', ',')}>, offset bigint"
BYTES_ALONE: Final = "kafka-python, bytes"

ABOUT: Final = (
    "A batch query reads four of the seven fields of events, and offsets, into Spark's sink `noop` "
    f"on `local[{CORES}]`, from {PARTITIONS} partitions compressed with zstd. The JVM connector "
    "reads bytes, which Spark's functions parse. Of bad values, one of a hundred is cut off; both "
    "sides read them as nulls (`mode=PERMISSIVE`)."
)


@final
@dataclass(frozen=True, slots=True)
class Reader:
    """A Spark source with its options, and how its values are parsed unless it does so itself."""

    source: str
    options: Mapping[str, str]
    parse: Parse | None = None


def measure_json_read(bench: Bench) -> Section:
    """Compare reads of JSON, of good values and with bad ones among them."""
    typed = {"valueFormat": "json", "valueSchema": DDL, "mode": "PERMISSIVE"}
    readers = {**_jvm(_from_json), **_ours(typed)}
    return _section(bench, "typed-json", "Spark, JSON", (JSON, BAD_JSON), readers, (JVM, JVM_TUNED))


def measure_avro_read(bench: Bench) -> Section:
    """Compare reads of Avro."""
    typed = {"valueFormat": "avro", "valueSchema": AVRO}
    readers = {**_jvm(_from_avro), **_ours(typed)}
    return _section(bench, "typed-avro", "Spark, Avro", (AVRO_EVENTS,), readers, (JVM, JVM_TUNED))


def measure_protobuf_read(bench: Bench) -> Section:
    """Compare reads of Protobuf with reads of its bytes: Spark's functions cannot be had."""
    with tempfile.TemporaryDirectory(prefix="descriptors-") as directory:
        path = Path(directory, "event.desc")
        path.write_bytes(descriptor_set())
        typed = {
            "valueFormat": "protobuf",
            "valueSchema": str(path),
            "valueMessage": MESSAGE,
        }
        readers = {BYTES_ALONE: Reader("pyspark_kafka", {"client": "kafka-python"}), **_ours(typed)}
        return _section(
            bench,
            "typed-protobuf",
            "Spark, Protobuf",
            (PROTOBUF_EVENTS,),
            readers,
            (BYTES_ALONE,),
        )


def _jvm(parse: Parse) -> dict[str, Reader]:
    return {JVM: Reader("kafka", {}, parse), JVM_TUNED: Reader("kafka", TUNED, parse)}


def _ours(typed: Mapping[str, str]) -> dict[str, Reader]:
    return {client: Reader("pyspark_kafka", {"client": client, **typed}) for client in CLIENTS}


def _from_json() -> Column:
    return from_json(col("value").cast("string"), DDL)


def _from_avro() -> Column:
    from pyspark.sql.avro.functions import from_avro

    # Spark prunes no field of its schema: the reader's schema has only the four that are wanted.
    return from_avro(col("value"), AVRO)


def _section(
    bench: Bench,
    name: str,
    title: str,
    shapes: tuple[Shape, ...],
    readers: Mapping[str, Reader],
    peers: tuple[str, ...],
) -> Section:
    topics = [bench.topics.filled(shape, PARTITIONS) for shape in shapes]
    with spark_session() as spark:
        comparisons = tuple(_compare(bench, spark, topic, readers) for topic in topics)
    return Section(name, title, ABOUT, RECORDS_PER_SECOND, comparisons, peers=peers)


def _compare(
    bench: Bench, spark: SparkSession, topic: Topic, readers: Mapping[str, Reader]
) -> Comparison:
    options = {**bench.kafka.options, "subscribe": topic.name}
    runs = {
        name: partial(_rate, spark, reader, options, topic.records)
        for name, reader in readers.items()
    }
    return Comparison(topic.shape.name, alternate(runs, bench.plan), topic.shape.value_bytes)


def _rate(spark: SparkSession, reader: Reader, options: Mapping[str, str], records: int) -> float:
    began = time.perf_counter()
    source = spark.read.format(reader.source).options(**options, **reader.options)
    if reader.parse is not None:
        frame = source.load().select(reader.parse().alias("value"), "offset")
        frame = frame.select("value.id", "value.user", "value.event", "value.amount", "offset")
    elif "valueFormat" in reader.options:
        frame = source.schema(SCHEMA).load()
    else:
        frame = source.schema("value binary, offset bigint").load()
    frame.write.format("noop").mode("overwrite").save()
    return records / (time.perf_counter() - began)
