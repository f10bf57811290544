"""KafkaSinkSuite: what is written, beside the JVM connector in the same session."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from ..spark.queries import OURS, PEER, read_stream
from ..spark.sinks import Sinks, refusal, rows_of
from .one_client import one_client
from .peer import Held, peer
from .side_by_side import failure, root_cause
from .stream_runs import await_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any

    from pyspark.sql import DataFrame, SparkSession

    from pyspark_kafka.brokers import KafkaCluster

    from ..spark.topics import Topics

STREAMING = "KafkaSinkStreamingSuiteBase"
BATCH = "KafkaSinkBatchSuiteBase"

CONSTANT = 2
"""The partition that ``constant_partitions`` gives to every row."""


def constant_partitions(batch: pa.RecordBatch, _partitions: int) -> pa.Array[Any]:
    """Return the same partition for every row: a custom partitioner."""
    return pa.array([CONSTANT] * batch.num_rows, pa.int32())


@pytest.fixture
def sinks(spark: SparkSession, kafka: KafkaCluster, client: str, tmp_path: Path) -> Sinks:
    """Return a function to write by both sinks."""
    return Sinks(spark, kafka, client, tmp_path)


def numbers(spark: SparkSession, first: int, last: int, topic: str | None = None) -> DataFrame:
    """Make a table of numbers as texts, with a column ``topic`` where one is given."""
    columns = ["cast(id as string) as value", *([f"'{topic}' as topic"] if topic else [])]
    return spark.range(first, last + 1).selectExpr(*columns)


def texts(first: int, last: int) -> list[str]:
    return sorted(str(number) for number in range(first, last + 1))


def assert_refused_alike(sinks: Sinks, table: DataFrame, core: str, **options: str) -> None:
    """Hold the words of our stream against those of the JVM connector's, which has ``core``."""
    line = refusal(lambda: sinks.write_stream(table, **options))
    theirs = root_cause(failure(lambda: sinks.write_stream(table, PEER, **options)))
    assert core in theirs
    assert theirs in line


@peer(STREAMING, "streaming - write to kafka with topic field", Held.SPARK)
def test_streaming_write_to_kafka_with_topic_field(
    spark: SparkSession, sinks: Sinks, topics: Topics
) -> None:
    """A stream writes rows to the topic of their column, batch after batch."""
    topic = topics.create(2)
    sinks.write_stream(numbers(spark, 1, 5, topic))
    assert sinks.values(topic) == texts(1, 5)
    sinks.write_stream(numbers(spark, 6, 10, topic))
    assert sinks.values(topic) == texts(1, 10)


@peer(STREAMING, "streaming - write w/o topic field, with topic option", Held.SPARK)
def test_streaming_write_without_topic_field_with_topic_option(
    spark: SparkSession, sinks: Sinks, topics: Topics
) -> None:
    """A stream of rows that name no topic writes them to the option's."""
    topic = topics.create(2)
    sinks.write_stream(numbers(spark, 1, 5), topic=topic)
    assert sinks.values(topic) == texts(1, 5)
    sinks.write_stream(numbers(spark, 6, 10), topic=topic)
    assert sinks.values(topic) == texts(1, 10)


@peer(STREAMING, "streaming - topic field and topic option", Held.SPARK)
def test_streaming_topic_field_and_topic_option(
    spark: SparkSession, sinks: Sinks, topics: Topics
) -> None:
    """The option overrides the column."""
    topic = topics.create(2)
    sinks.write_stream(numbers(spark, 1, 5, "foo"), topic=topic)
    assert sinks.values(topic) == texts(1, 5)


@peer(STREAMING, "streaming - write data with bad schema", Held.SPARK)
@one_client
def test_streaming_write_data_with_bad_schema(
    spark: SparkSession, sinks: Sinks, topics: Topics
) -> None:
    """A stream without a topic, or without values, is refused in the same words."""
    table = numbers(spark, 1, 5)
    assert_refused_alike(sinks, table, "topic option required when no 'topic' attribute is present")
    keys = table.selectExpr("value as key")
    assert_refused_alike(sinks, keys, "Required attribute 'value' not found", topic=topics.create())


@peer(STREAMING, "streaming - write data with valid schema but wrong types", Held.SPARK)
@pytest.mark.parametrize(
    ("columns", "core"),
    [
        (("1 as topic", "value"), "topic must be a(n) string"),
        (("'t' as topic", "1 as value"), "value must be a(n) string or binary"),
        (("'t' as topic", "value", "1 as key"), "key must be a(n) string or binary"),
        (("'t' as topic", "value", "value as partition"), "partition must be a(n) int"),
    ],
    ids=["topic", "value", "key", "partition"],
)
@one_client
def test_streaming_write_data_with_valid_schema_but_wrong_types(
    spark: SparkSession, sinks: Sinks, columns: tuple[str, ...], core: str
) -> None:
    """A column of a type that makes no record is refused in the same words."""
    assert_refused_alike(sinks, numbers(spark, 1, 5).selectExpr(*columns), core)


@peer(STREAMING, "streaming - write to non-existing topic", Held.BESIDE_JVM)
def test_streaming_write_to_non_existing_topic(
    spark: SparkSession, sinks: Sinks, fresh_name: Callable[[], str]
) -> None:
    """A topic that no broker creates fails the stream's first task; its words are our own."""
    options = {"topic": fresh_name(), "kafka__max__block__ms": "500"}
    line = refusal(lambda: sinks.write_stream(numbers(spark, 1, 5), **options))
    assert line.startswith(f"[KAFKA_UNKNOWN_TOPIC] Topic '{options['topic']}' does not exist at ")
    theirs = failure(lambda: sinks.write_stream(numbers(spark, 1, 5), PEER, **options))
    assert f"Topic {options['topic']} not present in metadata after 500 ms" in str(theirs)


@peer(STREAMING, "streaming - exception on config serializer", Held.SPARK)
@pytest.mark.parametrize("setting", ["key__serializer", "value__serializer"])
@one_client
def test_streaming_exception_on_config_serializer(
    spark: SparkSession, sinks: Sinks, setting: str
) -> None:
    """No serializer can be chosen, in the same words."""
    option = {f"kafka__{setting}": "foo"}
    core = f"Kafka option '{setting.replace('__', '.')}' is not supported"
    assert_refused_alike(sinks, numbers(spark, 1, 5), core, topic="t", **option)


@peer("KafkaSinkMicroBatchStreamingSuite", "streaming - sink progress is produced", Held.BESIDE_JVM)
@one_client
def test_streaming_sink_progress_is_produced(
    spark: SparkSession, sinks: Sinks, topics: Topics
) -> None:
    """A query's progress says how many rows its sink was given, as for the JVM connector's."""
    for sink in (OURS, PEER):
        query = sinks.write_stream(numbers(spark, 1, 3), sink, topic=topics.create())
        progress = query.lastProgress
        assert progress is not None
        assert progress["sink"]["numOutputRows"] == 3


@peer(BATCH, "batch - write to kafka", Held.BESIDE_JVM)
def test_batch_write_to_kafka(spark: SparkSession, sinks: Sinks, topics: Topics) -> None:
    """Keys, values and headers arrive, null ones and duplicate names as well."""
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
def test_batch_partition_column_and_partitioner_priorities(
    spark: SparkSession, sinks: Sinks, topics: Topics
) -> None:
    """The column precedes a custom partitioner, which precedes the keys; null counts as unset."""
    partitioner = f"{__name__}:{constant_partitions.__name__}"
    keyed = "cast(id as string) as key", "cast(id as string) as value"
    one, some = "cast(1 as int) as partition", "cast(if(id < 5, 1, null) as int) as partition"

    def partitions(*columns: str, sink: str = OURS, **options: str) -> dict[int, int]:
        topic = topics.create(4)
        sinks.write(spark.range(10).selectExpr(*columns), sink, topic=topic, **options)
        return {int(row.value or b""): row.partition for row in sinks.stored(topic)}

    by_key = partitions(*keyed, sink=PEER)
    assert set(by_key.values()) != {1}
    assert set(by_key.values()) != {CONSTANT}
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
def test_batch_null_topic_field_value_and_no_topic_option(
    spark: SparkSession, sinks: Sinks
) -> None:
    """A row that names no topic fails the query, in the same words and with their condition."""
    table = spark.range(1).selectExpr("cast(null as string) as topic", "'a' as value")
    line = refusal(lambda: sinks.write(table))
    theirs = root_cause(failure(lambda: sinks.write(table, PEER)))
    assert line.startswith("[KAFKA_NULL_TOPIC_IN_DATA] ")
    assert theirs in line


@peer(BATCH, "SPARK-20496: batch - enforce analyzed plans", Held.SPARK)
@one_client
def test_spark_20496_batch_enforce_analyzed_plans(
    spark: SparkSession, sinks: Sinks, topics: Topics
) -> None:
    """A plan that analysis has changed is written as it was meant."""
    topic = topics.create()
    sinks.write(spark.range(1, 1_000).selectExpr("to_json(struct(*)) as value"), topic=topic)
    assert sinks.values(topic) == sorted(f'{{"id":{number}}}' for number in range(1, 1_000))


@peer("KafkaSinkBatchSuiteV1", "batch - unsupported save modes", Held.SPARK)
@one_client
def test_batch_unsupported_save_mode_that_reaches_us(
    spark: SparkSession, kafka: KafkaCluster, client: str
) -> None:
    """Overwriting, which Spark leaves to Python's sources, is refused in the V1 sink's words."""
    writer = numbers(spark, 1, 5).write.format(OURS).options(**kafka.options).option("topic", "t")
    assert refusal(writer.option("client", client).mode("overwrite").save) == (
        "[KAFKA_SAVE_MODE] Save mode Overwrite not allowed for Kafka. "
        "Allowed save modes are Append and ErrorIfExists (default)."
    )


@peer("KafkaSinkBatchSuiteV2", "batch - unsupported save modes", Held.SPARK)
@pytest.mark.parametrize("mode", ["ignore", "errorifexists"])
@one_client
def test_batch_unsupported_save_modes(
    spark: SparkSession, kafka: KafkaCluster, client: str, mode: str
) -> None:
    """Spark itself refuses the others, in the V2 sink's words."""
    writer = numbers(spark, 1, 5).write.format(OURS).options(**kafka.options).option("topic", "t")
    with pytest.raises(Exception, match=rf'(?i)cannot be written in the "{mode}" mode'):
        writer.option("client", client).mode(mode).save()


@peer("KafkaSinkBatchSuiteV2", "generic - write big data with small producer buffer", Held.SPARK)
@pytest.mark.parametrize("kind", ["batch", "micro-batch"])
def test_generic_write_big_data_with_small_producer_buffer(
    spark: SparkSession, sinks: Sinks, topics: Topics, kind: str
) -> None:
    """A task whose records do not fit into the buffer waits for brokers, and does not fail."""
    topic = topics.create(1)
    write = sinks.write if kind == "batch" else sinks.write_stream
    table = spark.range(1_000).selectExpr("repeat(string(id % 10), 15000) as value")
    write(
        table,
        topic=topic,
        kafka__buffer__memory="16384",
        kafka__max__block__ms="60000",
    )
    stored = sinks.stored(topic)
    assert len(stored) == 1_000
    assert {row.value for row in stored} == {b"%d" % number * 15_000 for number in range(10)}


@peer("KafkaMicroBatchSourceSuiteBase", "async progress tracking", Held.BESIDE_JVM)
def test_async_progress_tracking(
    spark: SparkSession, sinks: Sinks, topics: Topics, tmp_path: Path
) -> None:
    """A stream of ours whose progress is written behind its back reads on where it was.

    Spark has such streams write to the JVM connector's sink only, or to none.
    """
    origin, copy = topics.create(5), topics.create(5)
    for run in range(2):
        topics.numbers(origin, run, range(10 * run, 10 * run + 10))
        query = (
            read_stream(
                spark,
                sinks.kafka,
                OURS,
                client=sinks.client,
                subscribe=origin,
                startingOffsets="earliest",
            )
            .writeStream.format(PEER)
            .options(topic=copy, asyncProgressTrackingEnabled="true", **sinks.kafka.options)
            .option("asyncProgressTrackingCheckpointIntervalMs", "0")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .start()
        )
        try:
            query.processAllAvailable()
            wanted = [str(number) for number in range(10 * run + 10)]
            await_until(lambda wanted=wanted: sinks.values(copy) == sorted(wanted))  # type: ignore[misc]
        finally:
            query.stop()
