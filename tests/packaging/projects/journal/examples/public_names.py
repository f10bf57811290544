"""Each public name once, with the types that a strict type checker has to see. It is never run."""

from collections.abc import Mapping
from pathlib import Path
from typing import assert_type

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource

import pyspark_kafka
from pyspark_kafka import (
    Container,
    DefaultSource,
    LagExporter,
    LoggingLagExporter,
    ProgressListener,
    PrometheusLagExporter,
    PrometheusProgressListener,
    PysparkKafkaError,
    QueryKind,
    SinkContainer,
    SinkOptions,
    SourceOptions,
    container_for,
    continuous,
    lag_listener,
    parse_sink_options,
    parse_source_options,
    register,
    session,
    set_active_session,
    sink_container_for,
)
from pyspark_kafka.brokers import (
    EmbeddedBroker,
    KafkaCluster,
    avro_jars,
    connector_jars,
    require_java,
    temporary_topics,
)
from pyspark_kafka.continuous import ContinuousQuery, ExecutionLimits, RestartLimits
from pyspark_kafka.domain.continuous.progress import EpochProgress
from pyspark_kafka.domain.lag.lag import QueryLag
from pyspark_kafka.domain.reading.ranges import OffsetRange
from pyspark_kafka.domain.reading.records import ALL_COLUMNS


class Totals(LagExporter, ProgressListener):
    """Keeps the total lag of each query."""

    def __init__(self) -> None:
        self.totals: dict[str, int] = {}

    def export(self, lag: QueryLag) -> None:
        assert_type(lag.query_id, str)
        self.totals[lag.query_id] = lag.lag.total

    def progressed(self, progress: EpochProgress) -> None:
        assert_type(progress.input_rows_per_second, float)

    def query_ended(self, query_id: str, run_id: str) -> None:
        del self.totals[query_id]


def sessions(builder: SparkSession.Builder) -> SparkSession:
    """Open a session, and listen to its queries."""
    spark = session(builder)
    assert_type(spark, "SparkSession")
    register(spark)
    set_active_session(spark)
    source: type[DataSource] = DefaultSource
    spark.dataSource.register(source)
    exporters = (Totals(), LoggingLagExporter(), PrometheusLagExporter())
    spark.streams.addListener(lag_listener(*exporters, queries=["orders"]))
    return spark


def continuous_query(spark: SparkSession | None, options: Mapping[str, str]) -> None:
    """Run a continuous query."""

    def function(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.select(["key", "value"])

    query = continuous.start(
        spark,
        function,
        source=options,
        sink={**options, "topic": "totals"},
        checkpointLocation="/checkpoints/totals",
        limits=ExecutionLimits(restarts=RestartLimits()),
        listeners=[Totals(), PrometheusProgressListener()],
    )
    assert_type(query, ContinuousQuery)
    query.stop()


def embedding(given: Mapping[str, str]) -> list[pa.RecordBatch]:
    """Read a batch without Spark."""
    options = parse_source_options(given, QueryKind.BATCH)
    assert_type(options, SourceOptions)
    container = container_for(options)
    assert_type(container, Container)
    ranges = container.batch().plan_input_partitions()
    assert_type(ranges, tuple[OffsetRange, ...])
    read = container.range_read()
    try:
        return [batch for part in ranges for batch in read.read(part, ALL_COLUMNS)]
    except PysparkKafkaError as error:
        assert_type(error.condition, str)
        raise


def embedding_a_sink(given: Mapping[str, str]) -> None:
    """Make what writes without Spark."""
    options = parse_sink_options(given, QueryKind.STREAM)
    assert_type(options, SinkOptions)
    assert_type(sink_container_for(options), SinkContainer)


def brokers() -> None:
    """Start brokers for tests, and make topics on them."""
    assert_type(require_java(), Path)
    assert_type(connector_jars() + avro_jars(), tuple[Path, ...])
    with EmbeddedBroker() as embedded, KafkaCluster() as cluster:
        embedded.create_topic("orders")
        assert_type(cluster.bootstrap_servers, str)
        with temporary_topics(cluster.bootstrap_servers, {"orders": 2}, 10):
            assert_type(cluster.options, dict[str, str])


def mistakes(spark: SparkSession) -> None:
    """Make mistakes that a type checker finds: each line without one would be an unused ignore."""
    pyspark_kafka.sesion()  # type: ignore[attr-defined]
    pyspark_kafka.session("local[2]")  # type: ignore[arg-type]
    lag_listener(print)  # type: ignore[arg-type]
    continuous.start(spark, source={}, checkpointLocation="", channel="pipe")  # type: ignore[arg-type]
    parse_source_options({"subscribe": 1}, QueryKind.BATCH)  # type: ignore[dict-item]
