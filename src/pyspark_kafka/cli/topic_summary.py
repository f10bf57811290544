"""A summary of any topic: the number and sizes of its records by partition."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from .progress import HEADINGS, new_batches

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, Row, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from .demo_topics import TopicSource
    from .output import Console

_TABLE: Final = "records_by_partition"
_SHOWN_PARTITIONS: Final = 20


def summarize_topic(
    spark: SparkSession, source: TopicSource, checkpoint: Path, console: Console
) -> None:
    """Stream the topic up to its current end, and show the number and sizes of its records."""
    console.line(f"Streaming topic '{source.topic}' up to its current end:")
    console.line()
    console.line(HEADINGS)
    console.live("Starting the query ...")
    query = _start(records_by_partition(spark, source), checkpoint)
    began = time.monotonic()
    try:
        _follow(query, console)
    finally:
        query.stop()
    seconds = time.monotonic() - began
    rows = spark.table(_TABLE).orderBy("partition").collect()
    console.line()
    if rows:
        _show(rows, console)
    records = sum(row["records"] for row in rows)
    console.line(
        f"All {records:,} records of {source.partitions} partitions were read ({seconds:.1f} s)."
    )


def records_by_partition(spark: SparkSession, source: TopicSource) -> DataFrame:
    """Return the number and sizes of records by partition, as a streaming data frame."""
    from pyspark.sql import functions as sql

    records = spark.readStream.format("pyspark_kafka").options(**source.options).load()
    return records.groupBy("partition").agg(
        sql.count("*").alias("records"),
        sql.avg(sql.octet_length("key")).alias("key_bytes"),
        sql.avg(sql.octet_length("value")).alias("value_bytes"),
        sql.max(sql.octet_length("value")).alias("largest_value"),
        sql.max("timestamp").cast("string").alias("newest"),
    )


def _start(records: DataFrame, checkpoint: Path) -> StreamingQuery:
    return (
        records.writeStream.format("memory")
        .queryName(_TABLE)
        .outputMode("complete")
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )


def _follow(query: StreamingQuery, console: Console) -> None:
    began = time.monotonic()
    for batches in new_batches(query):
        for batch in batches:
            console.line(batch.line(lag=batch.latest - batch.end))
        console.live(f"reading for {time.monotonic() - began:.0f} s")
    console.clear()


def _show(rows: list[Row], console: Console) -> None:
    console.table(
        ("partition", "records", "avg key", "avg value", "max value", "newest (UTC)"),
        [_cells(row.asDict()) for row in rows[:_SHOWN_PARTITIONS]],
    )
    if len(rows) > _SHOWN_PARTITIONS:
        console.line(f"and {len(rows) - _SHOWN_PARTITIONS} more partitions")
    console.line()


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    return (
        str(row["partition"]),
        f"{row['records']:,}",
        _bytes(row["key_bytes"]),
        _bytes(row["value_bytes"]),
        _bytes(row["largest_value"]),
        str(row["newest"])[:19],
    )


def _bytes(number: float | None) -> str:
    return "none" if number is None else f"{number:,.0f} B"
