"""The stream of orders: from Kafka through Spark to Kafka, and the check of the result."""

from __future__ import annotations

import time
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from .order_feed import PER_SECOND, OrderFeed
from .output import progress_bar
from .progress import HEADINGS, new_batches
from .spark import SparkQueryError

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, Row, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from .demo_topics import TopicSource
    from .output import Console

JSON: Final = {
    "valueFormat": "json",
    "valueSchema": "order_id STRING, country STRING, amount DECIMAL(10, 2)",
}
"""The options by which a column ``value`` is an order: its JSON is read and written."""


def stream_orders(
    spark: SparkSession, source: TopicSource, count: int, checkpoint: Path, console: Console
) -> None:
    """Produce orders, stream them to the topic of results, and check that none is missing."""
    console.line(f"Streaming {count:,} orders as they are produced, {PER_SECOND:,} a second,")
    console.line(f"to topic '{source.results}', by country.")
    console.line("Values are read from JSON, and written as JSON (valueFormat=json).")
    console.line()
    console.line(HEADINGS)
    console.live("Starting the query ...")
    query = _start(records_by_country(orders_of(spark, source)), source, checkpoint)
    began = time.monotonic()
    try:
        with OrderFeed(source.connection, source.topic, count) as feed:
            _follow(query, feed, console)
    finally:
        query.stop()
    show_result(spark, source, feed, time.monotonic() - began, console)


def show_result(
    spark: SparkSession, source: TopicSource, feed: OrderFeed, seconds: float, console: Console
) -> None:
    """Read the topic of results back, show it, and check that no order is missing.

    :raises SparkQueryError: if one is, or is there twice.
    """
    rows = revenue_by_country(results_of(spark, source)).collect()
    _show(rows, console)
    _check(rows, feed)
    console.line("Kafka -> Spark -> Kafka, read back from the topic of results:")
    console.line(
        f"All {feed.sent:,} events are in the result: orders and revenue agree ({seconds:.1f} s)."
    )


def orders_of(spark: SparkSession, source: TopicSource) -> DataFrame:
    """Return the topic as a streaming data frame of orders: the column ``value`` is a struct."""
    reader = spark.readStream.format("pyspark_kafka")
    return reader.options(**source.options, **JSON, includeHeaders="true").load()


def records_by_country(orders: DataFrame) -> DataFrame:
    """Return orders as records: the key is the country, and a header holds the channel."""
    from pyspark.sql import functions as sql

    return orders.select(sql.col("value.country").alias("key"), "value", "headers")


def results_of(spark: SparkSession, source: TopicSource) -> DataFrame:
    """Return the topic of results as a batch data frame of orders."""
    from pyspark.sql import functions as sql

    options = {**source.connection, "subscribe": str(source.results), "includeHeaders": "true"}
    records = spark.read.format("pyspark_kafka").options(**options, **JSON).load()
    channel = sql.map_from_entries("headers")["channel"].cast("string")
    return records.select("value.*", channel.alias("channel"))


def revenue_by_country(orders: DataFrame) -> DataFrame:
    """Return orders and revenue by country, the largest revenue first."""
    from pyspark.sql import functions as sql

    return (
        orders.groupBy("country")
        .agg(
            sql.count("order_id").alias("orders"),
            sql.sum("amount").alias("revenue"),
            sql.count_if(sql.col("channel") == "app").alias("by_app"),
        )
        .orderBy("revenue", ascending=False)
    )


def _start(records: DataFrame, source: TopicSource, checkpoint: Path) -> StreamingQuery:
    options = {"topic": str(source.results), "checkpointLocation": str(checkpoint)}
    writer = records.writeStream.format("pyspark_kafka")
    writer = writer.options(**source.connection, **options, **JSON)
    return writer.trigger(processingTime="1 second").start()


def _follow(query: StreamingQuery, feed: OrderFeed, console: Console) -> None:
    read = 0
    for batches in new_batches(query):
        for batch in batches:
            read = batch.end
            # Records can be read before the feed receives their acknowledgement.
            console.line(batch.line(lag=max(0, feed.sent - read)))
        console.live(f"{progress_bar(read, feed.count)} {feed.sent:,} orders sent, {read:,} read")
        if feed.is_done() and read == feed.sent:
            break
    console.clear()


def _show(rows: list[Row], console: Console) -> None:
    console.line()
    console.table(
        ("country", "orders", "revenue (EUR)", "avg order", "by app"),
        [_cells(row.asDict()) for row in rows],
    )
    console.line()


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    return (
        row["country"],
        f"{row['orders']:,}",
        f"{row['revenue']:,.2f}",
        f"{row['revenue'] / row['orders']:,.2f}",
        f"{row['by_app'] / row['orders']:.0%}",
    )


def _check(rows: list[Row], feed: OrderFeed) -> None:
    orders = sum(row["orders"] for row in rows)
    revenue = sum((row["revenue"] for row in rows), Decimal(0))
    if orders != feed.sent or revenue * 100 != feed.cents:
        raise SparkQueryError(
            f"{feed.sent:,} events of {Decimal(feed.cents) / 100:,.2f} EUR were produced, "
            f"and the result holds {orders:,} of {revenue:,.2f} EUR."
        )
