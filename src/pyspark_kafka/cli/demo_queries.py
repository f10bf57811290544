"""The queries of the demo: orders in micro-batches or continuously, and the summary of a topic."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TypeVar, final

import pyarrow as pa
import pyarrow.compute as pc

from .. import (
    QueryKind,
    container_for,
    continuous,
    parse_sink_options,
    parse_source_options,
    sink_container_for,
)
from ..bootstrap.container import closing_clients
from ..bootstrap.option_policy import operator_policy
from ..domain.continuous.progress import LatencyHistogram
from ..ports.record_schema import TYPES
from .output import new_table
from .spark import SparkQueryError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from ..continuous import ContinuousQuery
    from ..ports.writing import RecordWriter
    from .output import Console

    AnyQuery = TypeVar("AnyQuery", StreamingQuery, ContinuousQuery)

PER_SECOND: Final = 4_000
COUNTRIES: Final = {"DE": 24, "FR": 18, "ES": 14, "IT": 13, "NL": 11, "PL": 9, "SE": 6, "PT": 5}
"""Countries, and the percentage of orders from each."""

CHANNELS: Final = {"app": 55, "web": 45}
COLUMNS: Final = {"batch": 5, "rows": 12, "rows/s": 10, "lag": 12}
"""The columns of a query's progress, and their widths."""

LATENCY: Final = {"p50 ms": 8, "p99 ms": 8}
"""The further columns of a continuous query."""

JSON: Final = {
    "valueFormat": "json",
    "valueSchema": "order_id STRING, country STRING, amount DECIMAL(10, 2)",
    "includeHeaders": "true",
}
"""The options by which a column ``value`` is an order: its JSON is read and written."""

_FORMAT: Final = "pyspark_kafka"
_POLL_SECONDS: Final = 0.1
_SHOWN_PARTITIONS: Final = 20
_SHORT_WAIT: Final = {"kafka.fetch.max.wait.ms": "2"}
"""Unlike Kafka, the embedded broker does not answer a waiting fetch as soon as records arrive."""

_RECORD: Final = pa.schema([(name, TYPES[name]) for name in ("key", "value", "headers")])


def orders(count: int) -> Iterator[dict[str, Any]]:
    """Yield generated orders of a web shop, the same in every run.

    An order has the columns of a record, and ``cents``, its amount to check the result against.
    """
    dice = random.Random(20_260_105)  # noqa: S311 - not for secrets
    for number in range(count):
        cents = dice.randint(6_00, 300_00)
        [country] = dice.choices([*COUNTRIES], [*COUNTRIES.values()])
        [channel] = dice.choices([*CHANNELS], [*CHANNELS.values()])
        amount = f"{cents // 100}.{cents % 100:02d}"
        body = {"order_id": f"o-{number:07d}", "country": country, "amount": amount}
        yield {
            "key": f"customer-{dice.randrange(9_000):04d}".encode(),
            "value": json.dumps(body, separators=(",", ":")).encode(),
            "headers": [{"key": "channel", "value": channel.encode()}],
            "cents": cents,
        }


@final
class OrderFeed:
    """Writes orders to a topic at a steady pace; ``sent`` and ``cents`` count what Kafka has."""

    def __init__(self, writer: RecordWriter, topic: str, count: int) -> None:
        self._writer = writer
        self._topic = topic
        self._left = orders(count)
        self._began = time.monotonic()
        self.count = count
        self.sent = 0
        self.cents = 0

    def send_due(self) -> None:
        """Write the orders that are due by now, and wait until Kafka has them.

        :raises PysparkKafkaError: if Kafka did not acknowledge one.
        """
        due = int(PER_SECOND * (time.monotonic() - self._began)) - self.sent
        if found := list(islice(self._left, due)):
            self._writer.write(pa.RecordBatch.from_pylist(found, schema=_RECORD), self._topic)
            self.sent += self._writer.flush().records
            self.cents += sum(order["cents"] for order in found)


@contextmanager
def order_feed(connection: Mapping[str, str], topic: str, count: int) -> Iterator[OrderFeed]:
    """Yield what writes orders to a topic: this library's own writer, embedded without Spark.

    :raises PysparkKafkaError: if the options are invalid, or the operator forbids one.
    """
    given = {**connection, "topic": topic}
    options = parse_sink_options(given, QueryKind.BATCH, operator_policy())
    with closing_clients(sink_container_for(options)) as container:
        yield OrderFeed(container.record_writer(), topic, count)


@final
@dataclass(frozen=True, slots=True)
class DemoTopic:
    """A topic; ``results`` is the one that the demo writes to, ``None`` for a topic of the user.

    ``connection`` are the client and the ``kafka.*`` options.
    """

    name: str
    results: str | None
    connection: Mapping[str, str]

    @property
    def source(self) -> dict[str, str]:
        """The options of a query that reads the topic from its beginning."""
        return {**self.connection, "subscribe": self.name, "startingOffsets": "earliest"}

    @property
    def sink(self) -> dict[str, str]:
        """The options of a query that writes orders to the topic of results."""
        return {**self.connection, **JSON, "topic": str(self.results)}

    def partitions(self) -> int:
        """Return the number of partitions, as the client sees them that is going to read.

        :raises PysparkKafkaError: if no broker answers, or there is no such topic.
        """
        options = parse_source_options(self.source, QueryKind.STREAM, operator_policy())
        with closing_clients(container_for(options)) as container:
            return len(container.offset_fetcher().partitions(options.subscription))


@final
@dataclass(frozen=True, slots=True)
class Demo:
    """The queries of a run of the demo."""

    spark: SparkSession
    topic: DemoTopic
    checkpoint: Path
    console: Console

    def stream_orders(self, count: int, *, is_continuous: bool) -> None:
        """Produce orders, stream them to the topic of results, and check that none is missing.

        :raises SparkQueryError: if one is, or is there twice.
        """
        what = "A continuous query passes on" if is_continuous else "Micro-batches pass on"
        self.console.line(f"{what} {count:,} orders as they are produced,")
        self.console.line(f"{PER_SECOND:,} a second, to topic '{self.topic.results}', by country.")
        self.console.line("Values are read from JSON, and written as JSON (valueFormat=json).")
        self.console.line()
        run = self._run_continuously if is_continuous else self._run_micro_batches
        seconds, feed = run(count)
        self._show_result(feed)
        self.console.line("Kafka -> Spark -> Kafka, read back from the topic of results:")
        self.console.line(
            f"All {count:,} events are in the result: orders and revenue agree ({seconds:.1f} s)."
        )

    def _run_micro_batches(self, count: int) -> tuple[float, OrderFeed]:
        from pyspark.sql import functions as sql

        self._begin(COLUMNS)
        reader = self.spark.readStream.format(_FORMAT).options(**self.topic.source, **JSON)
        country = sql.col("value.country").alias("key")
        records = reader.load().select(country, "value", "headers")
        writer = records.writeStream.format(_FORMAT).options(**self.topic.sink)
        writer = writer.option("checkpointLocation", str(self.checkpoint))
        with stopping(writer.trigger(processingTime="1 second").start()) as query:
            return self._follow_orders(query, count)

    def _run_continuously(self, count: int) -> tuple[float, OrderFeed]:
        self._begin(COLUMNS | LATENCY)
        latencies = [LatencyHistogram()]
        query = continuous.start(
            self.spark,
            orders_by_country,
            source={**self.topic.source, **JSON, **_SHORT_WAIT},
            sink=self.topic.sink,
            checkpointLocation=str(self.checkpoint),
            listeners=[lambda report: latencies.append(report.work.latency)],
        )
        with stopping(query):
            # No order waits for tasks to start.
            while not (query.status["isTriggerActive"] or query.awaitTermination(_POLL_SECONDS)):
                pass
            followed = self._follow_orders(query, count)
        latency = reduce(LatencyHistogram.merge, latencies)
        p50, p99 = (_milliseconds(latency.percentile(percent)) for percent in (50, 99))
        self.console.line()
        self.console.line(
            f"From an order to the acknowledgement of its result: p50 {p50} ms, p99 {p99} ms"
        )
        return followed

    def _begin(self, columns: Mapping[str, int]) -> None:
        self.console.line(aligned(columns, columns))
        self.console.live("Starting the query ...")

    def _follow_orders(
        self, query: StreamingQuery | ContinuousQuery, count: int
    ) -> tuple[float, OrderFeed]:
        """Produce orders until a query has read all; return the seconds that it took."""
        began, read = time.monotonic(), 0
        with order_feed(self.topic.connection, self.topic.name, count) as feed:
            for batches in new_batches(query):
                feed.send_due()
                for batch in batches:
                    read += batch["numInputRows"]
                    self.console.line(batch_line(batch, feed.sent - read))
                self.console.live(f"{feed.sent:,} of {count:,} orders sent, {read:,} read")
                if read >= feed.sent == count:
                    break
        self.console.clear()
        return time.monotonic() - began, feed

    def _show_result(self, feed: OrderFeed) -> None:
        rows = [row.asDict() for row in self._revenue_by_country().collect()]
        self._table(
            ("country", "orders", "revenue (EUR)", "avg order", "by app"),
            [
                (
                    row["country"],
                    f"{row['orders']:,}",
                    f"{row['revenue']:,.2f}",
                    f"{row['revenue'] / row['orders']:,.2f}",
                    f"{row['by_app'] / row['orders']:.0%}",
                )
                for row in rows
            ],
        )
        orders = sum(row["orders"] for row in rows)
        revenue = sum((row["revenue"] for row in rows), Decimal(0))
        if orders != feed.sent or revenue * 100 != feed.cents:
            raise SparkQueryError(
                f"{feed.sent:,} events of {Decimal(feed.cents) / 100:,.2f} EUR were produced, "
                f"and the result holds {orders:,} of {revenue:,.2f} EUR."
            )

    def _revenue_by_country(self) -> DataFrame:
        """Return the orders in the topic of results, the country with the largest revenue first."""
        from pyspark.sql import functions as sql

        options = {**self.topic.connection, **JSON, "subscribe": str(self.topic.results)}
        records = self.spark.read.format(_FORMAT).options(**options).load()
        channel = sql.map_from_entries("headers")["channel"].cast("string")
        return (
            records.select("value.*", channel.alias("channel"))
            .groupBy("country")
            .agg(
                sql.count("order_id").alias("orders"),
                sql.sum("amount").alias("revenue"),
                sql.count_if(sql.col("channel") == "app").alias("by_app"),
            )
            .orderBy("revenue", ascending=False)
        )

    def summarize_topic(self, partitions: int) -> None:
        """Stream the topic up to its current end, and show the number and sizes of its records."""
        self.console.line(f"Streaming topic '{self.topic.name}' up to its current end:")
        self.console.line()
        self._begin(COLUMNS)
        began = time.monotonic()
        writer = self._records_by_partition().writeStream.format("memory").queryName("summary")
        writer = writer.outputMode("complete").option("checkpointLocation", str(self.checkpoint))
        with stopping(writer.trigger(availableNow=True).start()) as query:
            for batches in new_batches(query):
                for batch in batches:
                    self.console.line(batch_line(batch, offsets_behind(batch)))
                self.console.live(f"reading for {time.monotonic() - began:.0f} s")
        seconds = time.monotonic() - began
        rows = [row.asDict() for row in self.spark.table("summary").orderBy("partition").collect()]
        if rows:
            self._table(
                ("partition", "records", "avg key", "avg value", "max value", "newest (UTC)"),
                [
                    (
                        str(row["partition"]),
                        f"{row['records']:,}",
                        *map(_bytes, (row["key_bytes"], row["value_bytes"], row["largest_value"])),
                        str(row["newest"])[:19],
                    )
                    for row in rows[:_SHOWN_PARTITIONS]
                ],
            )
        if len(rows) > _SHOWN_PARTITIONS:
            self.console.line(f"and {len(rows) - _SHOWN_PARTITIONS} more partitions")
        records = sum(row["records"] for row in rows)
        self.console.line(
            f"All {records:,} records of {partitions} partitions were read ({seconds:.1f} s)."
        )

    def _records_by_partition(self) -> DataFrame:
        from pyspark.sql import functions as sql

        records = self.spark.readStream.format(_FORMAT).options(**self.topic.source).load()
        return records.groupBy("partition").agg(
            sql.count("*").alias("records"),
            sql.avg(sql.octet_length("key")).alias("key_bytes"),
            sql.avg(sql.octet_length("value")).alias("value_bytes"),
            sql.max(sql.octet_length("value")).alias("largest_value"),
            sql.max("timestamp").cast("string").alias("newest"),
        )

    def _table(self, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        from rich.console import Console as RichConsole

        table = new_table(*headings)
        table.show_edge = False
        for row in rows:
            table.add_row(*row)
        self.console.line()
        RichConsole(highlight=False).print(table)
        self.console.line()


def orders_by_country(orders: pa.RecordBatch) -> pa.RecordBatch:
    """Return orders as records whose key is the country; executors run this."""
    country = pc.struct_field(orders["value"], "country")
    return pa.RecordBatch.from_arrays(
        [country, orders["value"], orders["headers"]], ["key", "value", "headers"]
    )


@contextmanager
def stopping(query: AnyQuery) -> Iterator[AnyQuery]:
    """Stop a query at the end of the block."""
    try:
        yield query
    finally:
        query.stop()


def new_batches(query: StreamingQuery | ContinuousQuery) -> Iterator[list[dict[str, Any]]]:
    """Yield the progress of batches with rows since the last call, while a query runs.

    Waits between calls, and raises the error of a query that fails.
    """
    last, is_active = "", True
    while is_active:
        # Read before the progress reports, so that the last report is not missed.
        is_active = query.isActive
        batches = [
            dict(progress)
            for progress in query.recentProgress
            if progress["numInputRows"] and progress["timestamp"] > last
        ]
        last = batches[-1]["timestamp"] if batches else last
        yield batches
        time.sleep(_POLL_SECONDS)
    query.awaitTermination()


def batch_line(progress: Mapping[str, Any], lag: int) -> str:
    """Return a row under ``COLUMNS``; that of a continuous query under ``LATENCY``, too."""
    numbers = (progress["numInputRows"], round(progress["processedRowsPerSecond"]), lag)
    cells = [str(progress["batchId"]), *(f"{number:,}" for number in numbers)]
    latency = progress.get("latencyMs")
    if latency is None:
        return aligned(COLUMNS, cells)
    return aligned(COLUMNS | LATENCY, [*cells, *(_milliseconds(latency[each]) for each in latency)])


def aligned(columns: Mapping[str, int], cells: Iterable[str]) -> str:
    """Return cells right-aligned in columns of given widths."""
    widths = columns.values()
    return "  ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True))


def offsets_behind(progress: Mapping[str, Any]) -> int:
    """Return the number of offsets from the end of a batch to the topic's end, as Spark has it."""
    source = progress["sources"][0]
    latest = source["latestOffset"]
    return _summed(latest) - _summed(source["endOffset"]) if latest else 0


def _summed(offsets: str) -> int:
    # PySpark before 4.2 has the text of a Python dictionary here.
    partitions = json.loads(offsets.replace("'", '"'))
    return sum(sum(topic.values()) for topic in partitions.values())


def _bytes(number: float | None) -> str:
    return "none" if number is None else f"{number:,.0f} B"


def _milliseconds(number: int | None) -> str:
    return "-" if number is None else f"{number:,}"
