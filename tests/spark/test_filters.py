import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import pytest
from pyspark.sql import DataFrame, SparkSession

from .queries import OURS, assert_same_rows, read

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"

FILTERS = {
    "partition = 2": 1,
    "partition in (0, 3)": 2,
    "partition > 1": 2,
    "partition >= 1 and partition < 3": 2,
    "partition = 7": 0,
    "offset = 5": 4,
    "offset >= 90 and offset <= 95": 4,
    "offset in (3, 40)": 4,
    "offset < 0": 0,
    "partition = 1 and offset > 97": 1,
    "timestamp >= timestamp'1970-01-01 00:16:40.050'": 4,
    "timestamp > timestamp'1970-01-01 00:16:40.098'": 4,
    "timestamp = timestamp'1970-01-01 00:16:40.020'": 4,
    "timestamp >= timestamp'2100-01-01 00:00:00'": 0,
    "value is null and offset < 10": 4,
}
"""Filters, and how many of four partitions can hold a record that passes."""


@contextmanager
def without_push_down(spark: SparkSession) -> Iterator[None]:
    before = spark.conf.get(PUSHDOWN)
    assert before is not None
    spark.conf.set(PUSHDOWN, "false")
    try:
        yield
    finally:
        spark.conf.set(PUSHDOWN, before)


@pytest.fixture(scope="module")
def topic(topics):
    name = topics.create(4)
    topics.fill(name, dict.fromkeys(range(4), 100))
    return name


@pytest.fixture(scope="module")
def all_rows(spark, kafka, topic):
    """Return a function that returns the topic's rows, which each client reads once."""

    @cache
    def rows_of(client: str) -> DataFrame:
        table = read(spark, kafka, OURS, client=client, subscribe=topic)
        return spark.createDataFrame(table.collect(), table.schema)

    return rows_of


@pytest.mark.parametrize("condition", FILTERS)
def test_a_filter_prunes_and_gives_the_same_rows(spark, kafka, topic, all_rows, client, condition):
    table = read(spark, kafka, OURS, client=client, subscribe=topic, pushFilters="true")
    pushed = table.where(condition)
    # Spark makes one task of its own where a source plans none.
    assert pushed.rdd.getNumPartitions() == max(FILTERS[condition], 1)
    assert_same_rows(pushed, all_rows(client).where(condition))


def test_push_down_names_the_setting_that_it_needs(spark, kafka, topic):
    table = read(spark, kafka, OURS, subscribe=topic, pushFilters="true")
    with without_push_down(spark), pytest.raises(Exception, match=re.escape(PUSHDOWN)):
        table.where("partition = 1").count()
