"""Read limits between Spark and the use cases."""

import pytest
from pyspark.sql.streaming import datasource as spark

from pyspark_kafka.adapters.spark.stream_reader import from_spark, to_spark
from pyspark_kafka.domain.reading.admission import (
    CompositeReadLimit,
    ReadAllAvailable,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
)

ALL = ReadAllAvailable()
AT_LEAST = ReadMinRows(15, 5_000)
AT_MOST = ReadMaxRows(20)
BYTES = ReadMaxBytes(99)

LIMITS = pytest.mark.parametrize(
    ("limit", "theirs"),
    [
        (ALL, spark.ReadAllAvailable()),
        (AT_LEAST, spark.ReadMinRows(15)),
        (AT_MOST, spark.ReadMaxRows(20)),
        (BYTES, spark.ReadMaxBytes(99)),
        (CompositeReadLimit((AT_LEAST, AT_MOST)), spark.ReadMinRows(15)),
        (CompositeReadLimit((AT_MOST, BYTES)), spark.ReadMaxRows(20)),
        (CompositeReadLimit((AT_LEAST, AT_MOST, BYTES)), spark.ReadMinRows(15)),
    ],
)


@LIMITS
def test_to_spark(limit, theirs):
    """Spark gets one of its own limits; `ReadAllAvailable` only for a query without limits."""
    assert to_spark(limit) == theirs


@LIMITS
def test_round(limit, theirs):
    """Spark's limit is replaced by all limits of the options."""
    assert from_spark(theirs, limit) == limit


@pytest.mark.parametrize("asked_for", [ALL, AT_LEAST, AT_MOST, BYTES])
def test_once(asked_for):
    """Trigger.Once reads everything and ignores the options."""
    assert from_spark(spark.ReadAllAvailable(), asked_for) == ALL
