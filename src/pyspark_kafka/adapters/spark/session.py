"""Sessions of Spark: settings for Python data sources, and the registration of this one."""

from __future__ import annotations

import logging
import os
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import pyspark
from pyspark.errors import AnalysisException, PySparkRuntimeError
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource
from pyspark.sql.utils import is_remote

from .log_filter import SENSITIVE, hide_secrets, hide_secrets_of_statements
from .spark_api import HAS_UNIX_SOCKETS, REGISTRATION

log = logging.getLogger("pyspark_kafka")

_UNIX_SOCKETS: Final[Mapping[str, str]] = {
    "spark.python.unix.domain.socket.enabled": "true",
    # The default, java.io.tmpdir, is too long for a socket's path in a YARN container.
    "spark.python.unix.domain.socket.dir": "/tmp",  # noqa: S108
}

TUNED_DEFAULTS: Final[Mapping[str, str]] = {
    # Between a Python worker and its JVM: Unix domain sockets, and fewer, larger writes.
    **(_UNIX_SOCKETS if HAS_UNIX_SOCKETS else {}),
    "spark.buffer.size": "1048576",
}

REDACTION: Final = "spark.redaction.regex"
"""The options whose values Spark hides in plans, its UI and its event log."""

DAEMON: Final = "spark.python.daemon.module"


def tuned_session(builder: SparkSession.Builder | None, daemon_module: str) -> SparkSession:
    """Return a session, new or existing; settings on the builder or in the environment are kept.

    Options that may hold a secret are hidden in addition to those that the user's settings hide.
    ``daemon_module`` becomes the daemon of Spark's Python workers. This setting is for a local
    master only: a cluster would need the module on every node.

    A session of Spark Connect gets the settings that a client can set. The other settings are the
    server's.
    """
    if builder is None and (existing := existing_connect_session()):
        return _of_server(existing)
    builder = SparkSession.Builder() if builder is None else builder
    given: dict[str, str] = builder._options  # noqa: SLF001  # it has no public getter
    if connects_to_server(given):
        return _of_server(builder.getOrCreate())
    settings = dict(TUNED_DEFAULTS)
    if local_master(given):
        settings[DAEMON] = daemon_module
        # SparkContext reads it from the environment; the default is `python3` of the PATH.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    configured = _configured(given)
    for name in settings.keys() - configured.keys():
        builder = builder.config(name, settings[name])
    builder = builder.config(REDACTION, redaction(configured.get(REDACTION) or None))
    with warnings.catch_warnings():
        # PySpark tries to set a local Connect server's settings again in its session.
        warnings.filterwarnings("ignore", "Failed to set spark", UserWarning)
        session = builder.getOrCreate()
    # PySpark does so for a session that it has made. A thread, or a notebook whose cell was
    # interrupted, has none.
    activate_session(session)
    if is_classic(session):
        hide_secrets(session)
        _warn_about_missing(session, settings)
    else:
        hide_secrets_of_statements(session)
    return session


def _of_server(session: SparkSession) -> SparkSession:
    hide_secrets_of_statements(session)
    # Sessions include their JVM's settings, except REDACTION.
    missing = sorted(name for name in TUNED_DEFAULTS if session.conf.get(name, None) is None)
    if missing:
        log.warning("The Spark Connect server lacks %s", ", ".join(missing))
    return session


def _configured(given: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of ``spark-submit``, ``spark-defaults.conf`` and the builder."""
    # Not installed with Spark Connect's own package, pyspark-client.
    from pyspark import SparkConf, SparkContext

    # Like `getOrCreate`, this starts the JVM: only it reads the files and arguments of Spark.
    static = {key: value for key, value in given.items() if key not in STATIC_MODES}
    SparkContext._ensure_initialized(conf=SparkConf().setAll(list(static.items())))  # noqa: SLF001  # it has no public name
    return {**dict(SparkConf().getAll()), **given}


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


_API_MODE: Final = "spark.api.mode"
_MASTER: Final = "spark.master"
_REMOTE: Final = "spark.remote"
_SUBMITTED: Final = frozenset({"PYSPARK_GATEWAY_PORT", "PYSPARK_SUBMIT_ARGS"})
"""Variables that ``spark-submit`` sets, or passes on to it."""

STATIC_MODES: Final = frozenset({_API_MODE, _REMOTE})
"""Settings that choose Spark Connect, and that the JVM of a local server must not have."""


def is_classic(session: object) -> bool:
    """Return whether a session is not one of Spark Connect, whose class is unrelated."""
    return isinstance(session, SparkSession)


def connects_to_server(options: Mapping[str, str]) -> bool:
    """Return whether a builder's session will be of a Spark Connect server that runs already."""
    return _url(options).startswith("sc://")


def local_master(options: Mapping[str, str]) -> bool:
    """Return whether a builder starts Spark on this machine, with a Connect server or without.

    Without a master, Spark starts here unless ``spark-submit``, its arguments or
    ``spark-defaults.conf`` may name one.
    """
    named = _url(options) or options.get(_MASTER) or os.environ.get("MASTER")
    if named:
        return named == "local" or named.startswith("local[")
    return not (_SUBMITTED & os.environ.keys()) and not _defaults_file().exists()


def existing_connect_session() -> SparkSession | None:
    """Return this process's session of Spark Connect, if it has one."""
    if not is_remote():
        return None
    with suppress(PySparkRuntimeError):
        return SparkSession.active()
    return None


def _url(options: Mapping[str, str]) -> str:
    return options.get(_REMOTE, os.environ.get("SPARK_REMOTE", ""))


def _defaults_file() -> Path:
    home = os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent
    return Path(os.environ.get("SPARK_CONF_DIR") or Path(home, "conf"), "spark-defaults.conf")


def activate_session(spark: SparkSession) -> None:
    """Make a session the active one of this thread; on Spark Connect do nothing.

    Scala has `SparkSession.setActiveSession` for this. PySpark calls it in `createDataFrame` alone.
    """
    if is_classic(spark):
        sessions = spark._get_j_spark_session_class(spark._jvm)  # noqa: SLF001  # has no public name
        sessions.setActiveSession(spark._jsparkSession)  # noqa: SLF001


_PYTHONPATH = "PYTHONPATH"


def register_source(
    spark: SparkSession, source: type[DataSource], variables: Mapping[str, str]
) -> None:
    """Register a data source with a session, with environment variables for its Python workers.

    Spark Connect ignores the variables: its workers have the server's environment.

    :raises UnsupportedFeatureError: if Spark keeps a source that it has found by its name, as 4.0
        does, and so cannot take variables.
    """
    path: dict[str, str] = {}
    if is_classic(spark):
        hide_secrets(spark)
        archive = _archive_of(Path(__file__))
        path = {} if archive is None else _python_path(spark, archive)
    else:
        hide_secrets_of_statements(spark)
    given = {**path, **variables}
    with worker_variables(spark, given):
        try:
            spark.dataSource.register(source)
        except AnalysisException as error:
            if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
                raise
            if given and is_classic(spark):
                raise REGISTRATION.refusal() from None


def _archive_of(module: Path) -> Path | None:
    return next((parent for parent in module.parents if parent.is_file()), None)


def _python_path(spark: SparkSession, archive: Path) -> dict[str, str]:
    """Return a ``PYTHONPATH`` for workers with the archive that this package was imported from.

    The driver's Python process of a streaming source looks for files of ``addPyFile`` in a
    directory of the query, ``userFiles-*/streaming_job``, which is empty (seen with 4.3.0; the path
    comes from ``SparkFiles`` and the query's ``JobArtifactSet``). That process gets the environment
    of the registered function.
    """
    before = spark.sparkContext.environment.get(_PYTHONPATH)
    return {_PYTHONPATH: os.pathsep.join(filter(None, [str(archive), before]))}


_ENVIRONMENT_LOCK: Final = threading.RLock()


@contextmanager
def worker_variables(spark: SparkSession, variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables of the Python workers that the block's functions and jobs use.

    All threads share the context's environment, so blocks wait for each other. Spark Connect
    ignores the variables.
    """
    if not variables or not is_classic(spark):
        yield
        return
    environment: dict[str, str] = spark.sparkContext.environment
    with _ENVIRONMENT_LOCK:
        before = {name: environment[name] for name in variables.keys() & environment.keys()}
        environment.update(variables)
        try:
            yield
        finally:
            for name in variables:
                environment.pop(name, None)
            environment.update(before)
