"""A Spark session with settings for Python data sources: performance, and hidden secrets."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Mapping
from typing import Final

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from .log_filter import SENSITIVE, hide_secrets

log = logging.getLogger("pyspark_kafka")

TUNED_DEFAULTS: Final[Mapping[str, str]] = {
    # Between a Python worker and its JVM: Unix domain sockets, and fewer, larger writes.
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.buffer.size": "1048576",
    # Allows filter push-down to Python data sources, for the option `pushFilters`.
    "spark.sql.python.filterPushdown.enabled": "true",
}

REDACTION: Final = "spark.redaction.regex"
"""Which options Spark shows in plans, its UI and its event log without their values."""

DAEMON: Final = "spark.python.daemon.module"


def tuned_session(
    builder: SparkSession.Builder | None, daemon_module: str, prepare: Callable[[], None]
) -> SparkSession:
    """Return a session, new or existing; settings on the builder or in the environment are kept.

    Options that may hold a secret are hidden in addition to those that the user's settings hide.
    ``daemon_module`` becomes the daemon of Spark's Python workers. It is set for a local master
    only: on a cluster it would have to be installed on every node. With a local master, ``prepare``
    is called before Spark starts.
    """
    builder = SparkSession.Builder() if builder is None else builder
    given: dict[str, str] = builder._options  # noqa: SLF001  # it has no public getter
    settings = dict(TUNED_DEFAULTS)
    if given.get("spark.master", os.environ.get("MASTER", "local")).startswith("local["):
        settings[DAEMON] = daemon_module
        # SparkContext reads it from the environment; the default is `python3` of the PATH.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        prepare()
    for name in settings.keys() - given.keys():
        builder = builder.config(name, settings[name])
    builder = builder.config(REDACTION, redaction(_configured(given, REDACTION)))
    session = builder.getOrCreate()
    hide_secrets(session)
    _warn_about_missing(session, settings)
    return session


def _configured(given: Mapping[str, str], name: str) -> str | None:
    """Return a setting of the builder, of ``spark-submit`` or of ``spark-defaults.conf``."""
    # Starts the JVM, which alone reads the last two, as `getOrCreate` does.
    conf = SparkConf().setAll(list(given.items()))
    SparkContext._ensure_initialized(conf=conf)  # noqa: SLF001  # it has no public name
    return given.get(name) or SparkConf().get(name)


def redaction(given: str | None) -> str:
    """Return a value of ``spark.redaction.regex`` that hides this source's secrets as well."""
    if given is None or SENSITIVE in given:
        return given or SENSITIVE
    return f"(?:{given})|(?:{SENSITIVE})"


def _warn_about_missing(session: SparkSession, settings: Mapping[str, str]) -> None:
    conf = session.sparkContext.getConf()
    missing = [name for name in TUNED_DEFAULTS if conf.get(name) is None and name in settings]
    if SENSITIVE not in (conf.get(REDACTION) or ""):
        missing.append(REDACTION)
    if missing:
        log.warning("Reusing an existing session, which lacks %s", ", ".join(sorted(missing)))
