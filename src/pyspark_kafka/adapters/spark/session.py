"""A Spark session with performance settings for Python data sources."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping
from typing import Final

from pyspark.sql import SparkSession

log = logging.getLogger("pyspark_kafka")

TUNED_DEFAULTS: Final[Mapping[str, str]] = {
    # Between a Python worker and its JVM: Unix domain sockets, and fewer, larger writes.
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.buffer.size": "1048576",
    # Allows filter push-down to Python data sources, for the option `pushFilters`.
    "spark.sql.python.filterPushdown.enabled": "true",
}

DAEMON: Final = "spark.python.daemon.module"


def tuned_session(builder: SparkSession.Builder | None, daemon_module: str) -> SparkSession:
    """Return a session, new or existing; settings on the builder or in the environment are kept.

    ``daemon_module`` becomes the daemon of Spark's Python workers. It is set for a local master
    only: on a cluster it would have to be installed on every node.
    """
    builder = SparkSession.Builder() if builder is None else builder
    given: dict[str, str] = builder._options  # noqa: SLF001  # it has no public getter
    settings = dict(TUNED_DEFAULTS)
    if given.get("spark.master", os.environ.get("MASTER", "local")).startswith("local["):
        settings[DAEMON] = daemon_module
        # SparkContext reads it from the environment; the default is `python3` of the PATH.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    for name in settings.keys() - given.keys():
        builder = builder.config(name, settings[name])
    session = builder.getOrCreate()
    _warn_about_missing(session, settings)
    return session


def _warn_about_missing(session: SparkSession, settings: Mapping[str, str]) -> None:
    conf = session.sparkContext.getConf()
    missing = sorted(name for name in TUNED_DEFAULTS if conf.get(name) is None and name in settings)
    if missing:
        log.warning("Reusing an existing session, which lacks %s", ", ".join(missing))
