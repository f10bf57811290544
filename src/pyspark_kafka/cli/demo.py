"""``pyspark-kafka demo``: stream a topic through Spark, and show the result."""

from __future__ import annotations

import logging
import secrets
import sys
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

from .arguments import Commands, add_client, add_command, add_file, positive
from .output import Console, logs_redirected_to

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from ..continuous import ContinuousQuery

    AnyQuery: TypeAlias = StreamingQuery | ContinuousQuery

DEFAULT_EVENTS: Final = 60_000
MAX_EMBEDDED_EVENTS: Final = 80_000
"""The most events that always fit into the embedded broker, which drops older records."""

_DEMO: Final = """\
Stream generated shop orders from Kafka through Spark and back, and show the result.

without options                   on a broker in this process
--bootstrap-servers               on your Kafka, in new topics that are deleted
                                  at the end
--bootstrap-servers and --topic   reads your topic, from its first record to its
                                  current end; nothing is written
--continuous                      by a continuous query, which passes each order
                                  on within milliseconds
"""

_FORMAT: Final = "pyspark_kafka"
_NAME: Final = "pyspark-kafka-demo"
_PARTITIONS: Final = 4
_TIMEOUT_SECONDS: Final = 10
_PER_BATCH: Final = 2_000
_SHORT_WAIT: Final = {"kafka.fetch.max.wait.ms": "2"}
"""Unlike Kafka, the embedded broker does not answer a waiting fetch as soon as records arrive."""

_POLL_SECONDS: Final = 0.1

_JSON: Final = {
    "valueFormat": "json",
    "valueSchema": "order_id STRING, country STRING, amount DECIMAL(10, 2)",
}
"""The options by which a column ``value`` is an order: its JSON is read and written."""

_ORDER: Final = """
    format_string('o-%07d', value) AS order_id,
    element_at(split('DE DE DE DE FR FR FR ES ES IT NL PL', ' '),
               int(pmod(hash(value), 12)) + 1) AS country,
    CAST((600 + pmod(xxhash64(value), 29400)) / 100 AS DECIMAL(10, 2)) AS amount
"""
"""The order with a number ``value``, the same in every run."""

_SUMMARY: Final = (
    "count(*) AS records",
    "round(avg(octet_length(key))) AS `avg key bytes`",
    "round(avg(octet_length(value))) AS `avg value bytes`",
    "max(octet_length(value)) AS `max value bytes`",
    "date_trunc('second', max(timestamp)) AS `newest (UTC)`",
)


def add_demo(commands: Commands) -> None:
    """Add the command ``demo``."""
    summary = "stream records from Kafka through Spark"
    demo = add_command(commands, "demo", summary, _DEMO, run_demo)
    demo.add_argument(
        "--bootstrap-servers", metavar="HOST:PORT,...", help="a Kafka cluster to run on"
    )
    demo.add_argument("--topic", help="a topic of that cluster to read instead of generated orders")
    add_client(demo)
    demo.add_argument(
        "--events",
        metavar="N",
        type=positive,
        help=f"the number of orders (default: {DEFAULT_EVENTS}; "
        f"without --bootstrap-servers at most {MAX_EMBEDDED_EVENTS})",
    )
    demo.add_argument(
        "--continuous", action="store_true", help="run a continuous query, not micro-batches"
    )
    add_file(demo, "--spark-log", Path, "write Spark's log to FILE")


def _check(given: argparse.Namespace) -> None:
    if given.topic is not None and given.bootstrap_servers is None:
        given.error("--topic needs --bootstrap-servers")
    if given.topic is not None and given.events is not None:
        given.error("--events cannot go with --topic: the demo only reads your topic")
    if given.topic is not None and given.continuous:
        given.error("--continuous cannot go with --topic: the demo only reads your topic")
    if given.bootstrap_servers is None and (given.events or 0) > MAX_EMBEDDED_EVENTS:
        need = f"more than {MAX_EMBEDDED_EVENTS} --events need a Kafka: set --bootstrap-servers"
        given.error(need)


def run_demo(given: argparse.Namespace) -> int:
    """Run the demo, and return the exit status.

    :raises PysparkKafkaError: if a dependency is missing, or the demo fails.
    """
    _check(given)
    from ..brokers import require_java
    from .spark import readable_spark_errors, require_pyspark, spark_session

    console = Console(sys.stdout)
    require_java()
    with ExitStack() as stack:
        # The JVM deletes its own files in it when it ends, perhaps at the same time.
        temporary = TemporaryDirectory(prefix="pyspark-kafka-", ignore_cleanup_errors=True)
        directory = Path(stack.enter_context(temporary))
        log = given.spark_log or directory / "log"
        stack.enter_context(logs_redirected_to(logging.FileHandler(log, delay=True)))
        stack.callback(console.clear)
        version = require_pyspark()
        topic, kafka = stack.enter_context(_topic(given))
        console.line(f"Kafka at {kafka['kafka.bootstrap.servers']}, topic '{topic}'")
        console.line(f"client '{given.client}', no jars")
        console.line()
        console.live(f"Starting Spark {version} ...")
        stack.enter_context(readable_spark_errors())
        spark = stack.enter_context(spark_session(directory, log))
        demo = _Demo(spark, topic, kafka, directory, console)
        if given.topic is None:
            demo.stream_orders(given.events or DEFAULT_EVENTS, is_continuous=given.continuous)
        else:
            demo.summarize_topic()
        _what_next(given, console)
        console.live("Stopping Spark ...")
    return 0


@contextmanager
def _topic(given: argparse.Namespace) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield a topic, and the options of its cluster: the user's topic, or a new one for orders."""
    from ..brokers import EmbeddedBroker, temporary_topics

    servers = given.bootstrap_servers
    options = {
        "kafka.bootstrap.servers": servers,
        "kafka.default.api.timeout.ms": str(1_000 * _TIMEOUT_SECONDS),
        "client": given.client,
    }
    name = given.topic or (_NAME if servers is None else f"{_NAME}-{secrets.token_hex(4)}")
    created = dict.fromkeys((name, _results(name)), _PARTITIONS)
    with ExitStack() as stack:
        if servers is None:
            broker = stack.enter_context(EmbeddedBroker())
            options |= broker.options
            for topic, partitions in created.items():
                broker.create_topic(topic, partitions)
        elif given.topic is None:
            stack.enter_context(temporary_topics(servers, created, _TIMEOUT_SECONDS))
        yield name, options


def _results(topic: str) -> str:
    return f"{topic}-by-country"


def _what_next(given: argparse.Namespace, console: Console) -> None:
    other = "kafka-python" if given.client == "confluent" else "confluent"
    console.line(f"Try next: --client {other}")
    if not given.continuous:
        console.line("          --continuous   (results in milliseconds)")
    if given.topic is None:
        console.line("          --bootstrap-servers host:9092 --topic mine   (only reads)")
    console.line("Your own query: see the README.")


@final
@dataclass(frozen=True, slots=True)
class _Demo:
    """The queries of a run of the demo."""

    spark: SparkSession
    topic: str
    kafka: Mapping[str, str]
    directory: Path
    console: Console

    def stream_orders(self, count: int, *, is_continuous: bool) -> None:
        """Produce orders, stream them to the topic of results, and check that none is missing.

        :raises SparkQueryError: if an order is missing or occurs twice.
        """
        results = _results(self.topic)
        what = "A continuous query passes on" if is_continuous else "Micro-batches pass on"
        self.console.line(f"{what} {count:,} orders as they are produced,")
        self.console.line(f"to topic '{results}', by country.")
        self.console.line("Values are read from JSON, and written as JSON (valueFormat=json).")
        self.console.line()
        began = time.monotonic()
        query = self._start_continuous() if is_continuous else self._start_batches()
        with _stopping(query):
            feed = self._produce(count)
            with _stopping(feed):
                self._follow(query, count, feed)
        seconds = time.monotonic() - began
        options = {**self.kafka, **_JSON, "subscribe": results}
        self._show_result(self.spark.read.format(_FORMAT).options(**options).load(), count)
        self.console.line("Kafka -> Spark -> Kafka, read back from the topic of results:")
        self.console.line(
            f"All {count:,} events are in the result: orders and revenue agree ({seconds:.1f} s)."
        )
        self.console.line()

    def _produce(self, count: int) -> StreamingQuery:
        """Start a query that writes orders to the topic, some thousands in a second."""
        numbers = self.spark.readStream.format("rate-micro-batch")
        numbers = numbers.options(rowsPerBatch=_PER_BATCH, numPartitions=1)
        orders = numbers.load().where(f"value < {count}").selectExpr(f"struct({_ORDER}) AS value")
        writer = orders.writeStream.format(_FORMAT).options(**self.kafka, **_JSON)
        writer = writer.option("topic", self.topic).trigger(processingTime="500 milliseconds")
        return writer.start(checkpointLocation=str(self.directory / "orders"))

    def _start_batches(self) -> StreamingQuery:
        source = {**self.kafka, **_JSON, "subscribe": self.topic, "startingOffsets": "earliest"}
        orders = self.spark.readStream.format(_FORMAT).options(**source).load()
        by_country = orders.selectExpr("value.country AS key", "value")
        writer = by_country.writeStream.format(_FORMAT).options(**self.kafka, **_JSON)
        writer = writer.option("topic", _results(self.topic)).trigger(processingTime="1 second")
        return writer.start(checkpointLocation=str(self.directory / "checkpoint"))

    def _start_continuous(self) -> ContinuousQuery:
        from .. import continuous

        source = {**self.kafka, **_JSON, "subscribe": self.topic, "startingOffsets": "earliest"}
        return continuous.start(
            self.spark,
            _by_country,
            source={**source, **_SHORT_WAIT},
            sink={**self.kafka, **_JSON, "topic": _results(self.topic)},
            checkpointLocation=str(self.directory / "checkpoint"),
            tasks=2,
        )

    def _follow(
        self, query: AnyQuery, count: int | None = None, feed: StreamingQuery | None = None
    ) -> None:
        """Print the progress of a query until it has read a number of records, or a query ends."""
        last, read, is_active = "", 0, True
        while is_active and (count is None or read < count):
            # Read before the progress reports, so that the last report is not missed.
            is_active = query.isActive and (feed is None or feed.isActive)
            for progress in query.recentProgress:
                if progress["numInputRows"] and progress["timestamp"] > last:
                    last, read = progress["timestamp"], read + progress["numInputRows"]
                    self.console.line(_progress_line(progress))
            self.console.live(f"{read:,} records read")
            time.sleep(_POLL_SECONDS)
        for ended in (query, feed):
            # Raises the error of a query that failed.
            if ended is not None and not ended.isActive:
                ended.awaitTermination()
        self.console.line()

    def _show_result(self, results: DataFrame, count: int) -> None:
        from .spark import SparkQueryError

        numbers = self.spark.range(count).selectExpr("id AS value")
        produced = numbers.selectExpr(f"inline(array(struct({_ORDER})))")
        totals = ("count(*) AS orders", "sum(amount) AS revenue")
        orders = results.select("value.*")
        table = orders.selectExpr("country", "amount").groupBy("country")
        table.agg(*_columns(*totals)).orderBy("revenue", ascending=False).show()
        [want], [got] = (each.selectExpr(*totals).collect() for each in (produced, orders))
        if want != got:
            raise SparkQueryError(
                f"{want.orders:,} events of {want.revenue:,.2f} EUR were produced, "
                f"and the result holds {got.orders:,} of {got.revenue or 0:,.2f} EUR."
            )

    def summarize_topic(self) -> None:
        """Stream the topic up to its current end, and show the number and sizes of its records."""
        self.console.line(f"Streaming topic '{self.topic}' up to its current end:")
        self.console.line()
        source = {**self.kafka, "subscribe": self.topic, "startingOffsets": "earliest"}
        records = self.spark.readStream.format(_FORMAT).options(**source).load()
        writer = records.groupBy("partition").agg(*_columns(*_SUMMARY)).writeStream
        writer = writer.format("memory").queryName("summary").outputMode("complete")
        writer = writer.option("checkpointLocation", str(self.directory / "checkpoint"))
        began = time.monotonic()
        query = writer.trigger(availableNow=True).start()
        with _stopping(query):
            self._follow(query)
        seconds = time.monotonic() - began
        summary = self.spark.table("summary")
        summary.orderBy("partition").show(truncate=False)
        count = summary.selectExpr("coalesce(sum(records), 0) AS records").collect()[0].records
        self.console.line(f"All {count:,} records were read ({seconds:.1f} s).")
        self.console.line()


def _by_country(orders: pa.RecordBatch) -> pa.RecordBatch:
    """Return orders as records whose key is the country; executors run this."""
    import pyarrow as pa
    import pyarrow.compute as pc

    values = orders["value"]
    return pa.RecordBatch.from_arrays(
        [pc.struct_field(values, "country"), values], ["key", "value"]
    )


def _progress_line(progress: Mapping[str, Any]) -> str:
    rows, rate = progress["numInputRows"], progress["processedRowsPerSecond"]
    line = f"batch {progress['batchId']:>4}  {rows:>10,} rows  {rate:>9,.0f} rows/s"
    latency = progress.get("latencyMs")
    return line if latency is None else f"{line}  p50 {latency['p50']} ms  p99 {latency['p99']} ms"


def _columns(*expressions: str) -> Iterator[Any]:
    from pyspark.sql import functions

    return map(functions.expr, expressions)


@contextmanager
def _stopping(query: AnyQuery) -> Iterator[None]:
    """Stop a query at the end of the block."""
    try:
        yield
    finally:
        query.stop()
