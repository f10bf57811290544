"""The active session of a thread, where Spark looks for Python data sources to write with."""

from __future__ import annotations

from pyspark.sql import SparkSession

from .job_group import is_classic


def activate_session(spark: SparkSession) -> None:
    """Make a session the active one of this thread; on Spark Connect do nothing.

    Scala has `SparkSession.setActiveSession` for this. PySpark calls it in `createDataFrame` alone.
    """
    if is_classic(spark):
        sessions = spark._get_j_spark_session_class(spark._jvm)  # noqa: SLF001  # has no public name
        sessions.setActiveSession(spark._jsparkSession)  # noqa: SLF001
