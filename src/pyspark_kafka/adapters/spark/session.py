"""A session with the settings of Spark that pay for a source in Python."""

from __future__ import annotations

import logging
import os
import sys
from typing import TYPE_CHECKING, Final

from pyspark.sql import SparkSession

if TYPE_CHECKING:
    from collections.abc import Mapping

log = logging.getLogger("pyspark_kafka")

TUNED_DEFAULTS: Final[Mapping[str, str]] = {
    # Between a Python worker and its JVM: sockets of the file system, and fewer, larger writes.
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.buffer.size": "1048576",
    # Lets Spark hand filters to sources in Python, for the option `pushFilters`.
    "spark.sql.python.filterPushdown.enabled": "true",
}

DAEMON: Final = "spark.python.daemon.module"


def tuned_session(builder: SparkSession.Builder | None, daemon_module: str) -> SparkSession:
    """Get or create a session; what the builder or the environment says already stays.

    ``daemon_module`` is what Spark starts its Python workers from. It is set for a local master
    only: on a cluster it would have to be installed on every node.
    """
    builder = SparkSession.Builder() if builder is None else builder
    given: dict[str, str] = builder._options  # noqa: SLF001  # it has no public getter
    settings = dict(TUNED_DEFAULTS)
    if given.get("spark.master", os.environ.get("MASTER", "local")).startswith("local["):
        settings[DAEMON] = daemon_module
        # SparkContext reads it from there, and takes some `python3` of the path if it is not set.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    for name in settings.keys() - given.keys():
        builder = builder.config(name, settings[name])
    session = builder.getOrCreate()
    _warn_of_what_came_too_late(session, settings)
    return session


def _warn_of_what_came_too_late(session: SparkSession, settings: Mapping[str, str]) -> None:
    conf = session.sparkContext.getConf()
    late = sorted(name for name in TUNED_DEFAULTS if conf.get(name) is None and name in settings)
    if late:
        log.warning("A session was there already, and runs without %s", ", ".join(late))
