"""Python sources in Spark 4.0 and 4.1: these tests run in environments with them."""

from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from pyspark_kafka.adapters.spark.spark_api import HAS_READ_LIMITS
from pyspark_kafka.brokers import KafkaCluster

from .queries import OURS, read_stream, run_available_now
from .test_stream import numbers

pytestmark = pytest.mark.skipif(HAS_READ_LIMITS, reason="this Spark tells its trigger")

WRAPPER = "spark.sql.streaming.triggerAvailableNowWrapper.enabled"


def limited(spark: SparkSession, kafka: KafkaCluster, topic: str, **options: str) -> DataFrame:
    given = {"startingOffsets": "earliest", "allowLimitsWithoutTrigger": "true", **options}
    return read_stream(spark, kafka, OURS, subscribe=topic, **given)


@pytest.mark.parametrize(
    "limit", ["maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxBytesPerTrigger"]
)
def test_a_limit_is_refused_unless_it_is_allowed(spark, kafka, topics, tmp_path, limit):
    topic = topics.create()
    topics.numbers(topic, 0, range(10))
    stream = read_stream(
        spark, kafka, OURS, subscribe=topic, startingOffsets="earliest", **{limit: "3"}
    )
    with pytest.raises(StreamingQueryException, match=r"Spark 4\.2 or newer can.*'true'"):
        run_available_now(stream, tmp_path)
    assert not [*tmp_path.glob("checkpoint/offsets/*")]


def taking(
    stream: DataFrame, batches: list[tuple[int, list[int]]], directory: Path, failing: int = -1
) -> DataStreamWriter:
    def take(batch: DataFrame, number: int) -> None:
        batches.append((number, numbers(batch)))
        if number == failing:
            raise RuntimeError("killed")

    return stream.writeStream.foreachBatch(take).option("checkpointLocation", str(directory))


def test_limits_hold_over_a_restart(spark, kafka, topics, client, tmp_path):
    topic = topics.create()
    topics.numbers(topic, 0, range(1_000))
    stream = limited(spark, kafka, topic, client=client, maxOffsetsPerTrigger="300")
    batches: list[tuple[int, list[int]]] = []
    with pytest.raises(StreamingQueryException, match="killed"):
        taking(stream, batches, tmp_path, failing=2).start().processAllAvailable()
    query = taking(stream, batches, tmp_path).start()
    query.processAllAvailable()
    query.stop()
    starts = ((0, 0), (1, 300), (2, 600), (2, 600), (3, 900))
    assert batches == [
        (number, [*range(start, min(start + 300, 1_000))]) for number, start in starts
    ]


def test_available_now_repeats_a_failed_batch_and_ends(spark, kafka, topics, tmp_path):
    """Spark decides so; the next run reads what came after the failure."""
    topic = topics.create()
    topics.numbers(topic, 0, range(10))
    stream = read_stream(spark, kafka, OURS, subscribe=topic, startingOffsets="earliest")
    batches: list[tuple[int, list[int]]] = []
    with pytest.raises(StreamingQueryException, match="killed"):
        taking(stream, batches, tmp_path, 0).trigger(availableNow=True).start().awaitTermination()
    topics.numbers(topic, 0, range(10, 15))
    for _ in range(2):
        taking(stream, batches, tmp_path).trigger(availableNow=True).start().awaitTermination()
    assert batches == [(0, [*range(10)]), (0, [*range(10)]), (1, [*range(10, 15)])]


def test_available_now_ends_after_a_limited_batch_that_is_allowed(spark, kafka, topics, tmp_path):
    topic = topics.create()
    topics.numbers(topic, 0, range(25))
    stream = limited(spark, kafka, topic, maxOffsetsPerTrigger="10", maxBytesPerTrigger="1000000")
    for end in (10, 20, 25):
        assert numbers(run_available_now(stream, tmp_path)) == [*range(end)]


def test_a_limit_never_goes_back_with_sparks_wrapper(spark, kafka, topics, tmp_path):
    """The wrapper asks for the end before it passes the start: without limits it may."""
    topic = topics.create()
    topics.numbers(topic, 0, range(25))
    stream = limited(spark, kafka, topic)
    spark.conf.set(WRAPPER, "true")
    try:
        for end in (25, 40):
            assert numbers(run_available_now(stream, tmp_path / "all")) == [*range(end)]
            topics.numbers(topic, 0, range(25, 40))
        stream = limited(spark, kafka, topic, maxOffsetsPerTrigger="10")
        assert numbers(run_available_now(stream, tmp_path / "limited")) == [*range(10)]
        with pytest.raises(StreamingQueryException, match=f"'{WRAPPER}' is 'true'"):
            run_available_now(stream, tmp_path / "limited")
    finally:
        spark.conf.unset(WRAPPER)
