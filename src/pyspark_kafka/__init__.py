"""Kafka for Spark in pure Python.

Spark finds the format ``pyspark_kafka`` by itself::

    spark.read.format("pyspark_kafka").option("kafka.bootstrap.servers", ...).load()

This module is cheap to import: Spark's executors import it to find ``DefaultSource``. What it
names is loaded when it is first used, without which neither Spark, nor Arrow, nor a Kafka client
is loaded.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from .container import Container, container_for
    from .default_source import DefaultSource
    from .domain.errors import PysparkKafkaError
    from .domain.options import Query, SourceOptions, parse_source_options

__version__: Final = "0.1.0"

__all__ = [
    "Container",
    "DefaultSource",
    "PysparkKafkaError",
    "Query",
    "SourceOptions",
    "container_for",
    "parse_source_options",
    "register",
    "session",
]

_HOMES: Final = {
    "Container": ".container",
    "DefaultSource": ".default_source",
    "PysparkKafkaError": ".domain.errors",
    "Query": ".domain.options",
    "SourceOptions": ".domain.options",
    "container_for": ".container",
    "parse_source_options": ".domain.options",
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
    made: SparkSession = tuned(builder, f"{__name__}.worker_daemon")
    return made


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(_HOMES[name], __name__), name)
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] != "pyspark":
            raise
        from .domain.errors import MissingDependencyError

        raise MissingDependencyError("pyspark", "spark") from error
