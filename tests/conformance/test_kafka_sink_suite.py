"""KafkaSinkSuite: what is written, beside the JVM connector in the same session."""

from __future__ import annotations

import uuid
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException

from ..spark.queries import OURS, PEER
from ..spark.sinks import Sinks, refusal, refusal_line, rows_of
from .one_client import one_client
from .peer import Held, peer
from .side_by_side import failure, root_cause, sql_conf

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


STREAMING = "KafkaSinkStreamingSuiteBase"
BATCH = "KafkaSinkBatchSuiteBase"

CONSTANT = 2
"""The partition that ``constant_partitions`` gives to every row."""


def constant_partitions(batch: pa.RecordBatch, _partitions: int) -> pa.Array[Any]:
    return pa.array([CONSTANT] * batch.num_rows, pa.int32())


@pytest.fixture
def sinks(spark, kafka, client, tmp_path):
    return Sinks(spark, kafka, client, tmp_path)


def numbers(spark: SparkSession, first: int, last: int) -> DataFrame:
    return spark.range(first, last + 1).selectExpr("cast(id as string) as value")


def texts(first: int, last: int) -> list[str]:
    return sorted(str(number) for number in range(first, last + 1))


@dataclass(frozen=True)
class Feed:
    """A stream of texts, to which a test adds, and the queries that write it."""

    sinks: Sinks
    directory: Path

    def add(self, *values: object) -> None:
        """Add texts, which one task of one batch writes in this order."""
        count = len(list(self.directory.iterdir()))
        # Spark reads no file of such a name, and sees the renamed one at once.
        hidden = self.directory / f"_{count}"
        hidden.write_text("\n".join(map(str, values)))
        hidden.rename(self.directory / f"{count}.txt")

    def rows(self, *columns: str) -> DataFrame:
        return self.sinks.spark.readStream.text(str(self.directory)).selectExpr(*columns)

    @contextmanager
    def written(
        self, rows: DataFrame, sink: str, mode: str = "append", **options: str
    ) -> Iterator[StreamingQuery]:
        query = (
            rows.writeStream.format(sink)
            .options(**self.sinks.given(sink, options))
            .option("checkpointLocation", str(self.directory.with_suffix(f".{uuid.uuid4().hex}")))
            .outputMode(mode)
            .start()
        )
        try:
            yield query
        finally:
            query.stop()

    def failure(self, sink: str, *columns: str, mode: str = "append", **options: str) -> Exception:
        self.add(1, 2, 3, 4, 5)

        def run() -> None:
            with self.written(self.rows(*columns), sink, mode, **options) as query:
                query.processAllAvailable()

        return failure(run)

    def assert_refused_alike(self, core: str, *columns: str, **options: str) -> None:
        theirs = root_cause(self.failure(PEER, *columns, **options))
        ours = self.failure(OURS, *columns, **options)
        assert core in theirs
        assert theirs in refusal_line(ours)


@pytest.fixture
def open_feed(sinks, tmp_path):
    def opened() -> Feed:
        directory = tmp_path / f"feed{uuid.uuid4().hex}"
        directory.mkdir()
        return Feed(sinks, directory)

    return opened


@peer(STREAMING, "streaming - write to kafka with topic field", Held.BESIDE_JVM)
@peer(STREAMING, "streaming - write w/o topic field, with topic option", Held.BESIDE_JVM)
@peer(STREAMING, "streaming - topic field and topic option", Held.BESIDE_JVM)
@pytest.mark.parametrize(
    ("client", "topic_from"),
    [
        ("kafka-python", "column"),
        ("kafka-python", "option"),
        ("kafka-python", "both"),
        ("confluent", "both"),
    ],
)
def test_streaming_write_to_kafka(open_feed, sinks, topics, topic_from):
    stored = []
    for sink in (PEER, OURS):
        feed, topic = open_feed(), topics.create()
        column = {"column": [f"'{topic}' as topic"], "both": ["'foo' as topic"]}
        options = {} if topic_from == "column" else {"topic": topic}
        rows = feed.rows("value", *column.get(topic_from, []))
        with feed.written(rows, sink, **options) as query:
            for last in (5, 10):
                feed.add(*range(last - 4, last + 1))
                query.processAllAvailable()
                assert sinks.values(topic) == texts(1, last)
        stored.append(sinks.stored(topic))
    assert stored[0] == stored[1]


@peer(STREAMING, "streaming - write w/o topic field, with topic option", Held.BESIDE_JVM)
@pytest.mark.parametrize("mode", ["complete", "update"])
@one_client
def test_streaming_write_of_aggregates(open_feed, sinks, topics, mode):
    """A stream of counts writes all with each batch, or with ``foreachBatch`` the changed ones."""
    stored = []
    for sink in (PEER, OURS):
        feed, topic = open_feed(), topics.create()
        counts = feed.rows("value").groupBy("value").count()
        rows = counts.selectExpr("value as key", "cast(count as string) as value")
        written = (
            batches_written(sinks, rows, topic)
            if (sink, mode) == (OURS, "update")
            else feed.written(rows, sink, mode, topic=topic)
        )
        with written as query:
            for values in ((1, 2, 2), (2, 3)):
                feed.add(*values)
                query.processAllAvailable()
        stored.append(sorted((row.key, row.value) for row in sinks.stored(topic)))
    again = [(b"1", b"1")] if mode == "complete" else []
    changed = [(b"1", b"1"), (b"2", b"2"), (b"2", b"3"), (b"3", b"1")]
    assert stored == [sorted(again + changed)] * 2


@contextmanager
def batches_written(sinks: Sinks, rows: DataFrame, topic: str) -> Iterator[StreamingQuery]:
    stream = rows.writeStream.foreachBatch(lambda table, _: sinks.write(table, topic=topic))
    query = stream.outputMode("update").start()
    try:
        yield query
    finally:
        query.stop()


@one_client
def test_streaming_write_in_update_mode_is_refused(open_feed):
    """Spark writes no Python data source in update mode: users write each batch by themselves."""
    error = open_feed().failure(OURS, "value", mode="update", topic="t")
    assert "pyspark_kafka does not support Update mode" in str(error)


@peer(STREAMING, "streaming - write data with bad schema", Held.BESIDE_JVM)
@peer(STREAMING, "streaming - write data with valid schema but wrong types", Held.BESIDE_JVM)
@pytest.mark.parametrize(
    ("columns", "core"),
    [
        (("value as key", "value"), "topic option required when no 'topic' attribute is present"),
        (("'t' as topic", "value as key"), "Required attribute 'value' not found"),
        (("cast('1' as int) as topic", "value"), "topic must be a(n) string"),
        (("'t' as topic", "cast(value as int) as value"), "value must be a(n) string or binary"),
        (("'t' as topic", "value", "1 as key"), "key must be a(n) string or binary"),
        (("'t' as topic", "value", "value as partition"), "partition must be a(n) int"),
        (("'t' as topic", "value", "value as headers"), "headers must be a(n) array<struct<"),
    ],
    ids=["no topic", "no value", "topic", "value", "key", "partition", "headers"],
)
@one_client
def test_streaming_write_data_with_a_schema_of_no_records(open_feed, columns, core):
    open_feed().assert_refused_alike(core, *columns)


@peer(STREAMING, "streaming - write to non-existing topic", Held.BESIDE_JVM)
def test_streaming_write_to_non_existing_topic(open_feed, fresh_name):
    feed, topic = open_feed(), fresh_name()
    options = {"topic": topic, "kafka__max__block__ms": "500"}
    theirs = feed.failure(PEER, "value", **options)
    ours = feed.failure(OURS, "value", **options)
    assert isinstance(theirs, StreamingQueryException)
    assert isinstance(ours, StreamingQueryException)
    assert "job aborted" in str(theirs).lower()
    assert f"Topic {topic} not present in metadata after 500 ms" in str(theirs)
    line = refusal_line(ours)
    assert line.startswith(f"[KAFKA_UNKNOWN_TOPIC] Topic '{topic}' does not exist at ")


@peer(STREAMING, "streaming - exception on config serializer", Held.BESIDE_JVM)
@pytest.mark.parametrize("setting", ["key__serializer", "value__serializer"])
@one_client
def test_streaming_exception_on_config_serializer(open_feed, setting):
    core = f"Kafka option '{setting.replace('__', '.')}' is not supported"
    option = {f"kafka__{setting}": "foo"}
    open_feed().assert_refused_alike(core, "value", topic="t", **option)


@peer("KafkaSinkMicroBatchStreamingSuite", "streaming - sink progress is produced", Held.BESIDE_JVM)
@one_client
def test_streaming_sink_progress_is_produced(open_feed, topics):
    for sink in (PEER, OURS):
        feed = open_feed()
        feed.add(1, 2, 3)
        with feed.written(feed.rows("value"), sink, topic=topics.create()) as query:
            query.processAllAvailable()
            assert 3 in [progress["sink"]["numOutputRows"] for progress in query.recentProgress]


@peer(BATCH, "batch - write to kafka", Held.BESIDE_JVM)
def test_batch_write_to_kafka(spark, sinks, topics):
    ours, theirs = topics.create(4), topics.create(4)
    headers: list[tuple[str, list[tuple[str, bytes | None]] | None]] = [
        ("1", [("once", b"1"), ("twice", b"2"), ("twice", b"3")]),
        ("2", [("a", b"b"), ("c", None), ("c", b"d")]),
        ("3", [("once", b"")]),
        ("4", None),
        ("5", []),
    ]
    rows = [(f"k{value}", value, pairs) for value, pairs in headers]
    schema = "key string, value string, headers array<struct<key:string,value:binary>>"
    table = rows_of(spark, rows, schema)
    sinks.write(table, topic=ours)
    sinks.write(table, PEER, topic=theirs)
    stored = sinks.stored(ours)
    assert stored == sinks.stored(theirs)
    assert {row.value: row.headers for row in stored} == {
        value.encode(): tuple(pairs) if pairs else None for value, pairs in headers
    }


@peer(BATCH, "batch - partition column and partitioner priorities", Held.BESIDE_JVM)
def test_batch_partition_column_and_partitioner_priorities(spark, sinks, topics):
    """The column precedes a custom partitioner, which precedes the keys; null counts as unset."""
    partitioner = f"{__name__}:{constant_partitions.__name__}"
    keyed = "cast(id as string) as key", "cast(id as string) as value"
    one, some = "cast(1 as int) as partition", "cast(if(id < 5, 1, null) as int) as partition"

    def partitions(*columns: str, sink: str = OURS, **options: str) -> dict[int, int]:
        topic = topics.create(4)
        sinks.write(spark.range(10).selectExpr(*columns), sink, topic=topic, **options)
        return {int(row.value or b""): row.partition for row in sinks.stored(topic)}

    by_key = partitions(*keyed, sink=PEER)
    assert len(set(by_key.values())) > 1
    custom = {"kafka__partitioner__class": partitioner}
    assert partitions(*keyed) == by_key
    assert set(partitions(*keyed, **custom).values()) == {CONSTANT}
    assert set(partitions(*keyed, one).values()) == {1}
    assert set(partitions(*keyed, one, **custom).values()) == {1}
    half = {number: 1 if number < 5 else by_key[number] for number in range(10)}
    assert partitions(*keyed, some) == partitions(*keyed, some, sink=PEER) == half
    assert partitions(*keyed, some, **custom) == {
        number: 1 if number < 5 else CONSTANT for number in range(10)
    }


@peer(BATCH, "batch - null topic field value, and no topic option", Held.BESIDE_JVM)
def test_batch_null_topic_field_value_and_no_topic_option(spark, sinks):
    table = spark.range(1).selectExpr("cast(null as string) as topic", "'a' as value")
    theirs = root_cause(failure(lambda: sinks.write(table, PEER)))
    line = refusal(lambda: sinks.write(table))
    assert "contains a null topic" in theirs
    assert line.startswith("[KAFKA_NULL_TOPIC_IN_DATA] ")
    assert theirs in line


@peer(BATCH, "SPARK-20496: batch - enforce analyzed plans", Held.BESIDE_JVM)
@one_client
def test_spark_20496_batch_enforce_analyzed_plans(spark, sinks, topics):
    table = spark.range(1, 1_000).selectExpr("to_json(struct(*)) as value")
    for sink in (PEER, OURS):
        topic = topics.create()
        sinks.write(table, sink, topic=topic)
        assert sinks.values(topic) == sorted(f'{{"id":{number}}}' for number in range(1, 1_000))


@peer("KafkaSinkBatchSuiteV1", "batch - unsupported save modes", Held.BESIDE_JVM)
@peer("KafkaSinkBatchSuiteV2", "batch - unsupported save modes", Held.BESIDE_JVM)
@one_client
def test_batch_unsupported_save_modes(spark, sinks):
    table = numbers(spark, 1, 5)

    def words(sink: str, mode: str) -> str:
        writer = table.write.format(sink).options(**sinks.given(sink, {"topic": "t"}))
        return str(failure(lambda: writer.mode(mode).save())).replace(f'"{OURS}"', f'"{PEER}"')

    of_v1 = {mode: words(PEER, mode) for mode in ("ignore", "overwrite")}
    with sql_conf(spark, "spark.sql.sources.useV1SourceList", ""):
        of_v2 = {mode: words(PEER, mode) for mode in ("ignore", "overwrite", "errorifexists")}
    assert of_v1["ignore"].startswith("Save mode Ignore not allowed for Kafka")
    assert of_v1["overwrite"].startswith("Save mode Overwrite not allowed for Kafka")
    assert f"[KAFKA_SAVE_MODE] {of_v1['overwrite']}" in words(OURS, "overwrite")
    assert "does not support truncate" in of_v2["overwrite"]
    for mode in ("ignore", "errorifexists"):
        assert "cannot be written in the" in of_v2[mode]
        assert words(OURS, mode) == of_v2[mode]


@peer("KafkaContinuousSinkSuite", "generic - write big data with small producer buffer", Held.SPARK)
@peer("KafkaSinkBatchSuiteV2", "generic - write big data with small producer buffer", Held.SPARK)
@pytest.mark.parametrize("kind", ["batch", "micro-batch"])
def test_generic_write_big_data_with_small_producer_buffer(spark, sinks, topics, kind):
    topic = topics.create(1)
    write = sinks.write if kind == "batch" else sinks.write_stream
    table = spark.range(1_000).selectExpr("repeat(string(id % 10), 15000) as value")
    write(table, topic=topic, kafka__buffer__memory="16384", kafka__max__block__ms="60000")
    stored = sinks.stored(topic)
    assert len(stored) == 1_000
    assert {row.value for row in stored} == {b"%d" % number * 15_000 for number in range(10)}
