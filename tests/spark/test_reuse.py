"""Batch data frames that are used again, beside those of the JVM connector.

Spark keeps more of a Python source than of the JVM connector: the reader and its tasks, for as long
as a data frame is used. Rows must not depend on that.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from pyspark_kafka.brokers import KafkaCluster

from .queries import OURS, PEER, read, read_stream
from .topics import Topics

Result = list[tuple[Any, ...]]

FILTERS: Final = (
    "partition = 0",
    "partition <> 1 and offset >= 5",
    "timestamp >= timestamp'1970-01-01 00:16:40.008'",
)


def rows(frame: DataFrame) -> Result:
    return sorted(map(tuple, frame.select("topic", "partition", "offset").collect()))


def used_twice(frame: DataFrame) -> list[Result]:
    return [rows(frame.where(FILTERS[0])), rows(frame.where(FILTERS[1])), rows(frame)]


def cached(frame: DataFrame) -> list[Result]:
    kept = frame.cache()
    try:
        return [rows(kept), rows(kept.where(FILTERS[0]))]
    finally:
        kept.unpersist()


def joined_with_itself(frame: DataFrame) -> list[Result]:
    place = ["topic", "partition", "offset"]
    one, other = frame.where(FILTERS[1]).select(place), frame.where(FILTERS[2]).select(place)
    return [rows(one.join(other, place)), rows(one.join(frame.select(place), place, "right"))]


def united_with_itself(frame: DataFrame) -> list[Result]:
    first, second, third = map(frame.where, FILTERS)
    return [rows(first.union(second).union(third)), rows(first.union(frame))]


def in_two_queries(frame: DataFrame) -> list[Result]:
    with ThreadPoolExecutor(3) as pool:
        queries = [pool.submit(rows, one) for one in (*map(frame.where, FILTERS[:2]), frame)]
        return [query.result() for query in queries]


def a_view(frame: DataFrame) -> list[Result]:
    name = f"v{uuid.uuid4().hex}"
    frame.createOrReplaceTempView(name)
    query = f"""
        select (select count(*) from {name} where {FILTERS[0]}),
            (select count(*) from {name} where {FILTERS[2]}),
            (select count(*) from {name})
    """  # noqa: S608
    spark = frame.sparkSession
    try:
        return [[tuple(spark.sql(query).collect()[0])], rows(spark.table(name))]
    finally:
        spark.catalog.dropTempView(name)


USES: Final[Mapping[str, Callable[[DataFrame], list[Result]]]] = {
    use.__name__: use
    for use in (
        used_twice,
        cached,
        joined_with_itself,
        united_with_itself,
        in_two_queries,
        a_view,
    )
}
STARTS: Final = {"startingTimestamp": "1000003", "startingOffsetsByTimestampStrategy": "latest"}
OPTIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "plain": {},
    "start by time": STARTS,
    "end by time": {"endingTimestamp": "1000025"},
    "split": {"minPartitions": "7", **STARTS},
    "split open": {"minPartitions": "7"},
}


class Changing:
    """A topic that changes between two uses, and another that a pattern matches later."""

    def __init__(self, kafka: KafkaCluster, topics: Topics) -> None:
        self._kafka, self._topics = kafka, topics
        self.topic = topics.create(3)
        topics.fill(self.topic, {0: 10, 1: 20, 2: 40})

    def frames(self, spark: SparkSession, source: str, **options: str) -> dict[str, DataFrame]:
        frames = {
            name: read(spark, self._kafka, source, subscribe=self.topic, **given, **options)
            for name, given in OPTIONS.items()
        }
        pattern = f"{self.topic}(-later)?"
        frames["pattern"] = read(spark, self._kafka, source, subscribePattern=pattern, **options)
        return frames

    def grow(self) -> None:
        self._topics.fill(self.topic, {0: 4, 1: 4})
        self._kafka.add_partitions(self.topic, 4)
        self._topics.fill(self.topic, {3: 7})
        self._kafka.create_topic(f"{self.topic}-later", 2)
        self._topics.fill(f"{self.topic}-later", {1: 6})

    def expire(self) -> None:
        self._kafka.delete_records({(self.topic, 0): 8, (self.topic, 2): 15})

    def change(self) -> None:
        self.grow()
        self.expire()


@pytest.fixture
def changing(kafka, topics):
    return Changing(kafka, topics)


@pytest.mark.parametrize("use", USES)
def test_a_frame_that_is_used_again_has_the_rows_of_the_jvm_connector(spark, changing, use):
    ours, theirs = (changing.frames(spark, source) for source in (OURS, PEER))
    for change in (lambda: None, changing.change):
        change()
        for name in ("plain", "split", "pattern"):
            assert (name, USES[use](ours[name])) == (name, USES[use](theirs[name]))


def test_each_client_sees_what_was_added(spark, changing, client):
    ours, theirs = changing.frames(spark, OURS, client=client), changing.frames(spark, PEER)
    for change in (lambda: None, changing.grow, changing.expire):
        change()
        assert {name: rows(frame) for name, frame in ours.items()} == {
            name: rows(frame) for name, frame in theirs.items()
        }


def test_frames_of_a_connect_session_have_the_rows_of_the_jvm_connector(spark, connect, changing):
    ours, theirs = (changing.frames(*each)["pattern"] for each in ((connect, OURS), (spark, PEER)))
    for change in (lambda: None, changing.change):
        change()
        for use in (used_twice, united_with_itself, joined_with_itself, a_view):
            assert use(ours) == use(theirs)


@pytest.mark.parametrize("condition", ["true", FILTERS[1]])
def test_a_stream_joins_a_frame_as_it_is_at_each_batch(
    spark, kafka, topics, changing, tmp_path, condition
):
    clock = topics.create()
    names = {source: f"joined_{source}_{uuid.uuid4().hex}" for source in (OURS, PEER)}
    queries: list[StreamingQuery] = []
    for source, name in names.items():
        ticks = read_stream(spark, kafka, OURS, subscribe=clock, startingOffsets="earliest")
        static = changing.frames(spark, source)["pattern"].where(condition)
        joined = ticks.selectExpr("offset as tick").crossJoin(static)
        writer = joined.select("tick", "topic", "partition", "offset").writeStream.format("memory")
        writer = writer.queryName(name).option("checkpointLocation", str(tmp_path / source))
        queries.append(writer.start())
    try:
        for change in (lambda: None, changing.change):
            change()
            topics.numbers(clock, 0, range(1))
            for query in queries:
                query.processAllAvailable()
        found, expected = (
            sorted(map(tuple, spark.table(name).collect())) for name in names.values()
        )
        assert found == expected
        assert {row[0] for row in found} == {0, 1}
    finally:
        for query in queries:
            query.stop()


def test_pushing_filters_is_refused(spark, kafka, topics):
    """Spark would read the ranges of the last filter for every use of the frame."""
    with pytest.raises(Exception, match="pushFilters must be false"):
        read(spark, kafka, OURS, subscribe=topics.create(), pushFilters="true").collect()
