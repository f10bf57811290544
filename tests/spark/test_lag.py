"""The lag of queries in Spark: the listener, and the command on a checkpoint."""

import json
import logging
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import fsspec
import pytest
from confluent_kafka import Producer
from prometheus_client import CollectorRegistry
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import pyspark_kafka
from pyspark_kafka import LagExporter, LoggingLagExporter, PrometheusLagExporter, continuous
from pyspark_kafka.adapters.spark.lag_listener import LagListener
from pyspark_kafka.brokers import KafkaCluster
from pyspark_kafka.domain.lag.lag import QueryLag

from ..integration.commands import running
from ..servers.s3 import S3Server
from .queries import OURS, PEER, read_stream

SECONDS = 60


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


class Failing(LagExporter):
    """Fails on every call."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def export(self, lag: QueryLag) -> None:
        self.told.append(lag.query_id)
        raise ZeroDivisionError

    def query_ended(self, query_id: str, run_id: str) -> None:
        self.told.append(f"{query_id} {run_id}")
        raise ZeroDivisionError


def test_exporters(spark, kafka, topics, caplog):
    topic, registry, failing = topics.create(), CollectorRegistry(), Failing()
    topics.numbers(topic, 0, range(5))
    exporters = (failing, PrometheusLagExporter(registry), LoggingLagExporter())
    stream = read_stream(spark, kafka, OURS, subscribe=topic, startingOffsets="earliest")
    labels = {"source": "0", "topic": topic, "partition": "0", "query": topic}
    caplog.set_level(logging.INFO, "pyspark_kafka")
    with listening(spark, pyspark_kafka.lag_listener(*exporters)) as listener:
        query = stream.writeStream.format("noop").queryName(topic).start()
        labels["query_id"] = str(query.id)
        lags = listener.lags(query, SECONDS)
        assert next(lags).lag.total == 0
        assert registry.get_sample_value("pyspark_kafka_lag", labels) == 0
        topics.numbers(topic, 0, range(5, 7))
        assert next(lags).lag.total == 0
        query.stop()
        assert all(lag.lag.total == 0 for lag in lags)
        assert query.exception() is None
        assert registry.get_sample_value("pyspark_kafka_lag", labels) is None
    assert len(failing.told) > 2
    assert failing.told[-1] == f"{query.id} {query.runId}"
    lines = [each.getMessage() for each in caplog.records if each.name == "pyspark_kafka.lag"]
    # Spark delivers events late: a new listener may still get an earlier query's events.
    ours = [line for line in lines if line.startswith(f"Query {topic} ")]
    assert ours[0].startswith(f"Query {topic} is 0 records behind after batch 0 ")


def test_an_ended_query_can_still_be_followed(spark, kafka, topics):
    topic = topics.create()
    topics.numbers(topic, 0, range(3))
    stream = read_stream(spark, kafka, OURS, subscribe=topic, startingOffsets="earliest")
    with listening(spark, pyspark_kafka.lag_listener()) as listener:
        query = start(stream, topic)
        assert query.awaitTermination(SECONDS)
        assert [lag.lag.total for lag in listener.lags(query)] == [0]
    with listening(spark, pyspark_kafka.lag_listener()) as late:
        assert list(late.lags(query, 0.5)) == []


@contextmanager
def watched(
    kafka: KafkaCluster, checkpoint: str, *more: str
) -> Iterator[Callable[..., dict[str, Any]]]:
    arguments = ("--checkpoint", checkpoint, "--bootstrap-servers", kafka.bootstrap_servers)
    with running("lag", *arguments, *more, "--json", "--interval", "0.2") as started:

        def look(**wanted: object) -> dict[str, Any]:
            def is_wanted(line: str) -> bool:
                lag = json.loads(line)["lag"] or {}
                return all(lag.get(name) == value for name, value in wanted.items())

            return json.loads(started.await_line(is_wanted))

        yield look
        assert started.end(signal.SIGINT) == 0
        assert not started.errors


class Storage:
    """The watched checkpoint: Spark's own, or a copy on S3."""

    def __init__(self, directory: Path, s3: S3Server | None) -> None:
        self._directory = directory
        self._s3 = s3
        self.url = str(directory) if s3 is None else f"s3a://{s3.new_bucket()}/queries/orders"

    @property
    def options(self) -> list[str]:
        if self._s3 is None:
            return []
        keys = self._directory.with_name("storage.json")
        keys.write_text(self._s3.storage_options)
        return ["--storage-options-file", str(keys)]

    def publish(self) -> None:
        """Copy the checkpoint in the order in which Spark writes it."""
        if self._s3 is None:
            return
        filesystem, path = fsspec.url_to_fs(self.url, **json.loads(self._s3.storage_options))
        for log in ("offsets", "commits"):
            for file in sorted((self._directory / log).iterdir()):
                filesystem.pipe_file(f"{path}/{log}/{file.name}", file.read_bytes())


@pytest.mark.parametrize("source", [OURS, PEER])
@pytest.mark.parametrize("is_on_s3", [False, True])
def test_the_command_watches_a_checkpoint(spark, kafka, topics, s3, tmp_path, source, is_on_s3):
    topic = topics.create(2)
    topics.numbers(topic, 0, range(10))
    storage = Storage(tmp_path / "checkpoint", s3 if is_on_s3 else None)
    stream = read_stream(spark, kafka, source, subscribe=topic, startingOffsets="earliest")

    def read() -> None:
        assert start(stream, topic, tmp_path / "checkpoint").awaitTermination(SECONDS)
        storage.publish()

    read()
    with watched(kafka, storage.url, *storage.options) as look:
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


def test_the_command_watches_the_checkpoint_of_a_continuous_query(kafka, topics, tmp_path, client):
    topic = topics.create(2)
    topics.numbers(topic, 0, range(10))
    query = continuous.start(
        None,
        lambda _records: None,
        source={
            **kafka.options,
            "client": client,
            "subscribe": topic,
            "startingOffsets": "earliest",
        },
        checkpointLocation=str(tmp_path),
    )
    try:
        query.processAllAvailable()
        with watched(kafka, str(tmp_path)) as look:
            first = look(total=0, exact=True)["committedBatch"]["id"]
            query.stop()
            topics.numbers(topic, 1, range(7))
            behind = look(total=7)
    finally:
        query.stop()
    assert [each["lag"] for each in behind["partitions"]] == [0, 7]
    assert behind["committedBatch"]["id"] >= first > 0
