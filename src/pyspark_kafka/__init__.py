"""Kafka for Spark in pure Python.

Spark finds the format ``pyspark_kafka`` by itself::

    spark.read.format("pyspark_kafka").option("kafka.bootstrap.servers", ...).load()

This module is cheap to import, since Spark's executors import it to find ``DefaultSource``. Its
names are imported on first use; before that neither Spark, nor Arrow, nor a Kafka client is loaded.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from .version import __version__ as __version__

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pyspark.sql import SparkSession

    from . import brokers as brokers
    from . import continuous as continuous
    from . import domain as domain
    from . import testing as testing
    from .adapters.prometheus import PrometheusLagExporter, PrometheusProgressListener
    from .adapters.spark.lag_listener import LagListener
    from .adapters.system.logged import LoggingLagExporter
    from .bootstrap.container import Container, SinkContainer, container_for, sink_container_for
    from .bootstrap.spark import DefaultSource
    from .domain.errors import PysparkKafkaError
    from .domain.options.option import QueryKind
    from .domain.options.sink import SinkOptions, parse_sink_options
    from .domain.options.source import SourceOptions, parse_source_options
    from .ports.lag import LagExporter, ProgressListener

__all__ = [
    "Container",
    "DefaultSource",
    "LagExporter",
    "LoggingLagExporter",
    "ProgressListener",
    "PrometheusLagExporter",
    "PrometheusProgressListener",
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
    "set_active_session",
    "sink_container_for",
]

_LAZY_IMPORTS: Final = {
    "Container": ".bootstrap.container",
    "DefaultSource": ".bootstrap.spark",
    "LagExporter": ".ports.lag",
    "LagListener": ".adapters.spark.lag_listener",
    "LoggingLagExporter": ".adapters.system.logged",
    "ProgressListener": ".ports.lag",
    "PrometheusLagExporter": ".adapters.prometheus",
    "PrometheusProgressListener": ".adapters.prometheus",
    "PysparkKafkaError": ".domain.errors",
    "QueryKind": ".domain.options.option",
    "SinkContainer": ".bootstrap.container",
    "SinkOptions": ".domain.options.sink",
    "SourceOptions": ".domain.options.source",
    "activate_session": ".adapters.spark.session",
    "container_for": ".bootstrap.container",
    "lag_meter_for": ".bootstrap.tools",
    "letter_counter_for": ".bootstrap.tools",
    "parse_sink_options": ".domain.options.sink",
    "parse_source_options": ".domain.options.source",
    "sink_container_for": ".bootstrap.container",
    "tuned_session": ".adapters.spark.session",
}
_LAZY_MODULES: Final = frozenset({"brokers", "continuous", "domain", "testing"})


def register(spark: SparkSession) -> None:
    """Register the format ``pyspark_kafka`` with a session that has not found it by itself.

    Queries of the session may then not set the options that its setting
    ``spark.sql.kafka.disallowedOptions`` lists.

    :raises OptionPolicyError: if that list is invalid.
    """
    from .adapters.spark.session import register_source
    from .bootstrap.option_policy import worker_environment

    register_source(spark, _import("DefaultSource"), worker_environment(spark))


def session(builder: SparkSession.Builder | None = None) -> SparkSession:
    """Return a Spark session, new or existing, with settings that make this source faster.

    It is then the active session of this thread, as after ``set_active_session``. Settings already
    on the builder are kept. With a local master, the workers run this Python unless
    ``PYSPARK_PYTHON`` is set.

    A session of a Spark Connect server gets the settings that its clients may set. A warning names
    those that the server lacks.

    :raises MissingDependencyError: if PySpark is not installed.
    """
    tuned_session = _import("tuned_session")
    daemon = f"{__name__}.bootstrap.worker_daemon"
    tuned: SparkSession = tuned_session(builder, daemon)
    return tuned


def set_active_session(spark: SparkSession) -> None:
    """Make a session the active one of the calling thread, which batch writes need.

    Spark looks for Python data sources in the active session of the thread that starts a batch
    write, or a stream that writes to Kafka. A new thread has none, and neither has a notebook after
    an interrupted cell: the write fails with ``DATA_SOURCE_NOT_FOUND``. Call this first in each
    thread, or pass it to a thread pool::

        ThreadPoolExecutor(initializer=pyspark_kafka.set_active_session, initargs=(spark,))

    Spark Connect needs no active session; there it does nothing.
    """
    _import("activate_session")(spark)


def lag_listener(
    *exporters: LagExporter,
    source_options: Mapping[str, str] | None = None,
    queries: Collection[str] = (),
    dead_letter_topic: str | None = None,
) -> LagListener:
    """Return a listener for ``spark.streams.addListener`` that exports the lag of queries.

    ``source_options`` are the options of the queries' source. With them the listener asks Kafka
    after each batch, and counts records where few are left; without them the lag is in offsets, as
    of the start of the batch. ``queries`` are the names of queries to listen to; the default is
    all. With ``dead_letter_topic`` the listener counts the queries' letters there by reason, which
    needs ``source_options``.

    :raises DisallowedOptionError: if the operator forbids one of these options.
    :raises OptionsError: if these options are invalid.
    :raises MissingDependencyError: if PySpark is not installed.
    """
    listener: type[LagListener] = _import("LagListener")
    if source_options is None and dead_letter_topic is not None:
        raise ValueError("to count dead letters, pass source_options as well")
    if source_options is None:
        return listener(exporters, queries=queries)
    from .bootstrap.option_policy import operator_policy
    from .domain.options.option import QueryKind
    from .domain.options.source import parse_source_options, with_any_topic

    given = with_any_topic(source_options)  # progress has the topics
    options = parse_source_options(given, QueryKind.STREAM, operator_policy())
    counting = None
    if dead_letter_topic is not None:
        counting = partial(_import("letter_counter_for"), options, dead_letter_topic)
    return listener(exporters, partial(_import("lag_meter_for"), options), queries, counting)


def _import(name: str) -> Any:
    from .domain.errors import requires_extra

    if name in _LAZY_MODULES:
        return import_module(f".{name}", __name__)
    if name not in _LAZY_IMPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with requires_extra("spark", "pyspark", "pyspark"):
        return getattr(import_module(_LAZY_IMPORTS[name], __name__), name)


if not TYPE_CHECKING:
    # With it, type checkers would accept any name.
    __getattr__ = _import
