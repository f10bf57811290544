"""KafkaDontFailOnDataLossSuite: queries that start with records that have aged out."""

import json
import time
from dataclasses import replace
from typing import Final

import pytest
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.testing import KafkaWorld, await_until
from tests.spark.queries import OURS, PEER, read, read_stream

from .continuous_runs import SECONDS, Runs, numbered
from .peer import Held, peer
from .side_by_side import JvmSource, outcome, read_jvm, sql_conf

SUITE = "KafkaDontFailOnDataLossSuite"
NO_DUPLICATES = "failOnDataLoss=false should not return duplicated records"

AGED_OUT, LEFT = range(40), list(range(40, 50))

DISABLED: Final = "spark.sql.streaming.disabledV2MicroBatchReaders"
PROVIDER: Final = "org.apache.spark.sql.kafka010.KafkaSourceProvider"


@pytest.fixture(scope="module")
def aged_out(kafka, fresh_name):
    world = KafkaWorld("kafka-python", fresh_name, kafka)
    # A segment is deleted as a whole: each record, of about 70 bytes, has its own.
    topic = world.topic(retention__ms="3600000", internal__segment__bytes="100")
    part = TopicPartition(topic, 0)
    now = time.time_ns() // 1_000_000
    for record in numbered(AGED_OUT):
        world.produce(part, [record])
    for record in numbered(LEFT):
        world.produce(part, [replace(record, timestamp=now)])
    fetcher = world.container().offset_fetcher()
    await_until(lambda: fetcher.earliest([part])[part] == LEFT[0], SECONDS)
    yield {
        "subscribe": topic,
        "startingOffsets": json.dumps({topic: {"0": 0}}),
        "kafka__metadata__max__age__ms": "1",
        "kafkaConsumer__pollTimeoutMs": "1000",
    }
    world.close()


def numbers(table: DataFrame) -> list[int]:
    return sorted(int(row["value"]) for row in table.select("value").collect())


def assert_failed(answers: list[object], topic: str) -> None:
    expected = f"Could not read records in offset [0, 50) for topic partition {topic}-0"
    for answer in answers:
        assert isinstance(answer, Exception)
        assert "Some data may have been lost" in str(answer)
        assert expected in str(answer)


@peer(SUITE, f"{NO_DUPLICATES}: batch v1", Held.BESIDE_JVM)
@peer(SUITE, f"{NO_DUPLICATES}: batch v2", Held.BESIDE_JVM)
def test_a_batch(spark, kafka, aged_out, client):
    def answers(flag: str) -> list[object]:
        options = {**aged_out, "failOnDataLoss": flag}
        return [
            outcome(lambda: numbers(read(spark, kafka, OURS, client=client, **options))),
            *(
                outcome(lambda source=source: numbers(read_jvm(spark, kafka, source, **options)))  # type: ignore[misc]
                for source in JvmSource
            ),
        ]

    assert answers("false") == [LEFT] * 3
    assert_failed(answers("true"), aged_out["subscribe"])


@peer(SUITE, f"{NO_DUPLICATES}: microbatch v1", Held.BESIDE_JVM)
@peer(SUITE, f"{NO_DUPLICATES}: microbatch v2", Held.BESIDE_JVM)
def test_micro_batches(spark, kafka, aged_out, client, fresh_name):
    """A stream that may lose data reads what is left, once; another one fails.

    Of the JVM connector both the V2 source runs and, with the setting, V1.
    """

    def run(source: str, disabled: str, kind: str, flag: str) -> list[int]:
        chosen = {"client": client} if source == OURS else {}
        options = {**aged_out, "failOnDataLoss": flag, **chosen}
        with sql_conf(spark, DISABLED, disabled):
            query = to_memory(read_stream(spark, kafka, source, **options), fresh_name())
        try:
            query.processAllAvailable()
        finally:
            query.stop()
        assert query.lastProgress is not None
        assert kind in query.lastProgress["sources"][0]["description"]
        return numbers(spark.table(query.name))

    def answers(flag: str) -> list[object]:
        return [
            outcome(lambda: run(OURS, "", "Python", flag)),
            outcome(lambda: run(PEER, PROVIDER, "KafkaSourceV1", flag)),
            outcome(lambda: run(PEER, "", "KafkaV2", flag)),
        ]

    assert answers("false") == [LEFT] * 3
    assert_failed(answers("true"), aged_out["subscribe"])


@peer(SUITE, f"{NO_DUPLICATES}: continuous processing", Held.BESIDE_JVM)
def test_continuous_processing(spark, kafka, world, aged_out, tmp_path):
    """A continuous query that may lose data reads what is left, once.

    The JVM connector's is a query of Spark's continuous mode, and ours of this library's.
    """
    options = {**aged_out, "failOnDataLoss": "false"}
    runs = Runs(spark, world, tmp_path)

    def ours() -> list[int]:
        with runs.query(**options) as query:
            await_until(lambda: LEFT[-1] in runs.numbers() or not query.isActive, SECONDS)
        return runs.numbers()

    def theirs() -> list[int]:
        query = to_memory(
            read_stream(spark, kafka, PEER, **options),
            world.fresh_name(),
            continuous="100 milliseconds",
        )
        table = spark.table(query.name)
        try:
            await_until(lambda: LEFT[-1] in numbers(table) or not query.isActive, SECONDS)
        finally:
            query.stop()
        return numbers(table)

    assert [outcome(ours), outcome(theirs)] == [LEFT] * 2


def to_memory(stream: DataFrame, name: str, **trigger: str) -> StreamingQuery:
    """Write the values of a stream to a table in memory, as Spark's own test does."""
    texts = stream.selectExpr("cast(value as string) as value")
    writer = texts.writeStream.format("memory").queryName(f"values_{name}")
    return (writer.trigger(**trigger) if trigger else writer).start()
