"""Continuous queries as Spark jobs, on the real broker."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from pyspark_kafka import continuous
from pyspark_kafka.brokers import KafkaCluster
from pyspark_kafka.ports.continuous import RecordFunction
from pyspark_kafka.testing.world import await_until

from .queries import OURS, read, read_stream
from .topics import Topics


def keep(records: pa.RecordBatch) -> pa.RecordBatch:
    return records.select(["key", "value", "partition"])


class Pipeline:
    """Queries between two topics, with one checkpoint."""

    def __init__(
        self, spark: SparkSession, kafka: KafkaCluster, topics: Topics, client: str, directory: Path
    ) -> None:
        self.spark, self.kafka, self.topics = spark, kafka, topics
        self.client = client
        self.checkpoint = str(directory / "checkpoint")
        self.source, self.sink = topics.create(2), topics.create(3)
        self.queries: list[continuous.ContinuousQuery] = []

    def start(
        self, function: RecordFunction = keep, guarantee: str = "at-least-once", **options: str
    ) -> continuous.ContinuousQuery:
        common = {**self.kafka.options, "client": self.client}
        query = continuous.start(
            self.spark,
            function,
            source={
                **common,
                "subscribe": self.source,
                "startingOffsets": "earliest",
                "failOnDataLoss": "true",
            },
            sink={**common, "topic": self.sink, "deliveryGuarantee": guarantee},
            checkpointLocation=self.checkpoint,
            epoch="200 milliseconds",
            tasks=1,
            **options,  # type: ignore[arg-type]
        )
        self.queries.append(query)
        return query

    def written(self) -> list[int]:
        rows = read(
            self.spark,
            self.kafka,
            OURS,
            subscribe=self.sink,
            kafka__isolation__level="read_committed",
        ).selectExpr("cast(cast(value as string) as int) as number")
        return sorted(row.number for row in rows.collect())

    def stop(self) -> None:
        for query in self.queries:
            query.stop()


@pytest.fixture
def pipeline(spark, kafka, topics, client, tmp_path):
    pipeline = Pipeline(spark, kafka, topics, client, tmp_path)
    yield pipeline
    pipeline.stop()


@pytest.mark.parametrize(
    ("client", "guarantee"),
    [
        ("confluent", "at-least-once"),
        ("kafka-python", "at-least-once"),
        ("kafka-python", "exactly-once"),
    ],
)
def test_records_go_through_a_function_to_another_topic(pipeline, guarantee):
    pipeline.topics.numbers(pipeline.source, 0, range(10))
    query = pipeline.start(guarantee=guarantee)
    query.processAllAvailable()
    pipeline.topics.numbers(pipeline.source, 1, range(10, 20))
    query.processAllAvailable()
    query.stop()
    assert query.exception() is None
    pipeline.topics.numbers(pipeline.source, 1, range(20, 30))
    pipeline.start(guarantee=guarantee).processAllAvailable()
    assert pipeline.written() == list(range(30))


def test_a_micro_batch_query_takes_the_checkpoint_over_and_gives_it_back(pipeline):
    """Spark's own engine reads and writes the same logs."""
    pipeline.topics.numbers(pipeline.source, 0, range(10))
    query = pipeline.start()
    query.processAllAvailable()
    query.stop()
    pipeline.topics.numbers(pipeline.source, 0, range(10, 20))
    stream = read_stream(
        pipeline.spark,
        pipeline.kafka,
        OURS,
        client=pipeline.client,
        subscribe=pipeline.source,
        startingOffsets="earliest",
    )
    micro_batch = (
        stream.select("key", "value")
        .writeStream.format(OURS)
        .options(**pipeline.kafka.options, topic=pipeline.sink, client=pipeline.client)
        .option("checkpointLocation", pipeline.checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    assert micro_batch.awaitTermination(120)
    assert micro_batch.id == query.id
    pipeline.topics.numbers(pipeline.source, 0, range(20, 30))
    pipeline.start().processAllAvailable()
    assert pipeline.written() == list(range(30))


def test_a_function_that_raises_ends_the_query_with_one_clear_line(pipeline):
    def fail(_: pa.RecordBatch) -> None:
        raise ValueError("no such order")

    pipeline.topics.numbers(pipeline.source, 1, range(3))
    query = pipeline.start(fail)
    with pytest.raises(Exception, match="no such order") as raised:
        query.awaitTermination(120)
    assert str(raised.value) == (
        "[KAFKA_FUNCTION_FAILED] The function of the continuous query failed for topic "
        f"{pipeline.source} partition 1 offsets [0, 3): ValueError: no such order. Correct the "
        "function, or catch the error in it; the query then continues with these records."
    )


def test_tasks_reach_the_driver_through_files(pipeline):
    pipeline.topics.numbers(pipeline.source, 0, range(10))
    query = pipeline.start(channel="directory")
    query.processAllAvailable()
    assert pipeline.written() == list(range(10))


def test_more_tasks_than_slots_are_refused(pipeline):
    query = continuous.start(
        pipeline.spark,
        keep,
        source={
            **pipeline.kafka.options,
            "client": pipeline.client,
            "subscribe": pipeline.topics.create(100),
        },
        sink={**pipeline.kafka.options, "client": pipeline.client, "topic": pipeline.sink},
        checkpointLocation=pipeline.checkpoint,
        tasks=100,
    )
    with pytest.raises(Exception, match=r"KAFKA_NOT_ENOUGH_SLOTS.*100 tasks.*are missing"):
        query.awaitTermination(60)


class Opened:
    """A context that a task enters, with a file that shows it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __call__(self) -> AbstractContextManager[RecordFunction]:
        from contextlib import contextmanager

        @contextmanager
        def context() -> Iterator[RecordFunction]:
            self._path.write_text("opened")
            yield keep
            self._path.write_text("closed")

        return context()


def test_a_factory_opens_and_closes_what_a_function_needs(pipeline, tmp_path):
    told = tmp_path / "told"
    pipeline.topics.numbers(pipeline.source, 0, range(5))
    query = pipeline.start(None, factory=Opened(told))
    query.processAllAvailable()
    assert told.read_text() == "opened"
    query.stop()
    await_until(lambda: told.read_text() == "closed")
    assert pipeline.written() == list(range(5))
