"""A Spark session with settings for Python data sources: performance, and hidden secrets."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Mapping
from typing import Final

from pyspark.sql import SparkSession

from .connect_mode import STATIC_MODES, connects_to_server, existing_connect_session, local_master
from .job_group import is_classic
from .log_filter import SENSITIVE, hide_secrets, hide_secrets_of_statements
from .spark_api import HAS_FILTERS, HAS_UNIX_SOCKETS

log = logging.getLogger("pyspark_kafka")

RUNTIME_DEFAULTS: Final[Mapping[str, str]] = {
    # Allows filter push-down to Python data sources, for the option `pushFilters`.
    **({"spark.sql.python.filterPushdown.enabled": "true"} if HAS_FILTERS else {}),
}
"""Settings that a session can have, also if its JVM runs already."""

TUNED_DEFAULTS: Final[Mapping[str, str]] = {
    # Between a Python worker and its JVM: Unix domain sockets, and fewer, larger writes.
    **({"spark.python.unix.domain.socket.enabled": "true"} if HAS_UNIX_SOCKETS else {}),
    "spark.buffer.size": "1048576",
    **RUNTIME_DEFAULTS,
}

REDACTION: Final = "spark.redaction.regex"
"""Which options Spark shows in plans, its UI and its event log without their values."""

DAEMON: Final = "spark.python.daemon.module"


def tuned_session(builder: SparkSession.Builder | None, daemon_module: str) -> SparkSession:
    """Return a session, new or existing; settings on the builder or in the environment are kept.

    Options that may hold a secret are hidden in addition to those that the user's settings hide.
    ``daemon_module`` becomes the daemon of Spark's Python workers. It is set for a local master
    only: on a cluster it would have to be installed on every node.

    A session of Spark Connect gets what a client can set. The other settings are the server's.
    """
    if builder is None and (existing := existing_connect_session()):
        return _with_runtime_defaults(existing, {})
    builder = SparkSession.Builder() if builder is None else builder
    given: dict[str, str] = builder._options  # noqa: SLF001  # it has no public getter
    if connects_to_server(given):
        return _with_runtime_defaults(builder.getOrCreate(), given)
    settings = dict(TUNED_DEFAULTS)
    if local_master(given):
        settings[DAEMON] = daemon_module
        # SparkContext reads it from the environment; the default is `python3` of the PATH.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    for name in settings.keys() - given.keys():
        builder = builder.config(name, settings[name])
    builder = builder.config(REDACTION, redaction(_configured(given, REDACTION)))
    with warnings.catch_warnings():
        # PySpark tries to set a local Connect server's settings again in its session.
        warnings.filterwarnings("ignore", "Failed to set spark", UserWarning)
        session = builder.getOrCreate()
    if is_classic(session):
        hide_secrets(session)
        _warn_about_missing(session, settings)
    else:
        hide_secrets_of_statements(session)
    return session


def _with_runtime_defaults(session: SparkSession, given: Mapping[str, str]) -> SparkSession:
    for name in RUNTIME_DEFAULTS.keys() - given.keys():
        session.conf.set(name, RUNTIME_DEFAULTS[name])
    hide_secrets_of_statements(session)
    # A JVM's settings are part of its sessions, all but REDACTION.
    missing = sorted(name for name in TUNED_DEFAULTS if session.conf.get(name, None) is None)
    if missing:
        log.warning("The Spark Connect server lacks %s", ", ".join(missing))
    return session


def _configured(given: Mapping[str, str], name: str) -> str | None:
    """Return a setting of the builder, of ``spark-submit`` or of ``spark-defaults.conf``."""
    # Not installed with Spark Connect's own package, pyspark-client.
    from pyspark import SparkConf, SparkContext

    # Starts the JVM, which alone reads the last two, as `getOrCreate` does.
    static = {key: value for key, value in given.items() if key not in STATIC_MODES}
    SparkContext._ensure_initialized(conf=SparkConf().setAll(list(static.items())))  # noqa: SLF001  # it has no public name
    return given.get(name) or SparkConf().get(name)


def redaction(given: str | None) -> str:
    """Return a value of ``spark.redaction.regex`` that hides this source's secrets as well."""
    if given is None or SENSITIVE in given:
        return given or SENSITIVE
    return f"(?:{given})|(?:{SENSITIVE})"


def shown_options(session: SparkSession, options: Mapping[str, str]) -> list[str]:
    """Return which of these options Spark shows; by default, it shows all of them."""
    given = session.sparkContext.getConf().get(REDACTION)
    if given is None:
        return list(options)
    pattern = session._jvm.java.util.regex.Pattern.compile(given)  # type: ignore[union-attr]  # noqa: SLF001
    return [
        name
        for name, value in options.items()
        if not any(pattern.matcher(text).find() for text in (name, value))
    ]


def _warn_about_missing(session: SparkSession, settings: Mapping[str, str]) -> None:
    conf = session.sparkContext.getConf()
    missing = [name for name in TUNED_DEFAULTS if conf.get(name) is None and name in settings]
    if SENSITIVE not in (conf.get(REDACTION) or ""):
        missing.append(REDACTION)
    if missing:
        log.warning("Reusing an existing session, which lacks %s", ", ".join(sorted(missing)))
