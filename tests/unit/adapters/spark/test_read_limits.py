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
def test_spark_gets_one_of_its_own_limits(limit, theirs):
    assert to_spark(limit) == theirs


@LIMITS
def test_sparks_limit_is_replaced_by_all_limits_of_the_options(limit, theirs):
    assert from_spark(theirs, limit) == limit


@pytest.mark.parametrize("asked_for", [ALL, AT_LEAST, AT_MOST, BYTES])
def test_trigger_once_reads_everything_and_ignores_the_options(asked_for):
    assert from_spark(spark.ReadAllAvailable(), asked_for) == ALL
