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


def operator_policy(spark: SparkSession | None = None) -> OptionPolicy:
    """Return what the environment of this process and the settings of a session allow.

    :raises OptionPolicyError: if a list is invalid.
    """
    policy = disallowing(os.environ.get(VARIABLE, ""), VARIABLE)
    if spark is None:
        return policy
    return policy | disallowing(spark.conf.get(SPARK_SETTING, "") or "", SPARK_SETTING)


def worker_environment(spark: SparkSession) -> dict[str, str]:
    """Return the variables that pass the policy of a session to workers; raise likewise."""
    names = sorted({name for name, _ in operator_policy(spark).disallowed})
    return {VARIABLE: ",".join(names)} if names else {}
