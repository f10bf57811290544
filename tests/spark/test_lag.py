"""The lag of queries in Spark: the listener, and the command on a checkpoint."""

import json
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import pyspark_kafka
from pyspark_kafka.adapters.spark.lag_listener import LagListener
from pyspark_kafka.brokers import KafkaCluster
from pyspark_kafka.domain.lag.lag import QueryLag
from tests.slowness import bound_s

from ..integration.commands import running
from .queries import OURS, PEER, read_stream

SECONDS = int(bound_s(60))


@contextmanager
def listening(spark: SparkSession, listener: LagListener) -> Iterator[LagListener]:
    spark.streams.addListener(listener)
    try:
        yield listener
    finally:
        spark.streams.removeListener(listener)
        listener.close()


def start(stream: DataFrame, name: str, checkpoint: Path | None = None) -> StreamingQuery:
    writer = stream.writeStream.format("noop").queryName(name).trigger(availableNow=True)
    if checkpoint is not None:
        writer = writer.option("checkpointLocation", str(checkpoint))
    return writer.start()


def follow(listener: LagListener, query: StreamingQuery) -> list[QueryLag]:
    lags = list(listener.lags(query, SECONDS))
    assert not query.isActive
    assert query.exception() is None
    return lags


@pytest.mark.parametrize("source", [OURS, PEER])
def test_a_listener_gives_the_lag_of_each_batch(spark, kafka, topics, source):
    topic = topics.create(2)
    topics.numbers(topic, 0, range(20))
    topics.numbers(topic, 1, range(10))
    stream = read_stream(
        spark, kafka, source, subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger="15"
    )
    with listening(spark, pyspark_kafka.lag_listener()) as listener:
        lags = follow(listener, start(stream, topic))
    assert [lag.lag.total for lag in lags] == [15, 0]
    assert [(lag.batch_id, lag.name, lag.is_exact) for lag in lags] == [
        (0, topic, False),
        (1, topic, True),
    ]
    [first] = lags[0].sources.values()
    assert [(each.consumed, each.latest) for each in first.partitions] == [(10, 20), (5, 10)]
    assert not [thread for thread in threading.enumerate() if thread.name == "pyspark-kafka-lag"]


def aborted_records(kafka: KafkaCluster, topic: str, records: int) -> None:
    producer = Producer(
        {"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": topic, "log_level": 0}
    )
    producer.init_transactions(SECONDS)
    producer.begin_transaction()
    for _ in range(records):
        producer.produce(topic, b"aborted")
    assert producer.flush(SECONDS) == 0
    producer.abort_transaction(SECONDS)


@pytest.mark.parametrize("source", [OURS, PEER])
def test_a_listener_counts_records(spark, kafka, topics, client, source):
    topic = topics.create()
    topics.numbers(topic, 0, range(5))
    aborted_records(kafka, topic, 3)
    committed = {**kafka.options, "kafka.isolation.level": "read_committed"}
    stream = read_stream(
        spark,
        kafka,
        source,
        subscribe=topic,
        startingOffsets="earliest",
        maxOffsetsPerTrigger="5",
        kafka__isolation__level="read_committed",
    )
    counted = pyspark_kafka.lag_listener(
        source_options={**committed, "client": client, "subscribePattern": "x"}, queries=[topic]
    )
    with (
        listening(spark, pyspark_kafka.lag_listener()) as plain,
        listening(spark, counted) as counting,
    ):
        query = start(stream, topic)
        assert [lag.lag.total for lag in follow(plain, query)] == [4, 0]
        lags = follow(counting, query)
    assert [(lag.lag.total, lag.is_exact) for lag in lags] == [(0, True), (0, True)]


def test_sources_of_one_query_are_separate(spark, kafka, topics):
    ours, theirs = topics.create(), topics.create(2)
    for topic in (ours, theirs):
        topics.numbers(topic, 0, range(4))
    other = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", "1").load()
    options = {"startingOffsets": "earliest"}
    stream = (
        other.selectExpr("CAST(CAST(value AS STRING) AS BINARY) AS value")
        .union(read_stream(spark, kafka, OURS, subscribe=ours, **options).select("value"))
        .union(read_stream(spark, kafka, PEER, subscribe=theirs, **options).select("value"))
    )
    with listening(spark, pyspark_kafka.lag_listener()) as listener:
        query = stream.writeStream.format("noop").start()
        try:
            lag = next(listener.lags(query, SECONDS))
        finally:
            query.stop()
    read = {name: str(source.partitions[0].partition) for name, source in lag.sources.items()}
    assert sorted(read.values()) == sorted([f"{ours}-0", f"{theirs}-0"])
    assert "0" not in read


@contextmanager
def watched(kafka: KafkaCluster, checkpoint: str) -> Iterator[Callable[..., dict[str, Any]]]:
    arguments = ("--checkpoint", checkpoint, "--bootstrap-servers", kafka.bootstrap_servers)
    with running("lag", *arguments, "--json", "--interval", "0.2") as started:

        def look(**wanted: object) -> dict[str, Any]:
            def is_wanted(line: str) -> bool:
                lag = json.loads(line)["lag"] or {}
                return all(lag.get(name) == value for name, value in wanted.items())

            return json.loads(started.await_line(is_wanted))

        yield look
        assert started.end(signal.SIGINT) == 0
        assert not started.errors


@pytest.mark.parametrize("source", [OURS, PEER])
def test_the_command_watches_a_checkpoint(spark, kafka, topics, tmp_path, source):
    topic = topics.create(2)
    topics.numbers(topic, 0, range(10))
    checkpoint = tmp_path / "checkpoint"
    stream = read_stream(spark, kafka, source, subscribe=topic, startingOffsets="earliest")

    def read() -> None:
        assert start(stream, topic, checkpoint).awaitTermination(SECONDS)

    read()
    with watched(kafka, str(checkpoint)) as look:
        assert look(total=0)["committedBatch"]["id"] == 0
        topics.numbers(topic, 1, range(7))
        assert [each["lag"] for each in look(total=7)["partitions"]] == [0, 7]
        kafka.add_partitions(topic, 3)
        topics.numbers(topic, 2, range(1_500))
        behind = look(total=1_507, exact=False)
        assert [each["exact"] for each in behind["partitions"]] == [True, True, False]
        read()
        caught_up = look(total=0, exact=True)
        assert caught_up["committedBatch"]["id"] > 0
        assert [each["consumed"] for each in caught_up["partitions"]] == [10, 7, 1_500]
