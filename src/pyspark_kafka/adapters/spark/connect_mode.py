"""Whether a session will be one of Spark Connect, by the rules of ``SparkSession.Builder``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

_API_MODE: Final = "spark.api.mode"
_MASTER: Final = "spark.master"
_REMOTE: Final = "spark.remote"

STATIC_MODES: Final = frozenset({_API_MODE, _REMOTE})
"""Settings that choose Spark Connect, and that the JVM of a local server must not have."""


def connects_to_server(options: Mapping[str, str]) -> bool:
    """Return whether a builder's session will be of a Spark Connect server that runs already."""
    return _url(options).startswith("sc://")


def local_master(options: Mapping[str, str]) -> bool:
    """Return whether a builder starts Spark on this machine, with a Connect server or without."""
    return (_url(options) or _master(options)).startswith("local[")


def existing_connect_session() -> SparkSession | None:
    """Return this process's session of Spark Connect, if it has one."""
    if not is_remote():
        return None
    with suppress(PySparkRuntimeError):
        return SparkSession.active()
    return None


def _url(options: Mapping[str, str]) -> str:
    return options.get(_REMOTE, os.environ.get("SPARK_REMOTE", ""))


def _master(options: Mapping[str, str]) -> str:
    return options.get(_MASTER, os.environ.get("MASTER", "local"))
