"""Whether a session will be one of Spark Connect, by the rules of ``SparkSession.Builder``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import pyspark
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

_API_MODE: Final = "spark.api.mode"
_MASTER: Final = "spark.master"
_REMOTE: Final = "spark.remote"
_SUBMITTED: Final = frozenset({"PYSPARK_GATEWAY_PORT", "PYSPARK_SUBMIT_ARGS"})
"""Variables that ``spark-submit`` sets, or passes on to it."""

STATIC_MODES: Final = frozenset({_API_MODE, _REMOTE})
"""Settings that choose Spark Connect, and that the JVM of a local server must not have."""


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
