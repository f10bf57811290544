"""Where the operator of a Spark installation says what queries may set."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from ..domain.options import OptionPolicy, disallowing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VARIABLE: Final = "PYSPARK_KAFKA_DISALLOWED_OPTIONS"
"""Spark's Python workers have the environment of their JVM, which no option and no SQL changes."""

SPARK_SETTING: Final = "spark.sql.kafka.disallowedOptions"
"""The JVM connector's (SPARK-59328). Spark passes it to no Python worker."""

SESSION_VARIABLE: Final = "PYSPARK_KAFKA_SESSION_DISALLOWED_OPTIONS"
"""Passes that setting on. A JVM may have a ``VARIABLE`` that its Python driver does not see, from
``spark-env.sh``, so that a worker's must not be replaced."""


def operator_policy(spark: SparkSession | None = None) -> OptionPolicy:
    """Return what the environment of this process and the settings of a session allow.

    :raises OptionPolicyError: if a list is invalid.
    """
    return _policy(os.environ.get(SESSION_VARIABLE, "") if spark is None else _setting(spark))


def worker_environment(spark: SparkSession) -> dict[str, str]:
    """Return the variables that pass the settings of a session to its workers.

    :raises OptionPolicyError: if a list is invalid.
    """
    given = _setting(spark)
    _policy(given)
    return {SESSION_VARIABLE: given} if given else {}


def _policy(given: str) -> OptionPolicy:
    policy = disallowing(os.environ.get(VARIABLE, ""), VARIABLE)
    return policy | disallowing(given, SPARK_SETTING)


def _setting(spark: SparkSession) -> str:
    return spark.conf.get(SPARK_SETTING, "") or ""
