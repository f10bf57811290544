"""Batch queries in Spark, beside the JVM connector."""

import json
from typing import Final

import pytest

from .queries import OURS, PEER, assert_same_rows, read

GENERATED: Final = {
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
}
"""Spark's defaults; other tests turn generated code off, since it takes long to compile."""


@pytest.fixture
def generated(spark):
    before = {name: spark.conf.get(name) for name in GENERATED}
    for name, value in GENERATED.items():
        spark.conf.set(name, value)
    yield
    for name, earlier in before.items():
        assert earlier is not None
        spark.conf.set(name, earlier)


def test_rows_are_those_of_the_jvm_connector(spark, kafka, topics, client):
    topic = topics.create(4)
    topics.fill(topic, {0: 500, 2: 20})
    options = {"subscribe": topic, "includeHeaders": "true"}
    theirs = read(spark, kafka, PEER, **options)
    assert theirs.count() == 520
    assert_same_rows(read(spark, kafka, OURS, client=client, **options), theirs)


@pytest.mark.usefixtures("generated")
def test_ends_are_those_of_the_jvm_connector(spark, kafka, topics, client):
    topic = topics.create(3)
    topics.fill(topic, {0: 50, 1: 50, 2: 50})
    options = {
        "subscribe": topic,
        "startingOffsets": json.dumps({topic: {"0": 7, "1": -2, "2": 50}}),
        "endingOffsets": json.dumps({topic: {"0": -1, "1": 9, "2": -1}}),
    }
    theirs = read(spark, kafka, PEER, **options)
    assert theirs.count() == 43 + 9
    assert_same_rows(read(spark, kafka, OURS, client=client, **options), theirs)


def test_a_schema_chooses_columns(spark, kafka, topics, client):
    topic = topics.create()
    topics.fill(topic, {0: 3})
    table = (
        spark.read.format(OURS)
        .schema("offset long, value binary")
        .options(subscribe=topic, client=client, **kafka.options)
        .load()
    )
    assert [tuple(row) for row in table.orderBy("offset").collect()] == [
        (0, b"value"),
        (1, b"no key"),
        (2, None),
    ]


def test_columns_that_no_record_has_are_refused(spark, kafka, topics):
    table = (
        spark.read.format(OURS)
        .schema("offset string, valeu binary")
        .options(subscribe=topics.create(), **kafka.options)
        .load()
    )
    with pytest.raises(Exception, match="2 options cannot be used") as caught:
        table.count()
    assert "'offset string'" in str(caught.value)
    assert "'valeu binary'" in str(caught.value)
