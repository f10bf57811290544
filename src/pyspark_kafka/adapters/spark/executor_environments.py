"""The versions of Spark's executors."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any, Final

from ...domain.cluster.versions import REPORTED, Environment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark import SparkContext
    from pyspark.sql import SparkSession

log = logging.getLogger("pyspark_kafka")

MAX_S: Final = 120.0
"""How long executors may take to start."""


def executor_environments(spark: SparkSession) -> list[Environment]:
    """Return the environment of each host and Python that runs tasks.

    :raises PySparkException: if no executor runs them in time; or py4j's error.
    """
    names = REPORTED

    # Defined here, it is pickled by its code: executors may lack this package.
    def facts(_rows: Any) -> Iterator[tuple[str, str, tuple[tuple[str, str], ...]]]:
        import platform
        import socket
        from importlib import metadata

        found = []
        for name in names:
            try:
                found.append((name, metadata.version(name)))
            except metadata.PackageNotFoundError:
                continue
        yield socket.gethostname(), platform.python_version(), tuple(found)

    context = spark.sparkContext
    tasks = 2 * max(context.defaultParallelism, 1)
    # Without free cores, the job would wait forever.
    timer = threading.Timer(MAX_S, _cancel, [context])
    timer.start()
    try:
        rows = context.parallelize(range(tasks), tasks).mapPartitions(facts).collect()
    finally:
        timer.cancel()
    return [
        Environment(host, python, dict(packages)) for host, python, packages in sorted(set(rows))
    ]


def _cancel(context: SparkContext) -> None:
    try:
        context.cancelAllJobs()
    except Exception:
        log.exception("The job that waits for Spark's executors could not be cancelled")
