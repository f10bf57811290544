"""The policy of a Spark installation's operator about options, from its settings."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from ..domain.security.policy import AllowList, OptionPolicy, allowing, disallowing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

VARIABLE: Final = "PYSPARK_KAFKA_DISALLOWED_OPTIONS"
"""Spark's Python workers have the environment of their JVM, which no option and no SQL changes."""

SPARK_SETTING: Final = "spark.sql.kafka.disallowedOptions"
"""The JVM connector's setting (SPARK-59328). Spark passes it to no Python worker."""

SESSION_VARIABLE: Final = "PYSPARK_KAFKA_SESSION_DISALLOWED_OPTIONS"
"""Passes ``SPARK_SETTING`` on. A JVM may have a ``VARIABLE`` that its Python driver does not see,
from ``spark-env.sh``, so that a worker's must not be replaced."""

SESSION_ALLOWED: Final = {
    entries: f"PYSPARK_KAFKA_SESSION_ALLOWED_{entries.name}" for entries in AllowList
}
"""Pass the settings ``spark.pyspark_kafka.allowed*`` of Spark's application on."""


def operator_policy(spark: SparkSession | None = None) -> OptionPolicy:
    """Return the policy of this process's environment, or of a session's settings.

    :raises OptionPolicyError: if a list is invalid.
    """
    return _policy(os.environ if spark is None else _session_lists(spark))


def worker_environment(spark: SparkSession) -> dict[str, str]:
    """Return the variables that pass the settings of a session to its workers.

    :raises OptionPolicyError: if a list is invalid.
    """
    given = _session_lists(spark)
    _policy(given)
    return {name: text for name, text in given.items() if text}


def _policy(session: Mapping[str, str]) -> OptionPolicy:
    policy = disallowing(os.environ.get(VARIABLE, ""), VARIABLE)
    policy |= disallowing(session.get(SESSION_VARIABLE, ""), SPARK_SETTING)
    for entries in AllowList:
        policy |= allowing(entries, os.environ.get(entries.variable, ""), entries.variable)
        given = session.get(SESSION_ALLOWED[entries], "")
        policy |= allowing(entries, given, entries.spark_setting)
    return policy


def _session_lists(spark: SparkSession) -> dict[str, str]:
    """Return the variables of a session's settings."""
    from ..adapters.spark.session import is_classic

    lists = {SESSION_VARIABLE: spark.conf.get(SPARK_SETTING, "") or ""}
    if is_classic(spark):
        # Not `spark.conf`: a SET statement changes the session's, and not the application's.
        conf = spark.sparkContext.getConf()
        lists |= {
            SESSION_ALLOWED[entries]: conf.get(entries.spark_setting, "") or ""
            for entries in AllowList
        }
    return lists
