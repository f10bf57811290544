"""The Spark session of all readers and writers."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import SparkSession

import pyspark_kafka
from pyspark_kafka.brokers import avro_jars, connector_jars

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

CORES: Final = 2

JVM: Final = "JVM connector"
JVM_TUNED: Final = "JVM connector, tuned"

TUNED: Final[Mapping[str, str]] = {
    "kafka.max.partition.fetch.bytes": "8388608",
    "kafka.fetch.max.bytes": "67108864",
    "kafka.receive.buffer.bytes": "4194304",
    "kafka.max.poll.records": "10000",
}
"""The client settings that make the JVM connector's source faster."""


SPARKS_DAEMON: Final[Mapping[str, str]] = {"spark.python.daemon.module": "pyspark.daemon"}
"""The setting by which Python workers load nothing of this source before they need it."""


@contextmanager
def spark_session(
    slots: int = CORES, settings: Mapping[str, str] = MappingProxyType({})
) -> Iterator[SparkSession]:
    """Yield a session with the JVM connector and this source, on ``local[slots]``."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = _start(
        SparkSession.builder.master(f"local[{slots}]")
        .config(map=dict(settings))
        .config("spark.jars", ",".join(map(str, (*connector_jars(), *avro_jars()))))
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
    )
    session.sparkContext.setLogLevel("OFF")
    _log_why_the_jvm_exits(session)
    try:
        yield session
    finally:
        session.stop()


def _log_why_the_jvm_exits(session: SparkSession) -> None:
    jvm: Any = session._jvm  # noqa: SLF001 - PySpark has no other way to log4j
    log4j = jvm.org.apache.logging.log4j
    # It ends the JVM after a fatal error of a task, such as too little memory.
    handler = "org.apache.spark.util.SparkUncaughtExceptionHandler"
    log4j.core.config.Configurator.setLevel(handler, log4j.Level.ERROR)


def _start(builder: SparkSession.Builder) -> SparkSession:
    return pyspark_kafka.session(builder)
