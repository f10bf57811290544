"""Read limits between Spark and the use cases."""

from __future__ import annotations

from pyspark.sql.streaming import datasource as spark_limits

from ...domain.reading.read_limits import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
    limits_of,
)


def to_spark(limit: ReadLimit) -> spark_limits.ReadLimit:
    """Return Spark's limit for the first part of a limit.

    Any limit but ``ReadAllAvailable`` would do: Spark passes that one for Trigger.Once, which
    ignores limits, and nothing else identifies the trigger.
    """
    match limits_of(limit)[0]:
        case ReadMinRows(rows):
            return spark_limits.ReadMinRows(rows)
        case ReadMaxRows(rows):
            return spark_limits.ReadMaxRows(rows)
        case ReadMaxBytes(size):
            return spark_limits.ReadMaxBytes(size)
        case _:
            return spark_limits.ReadAllAvailable()


def from_spark(given: spark_limits.ReadLimit, configured: ReadLimit) -> ReadLimit:
    """Return the limit of a batch: none for Trigger.Once, otherwise the options' limit."""
    if isinstance(given, spark_limits.ReadAllAvailable):
        return ReadAllAvailable()
    return configured
