"""Writing with Spark, beside the JVM connector's sink."""

import datetime as dt
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType, StructType

from pyspark_kafka.bootstrap.spark import DefaultSource

from .queries import OURS, PEER, read
from .sinks import Sinks, rows_of

PROGRAM = Path(__file__).parent / "programs" / "write_with_failures.py"

SCHEMA = (
    "topic string, key binary, value binary, partition int, "
    "headers array<struct<key:string,value:binary>>"
)

SHAPES: tuple[
    tuple[bytes | None, bytes | None, int, list[tuple[str, bytes | None]] | None], ...
] = (
    (b"key", b"value", 0, None),
    (None, b"no key", 1, [("one", b"1")]),
    (b"no value", None, 0, [("b", b"2"), ("a", None), ("b", b"")]),
    (b"", b"", 2, [("", b"\x00\xff")]),
    (None, None, 2, []),
    ("ключ".encode(), b"\x00" * 1_000, 1, [("ключ", "значение".encode())]),
)
"""Keys, values, partitions and headers: null, empty, binary, duplicate and none at all."""

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@pytest.fixture
def sinks(spark, kafka, client, tmp_path):
    return Sinks(spark, kafka, client, tmp_path)


@pytest.fixture(params=["batch", "stream"])
def write(request, sinks):
    return sinks.write if request.param == "batch" else sinks.write_stream


def shapes(spark: SparkSession, topic: str) -> DataFrame:
    rows = [(topic, *SHAPES[number % len(SHAPES)]) for number in range(300)]
    return rows_of(spark, rows, SCHEMA)


def texts(spark: SparkSession, *values: str) -> DataFrame:
    return rows_of(spark, [(value,) for value in values], "value string")


def test_rows_become_the_records_that_the_jvm_connector_makes(spark, sinks, write, topics):
    ours, theirs = topics.create(3), topics.create(3)
    write(shapes(spark, ours))
    # As a batch: the other sink is not what is tried here.
    sinks.write(shapes(spark, theirs), PEER)
    stored = sinks.stored(ours)
    assert len(stored) == 300
    assert stored == sinks.stored(theirs)


def test_the_jvm_connector_reads_what_is_compressed(spark, sinks, topics):
    ours, theirs = topics.create(3), topics.create(3)
    for codec in CODECS:
        sinks.write(shapes(spark, ours), kafka__compression__type=codec)
    sinks.write(shapes(spark, theirs), PEER)
    expected = Counter(sinks.stored(theirs))
    assert expected.total() == 300
    assert Counter(sinks.stored(ours)) == {
        row: len(CODECS) * times for row, times in expected.items()
    }


def test_a_timestamp_arrives_to_the_millisecond(spark, sinks, topics):
    """A column ``timestamp``, which the JVM connector ignores, is the record's; null is now."""
    topic = topics.create()
    when = dt.datetime(2024, 2, 29, 23, 59, 59, 123_456, tzinfo=dt.UTC)
    began = dt.datetime.now(dt.UTC)
    sinks.write(
        rows_of(spark, [("then", when), ("now", None)], "value string, timestamp timestamp"),
        topic=topic,
    )
    read_back = read(spark, sinks.kafka, PEER, subscribe=topic).orderBy("offset")
    rows = read_back.selectExpr(
        "cast(value as string) as value", "unix_millis(timestamp) as ms", "timestampType"
    ).collect()
    assert [row.value for row in rows] == ["then", "now"]
    assert rows[0].ms == round(when.replace(microsecond=123_000).timestamp() * 1_000)
    assert (
        int(began.timestamp() * 1_000) <= rows[1].ms <= dt.datetime.now(dt.UTC).timestamp() * 1_000
    )
    assert {row.timestampType for row in rows} == {0}


def test_columns_that_are_of_no_record_are_left_alone(spark, sinks, topics):
    """A query need not drop what it does not write; upper and lower case of names differ."""
    topic = topics.create()
    table = texts(spark, "a").selectExpr(
        "value", "1 as number", "array('x') as list", "'no-such-topic' as Topic"
    )
    sinks.write(table, topic=topic)
    assert sinks.values(topic) == ["a"]


def test_no_rows_are_no_error(spark, sinks, write, topics):
    topic = topics.create()
    write(texts(spark), topic=topic)
    assert sinks.stored(topic) == []


@pytest.mark.parametrize("kind", ["writer", "streamWriter"])
def test_options_of_a_source_are_named_in_a_warning(caplog, kind):
    given = {
        "kafka.bootstrap.servers": "127.0.0.1:1",
        "topic": "t",
        "subscribe": "t",
        "startingOffsets": "earliest",
        "kafka.group.id": "g",
    }
    with caplog.at_level("WARNING", "pyspark_kafka"):
        getattr(DefaultSource(given), kind)(StructType().add("value", StringType()), False)
    what = "batch" if kind == "writer" else "stream"
    assert sorted(caplog.messages) == [
        f"{name} option ignored in {what} writes" for name in ("startingOffsets", "subscribe")
    ]


def test_a_batch_that_spark_runs_again_is_written_again_unless_exactly_once_is_asked_for(
    spark, topics, kafka, tmp_path
):
    """Spark has not come to know that the last batch is done: its readers see it once, or twice."""
    for guarantee, times in (("at-least-once", 2), ("exactly-once", 1)):
        topic = topics.create(2)
        sinks = Sinks(spark, kafka, "kafka-python", tmp_path / guarantee)
        asked = {"topic": topic, "deliveryGuarantee": guarantee}
        sinks.write_stream(texts(spark, "a", "b"), **asked)
        for commit in (sinks.directory / f"checkpoint-{OURS}" / "commits").iterdir():
            commit.unlink()
        sinks.write_stream(texts(spark, "c"), **asked)
        assert sinks.values(topic) == [*["a"] * times, *["b"] * times, "c"], guarantee


def test_our_source_feeds_our_sink(spark, sinks, topics, tmp_path):
    origin, copy = topics.create(3), topics.create(3)
    topics.fill(origin, {0: 20, 1: 30, 2: 10})
    stream = (
        spark.readStream.format(OURS)
        .options(client=sinks.client, subscribe=origin, startingOffsets="earliest")
        .options(includeHeaders="true", **sinks.kafka.options)
        .load()
    )
    query = (
        stream.writeStream.format(OURS)
        .options(client=sinks.client, topic=copy, **sinks.kafka.options)
        .option("checkpointLocation", str(tmp_path / "copy"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    times = "unix_millis(timestamp) as ms"
    both = [
        read(spark, sinks.kafka, PEER, subscribe=topic).selectExpr("partition", "offset", times)
        for topic in (origin, copy)
    ]
    assert sinks.stored(copy) == sinks.stored(origin)
    assert sorted(both[0].collect()) == sorted(both[1].collect())


def test_a_task_that_is_tried_again_loses_nothing(kafka, topics, tmp_path):
    """The next attempt sends every row; what the first one sent stays, unless written once."""
    writes = {
        f"{client}, {kind}": {
            "client": client,
            "streams": kind != "batch",
            "guarantee": "exactly-once" if kind == "once" else "at-least-once",
            "topic": topics.create(2),
        }
        for client, kind in (
            ("kafka-python", "batch"),
            ("kafka-python", "stream"),
            ("kafka-python", "once"),
            ("confluent", "batch"),
            ("confluent", "stream"),
        )
    }
    given = {"options": kafka.options, "writes": writes, "directory": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, str(PROGRAM), json.dumps(given)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    for name, write in writes.items():
        times = Counter(found[name])
        assert set(times) == set(range(8_000)), name
        is_once = write["guarantee"] == "exactly-once"
        assert set(times.values()) == ({1} if is_once else {1, 2}), name
