"""The continuous query of orders: from Kafka to a function on Arrow to Kafka."""

from __future__ import annotations

import time
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from .. import continuous
from ..domain.continuous.progress import LatencyHistogram
from .order_feed import PER_SECOND, OrderFeed
from .order_stream import JSON, show_result
from .output import progress_bar

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from ..application.continuous.query import ContinuousQuery
    from ..domain.continuous.progress import EpochProgress
    from .demo_topics import TopicSource
    from .output import Console

HEADINGS: Final = "epoch  rows/s in  rows/s out      lag  p50 ms  p99 ms  restarts"

_SHORT_WAIT: Final = {"kafka.fetch.max.wait.ms": "2"}
"""Unlike Kafka, the embedded broker does not answer a waiting fetch as soon as records arrive."""

_POLL_SECONDS: Final = 0.2


def orders_by_country(orders: pa.RecordBatch) -> pa.RecordBatch:
    """Return orders as records whose key is the country; executors run this."""
    country = pc.struct_field(orders["value"], "country")
    return pa.RecordBatch.from_arrays(
        [country, orders["value"], orders["headers"]], ["key", "value", "headers"]
    )


def stream_orders_continuously(
    spark: SparkSession, source: TopicSource, count: int, checkpoint: Path, console: Console
) -> None:
    """Produce orders, copy them by country, and check that none is missing."""
    console.line(f"A continuous query passes {count:,} orders on as they are produced,")
    console.line(f"{PER_SECOND:,} a second, to topic '{source.results}', by country.")
    console.line("Values are read from JSON, and written as JSON (valueFormat=json).")
    console.line()
    console.line(HEADINGS)
    console.live("Starting the tasks ...")
    reports: SimpleQueue[EpochProgress] = SimpleQueue()
    query = continuous.start(
        spark,
        orders_by_country,
        source={**source.options, **JSON, "includeHeaders": "true", **_SHORT_WAIT},
        sink={**source.connection, **JSON, "topic": str(source.results)},
        checkpointLocation=str(checkpoint),
        listeners=[reports.put],
    )
    try:
        _await_tasks(query)
        began = time.monotonic()
        with OrderFeed(source.connection, source.topic, count) as feed:
            latency = _follow(query, feed, reports, console)
        seconds = time.monotonic() - began
    finally:
        query.stop()
    console.line()
    console.line(_latency_line(latency))
    show_result(spark, source, feed, seconds, console)


def _await_tasks(query: ContinuousQuery) -> None:
    """Wait until all tasks run, so that no order waits for them; raise what fails the query."""
    while not query.status["isTriggerActive"] and not query.awaitTermination(_POLL_SECONDS):
        pass


def _follow(
    query: ContinuousQuery, feed: OrderFeed, reports: SimpleQueue[EpochProgress], console: Console
) -> LatencyHistogram:
    """Show the reports of a query until it has passed all orders on; return all latencies."""
    passed, latency = 0, LatencyHistogram()
    for report in _reports(query, reports):
        if report is not None and report.work.input_rows:
            passed += report.work.input_rows
            latency = latency.merge(report.work.latency)
            console.line(report_line(report))
        console.live(f"{progress_bar(passed, feed.count)} {feed.sent:,} orders sent")
        if feed.is_done() and passed >= feed.sent:
            break
    console.clear()
    return latency


def _reports(
    query: ContinuousQuery, reports: SimpleQueue[EpochProgress]
) -> Iterator[EpochProgress | None]:
    """Yield reports, or ``None`` after a wait without one; raise the error of a failed query."""
    while query.isActive:
        try:
            yield reports.get(timeout=_POLL_SECONDS)
        except Empty:
            yield None
    query.awaitTermination()


def report_line(report: EpochProgress) -> str:
    """Return a row of the table under ``HEADINGS``."""
    lag = "?" if report.lag is None else f"{report.lag.total:,}"
    p50, p99 = (_milliseconds(report.work.latency, percent) for percent in (50, 99))
    return (
        f"{report.epoch:>5}  {report.input_rows_per_second:>9,.0f}  "
        f"{report.output_rows_per_second:>10,.0f}  {lag:>7}  {p50:>6}  {p99:>6}  "
        f"{report.restarts:>8}"
    )


def _latency_line(latency: LatencyHistogram) -> str:
    p50, p99 = (_milliseconds(latency, percent) for percent in (50, 99))
    return f"From an order to the acknowledgement of its result: p50 {p50} ms, p99 {p99} ms"


def _milliseconds(latency: LatencyHistogram, percent: float) -> str:
    found = latency.percentile(percent)
    return "-" if found is None else f"{found:,}"
