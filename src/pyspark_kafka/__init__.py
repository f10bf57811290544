"""Kafka for Spark in pure Python.

Spark finds the format ``pyspark_kafka`` by itself::

    spark.read.format("pyspark_kafka").option("kafka.bootstrap.servers", ...).load()

This module is cheap to import: Spark's executors import it to find ``DefaultSource``. What it
names is loaded when it is first used, without which neither Spark, nor Arrow, nor a Kafka client
is loaded.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pyspark.sql import SparkSession

    from .adapters.prometheus.lag_exporter import PrometheusLagExporter
    from .adapters.spark.lag_listener import LagListener
    from .adapters.system.logging_lag import LoggingLagExporter
    from .bootstrap.container import Container, SinkContainer, container_for, sink_container_for
    from .bootstrap.spark import DefaultSource
    from .domain.errors import PysparkKafkaError
    from .domain.options import (
        QueryKind,
        SinkOptions,
        SourceOptions,
        parse_sink_options,
        parse_source_options,
    )
    from .ports.lag_exporter import LagExporter

__version__: Final = "0.1.0"

__all__ = [
    "Container",
    "DefaultSource",
    "LagExporter",
    "LoggingLagExporter",
    "PrometheusLagExporter",
    "PysparkKafkaError",
    "QueryKind",
    "SinkContainer",
    "SinkOptions",
    "SourceOptions",
    "container_for",
    "lag_listener",
    "parse_sink_options",
    "parse_source_options",
    "register",
    "session",
    "sink_container_for",
]

_LAZY_IMPORTS: Final = {
    "Container": ".bootstrap.container",
    "DefaultSource": ".bootstrap.spark",
    "LagExporter": ".ports.lag_exporter",
    "LagListener": ".adapters.spark.lag_listener",
    "LoggingLagExporter": ".adapters.system.logging_lag",
    "PrometheusLagExporter": ".adapters.prometheus.lag_exporter",
    "PysparkKafkaError": ".domain.errors",
    "QueryKind": ".domain.options",
    "SinkContainer": ".bootstrap.container",
    "SinkOptions": ".domain.options",
    "SourceOptions": ".domain.options",
    "container_for": ".bootstrap.container",
    "lag_meter_for": ".bootstrap.lag",
    "parse_sink_options": ".domain.options",
    "parse_source_options": ".domain.options",
    "sink_container_for": ".bootstrap.container",
    "tuned_session": ".adapters.spark.session",
}


def register(spark: SparkSession) -> None:
    """Register the format ``pyspark_kafka`` with a session that did not find it by itself."""
    from .adapters.spark.registration import register_source

    register_source(spark, __getattr__("DefaultSource"))


def session(builder: SparkSession.Builder | None = None) -> SparkSession:
    """Get or create a Spark session with the settings that make this source faster.

    What the builder says already stays as it is. With a local master, the workers are this Python
    unless ``PYSPARK_PYTHON`` says otherwise.

    :raises MissingDependencyError: if PySpark is not installed.
    """
    tuned = __getattr__("tuned_session")
    made: SparkSession = tuned(builder, f"{__name__}.bootstrap.worker_daemon")
    return made


def lag_listener(
    *exporters: LagExporter,
    source_options: Mapping[str, str] | None = None,
    queries: Collection[str] = (),
) -> LagListener:
    """Make a listener for ``spark.streams.addListener`` that tells how far queries are behind.

    ``source_options`` are the options of the queries' source: with them Kafka is asked after each
    batch, and records are counted where few are left; without them the lag is in offsets, as of
    the batch's beginning. ``queries`` are the names of those to listen to; all, if left out.

    :raises OptionsError: if these options cannot be used.
    :raises MissingDependencyError: if PySpark is not installed.
    """
    kind: type[LagListener] = __getattr__("LagListener")
    if source_options is None:
        return kind(exporters, queries=queries)
    from .domain.options import with_any_topic

    parse, query = __getattr__("parse_source_options"), __getattr__("QueryKind")
    options = parse(with_any_topic(source_options), query.STREAM)  # topics are those of each query
    return kind(exporters, partial(__getattr__("lag_meter_for"), options), queries)


def __getattr__(name: str) -> Any:
    if name not in _LAZY_IMPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(_LAZY_IMPORTS[name], __name__), name)
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] != "pyspark":
            raise
        from .domain.errors import MissingDependencyError

        raise MissingDependencyError("pyspark", "spark") from error
