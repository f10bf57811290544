"""Batch queries of Spark: by this library's clients, and by the JVM connector."""

from __future__ import annotations

import os
import sys
from functools import cache
from typing import TYPE_CHECKING, Final

from pyspark.sql import SparkSession

import pyspark_kafka
from benchmarks import batch_write, spark
from benchmarks.alternatives.task import CORES, Task, main

if TYPE_CHECKING:
    from collections.abc import Mapping

COLUMNS: Final = ("key", "value", "partition", "offset", "timestamp")

JVM: Final[Mapping[str, tuple[Mapping[str, str], Mapping[str, str]]]] = {
    spark.JVM: ({}, {}),
    spark.JVM_TUNED: (spark.TUNED, batch_write.TUNED),
}
"""The options to read and to write."""


def read(task: Task) -> int:
    """Read a topic into Spark, which drops the rows."""
    source, options, _ = _formats(task)
    frame = _session(task.jars).read.format(source).options(**options, subscribe=task.source)
    frame.load().select(*COLUMNS).write.format("noop").mode("overwrite").save()
    return task.records


def copy(task: Task) -> int:
    """Write the records of a topic to the other one."""
    name, reading, writing = _formats(task)
    frame = _session(task.jars).read.format(name).options(**reading, subscribe=task.source).load()
    sink = frame.select("key", "value").write.format(name).mode("append")
    sink.options(**writing, topic=task.target).save()
    return task.records


def _formats(task: Task) -> tuple[str, Mapping[str, str], Mapping[str, str]]:
    servers = {"kafka.bootstrap.servers": task.bootstrap_servers}
    if task.variant in JVM:
        reading, writing = JVM[task.variant]
        return "kafka", {**servers, **reading}, {**servers, **writing}
    ours = {**servers, "client": task.variant}
    return "pyspark_kafka", ours, ours


@cache
def _session(jars: str) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = pyspark_kafka.session(
        SparkSession.builder.master(f"local[{CORES}]")
        .config("spark.jars", jars)
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
    )
    session.sparkContext.setLogLevel("ERROR")
    return session


if __name__ == "__main__":
    main(read, copy)
