"""Read limits between Spark and the use cases."""

from __future__ import annotations

from pyspark.sql.streaming import datasource as spark_limits

from ...domain.read_limits import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
    limits_of,
)


def to_spark(limit: ReadLimit) -> spark_limits.ReadLimit:
    """Give Spark's limit for the first part of a limit.

    Which one does not matter, as long as it is not ``ReadAllAvailable``: by that, and by nothing
    else, Trigger.Once is known, which takes no notice of limits.
    """
    match limits_of(limit)[0]:
        case ReadMinRows(rows):
            return spark_limits.ReadMinRows(rows)
        case ReadMaxRows(rows):
            return spark_limits.ReadMaxRows(rows)
        case ReadMaxBytes(most):
            return spark_limits.ReadMaxBytes(most)
        case _:
            return spark_limits.ReadAllAvailable()


def from_spark(given: spark_limits.ReadLimit, asked_for: ReadLimit) -> ReadLimit:
    """Give the limit of a batch: all for Trigger.Once, else what the options ask for."""
    if isinstance(given, spark_limits.ReadAllAvailable):
        return ReadAllAvailable()
    return asked_for
