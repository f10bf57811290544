"""Records that cannot be decoded, in Spark's queries and in their dead-letter topic."""

from typing import Any, Final

import pytest

import pyspark_kafka
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.domain.values.errors import BadRecordStats, FailureReason
from pyspark_kafka.testing import KafkaWorld, Record
from tests.slowness import bound_s

from .queries import OURS, read, read_stream, run_available_now

VALUES: Final = (b'{"id":1}', b'{"id":"one"}', b'{"id":3}', None, b"{", b'{"id":6}')
GOOD: Final = [1, 3, None, 6]
TYPED: Final = {"valueFormat": "json", "valueSchema": "id bigint"}
SECONDS: Final = bound_s(60)
ORIGIN: Final = "__connect.errors."


@pytest.fixture
def one_client(fresh_name, kafka):
    world = KafkaWorld("kafka-python", fresh_name, kafka)
    yield world
    world.close()


def topic_in(world: KafkaWorld) -> str:
    """Return a topic in which two of six values are bad; one is null."""
    topic = world.topic()
    records = [Record(value, b"%d" % number) for number, value in enumerate(VALUES)]
    world.produce(TopicPartition(topic, 0), records)
    return topic


def given(world: KafkaWorld, topic: str, **more: str) -> dict[str, str]:
    return {"client": world.client, "subscribe": topic, **TYPED, **more}


def letters_in(world: KafkaWorld, topic: str) -> list[tuple[dict[str, Any], dict[str, str]]]:
    return [
        (row, {pair["key"]: pair["value"].decode() for pair in row["headers"]})
        for row in world.records(TopicPartition(topic, 0))
    ]


def test_a_batch_query_writes_letters(spark, kafka, world):
    topic, letters = topic_in(world), world.topic()
    options = given(world, topic, deadLetterTopic=letters, includeOffset="false")
    rows = read(spark, kafka, OURS, **options).select("value.id").collect()
    assert [row.id for row in rows] == GOOD
    found = letters_in(world, letters)
    assert [(row["key"], row["value"]) for row, _ in found] == [
        (b"1", b'{"id":"one"}'),
        (b"4", b"{"),
    ]
    for (row, headers), offset in zip(found, (1, 4), strict=True):
        assert row["timestamp"].timestamp() == 1_700_000_000
        assert headers[f"{ORIGIN}topic"] == topic
        assert (headers[f"{ORIGIN}partition"], headers[f"{ORIGIN}offset"]) == ("0", str(offset))
        assert headers[f"{ORIGIN}connector.name"] == "pyspark-kafka"
        assert headers[f"{ORIGIN}task.id"] == "0"
        assert headers[f"{ORIGIN}class.name"].startswith("pyspark_kafka.adapters.values.json.")


def test_a_stream_writes_letters_and_the_driver_counts_them(spark, kafka, one_client, tmp_path):
    world, topic, letters = one_client, topic_in(one_client), one_client.topic()
    options = given(world, topic, deadLetterTopic=letters, startingOffsets="earliest")
    stream = read_stream(spark, kafka, OURS, **options).select("value.id")
    listener = pyspark_kafka.lag_listener(
        source_options={**kafka.options, "client": world.client}, dead_letter_topic=letters
    )
    spark.streams.addListener(listener)
    lags = listener.lags(timeout_seconds=SECONDS)
    try:
        rows = run_available_now(stream, tmp_path).collect()
        lag = next(lags)
    finally:
        spark.streams.removeListener(listener)
        listener.close()
    assert sorted((row.id for row in rows), key=str) == sorted(GOOD, key=str)
    assert [headers[f"{ORIGIN}connector.name"] for _, headers in letters_in(world, letters)] == [
        lag.query_id
    ] * 2
    reasons = {FailureReason.TYPE_MISMATCH: 1, FailureReason.TRUNCATED: 1}
    assert lag.bad_records == BadRecordStats(reasons, 2)
