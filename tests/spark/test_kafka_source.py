"""The legacy source on Spark: batches as data frames, and a driver that goes down."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from pyspark_kafka.adapters.checkpoints.metadata_log import FsspecMetadataLog
from pyspark_kafka.application.reading.micro_batch_execution import MicroBatchExecution
from pyspark_kafka.bootstrap.container import container_for
from pyspark_kafka.bootstrap.spark import range_frames
from pyspark_kafka.domain.checkpoints.storage_path import StoragePath
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.source import SourceOptions, parse_source_options
from pyspark_kafka.domain.reading.ranges import OffsetRange
from pyspark_kafka.domain.topic_partition import TopicPartition

from .queries import OURS, PEER, assert_same_rows, read, read_stream

GivesOptions = Callable[..., SourceOptions]


@pytest.fixture
def options(kafka, client):
    def given(**raw: str) -> SourceOptions:
        return parse_source_options({**kafka.options, "client": client, **raw}, QueryKind.STREAM)

    return given


def numbers(table: DataFrame) -> list[int]:
    rows = table.selectExpr("cast(cast(value as string) as int) as number").collect()
    return sorted(row.number for row in rows)


def test_rows_are_those_of_the_jvm_connector(spark, kafka, topics, options):
    topic = topics.create(2)
    topics.fill(topic, {0: 30, 1: 6})
    parsed = options(subscribe=topic, includeHeaders="true", startingOffsets="earliest")
    container = container_for(parsed)
    source = container.kafka_source(range_frames(spark, parsed))
    end = source.get_offset()
    assert end is not None
    ours = source.get_batch(None, end)
    container.shutdown_resources()
    theirs = read(spark, kafka, PEER, subscribe=topic, includeHeaders="true")
    assert theirs.count() == 36
    assert_same_rows(ours, theirs)


def test_each_range_is_a_task(spark, topics, options):
    topic = topics.create(2)
    topics.fill(topic, {0: 10, 1: 4})
    ranges = [
        OffsetRange(TopicPartition(topic, number), start, end)
        for number, start, end in ((0, 0, 3), (0, 3, 10), (1, 1, 4))
    ]
    frame = range_frames(spark, options(subscribe=topic))(ranges)
    assert frame.rdd.getNumPartitions() == 3
    tasks = frame.selectExpr("spark_partition_id() as task", "partition", "offset").collect()
    assert [tuple(row) for row in tasks] == [
        (task, one.partition.partition, offset)
        for task, one in enumerate(ranges)
        for offset in range(one.from_offset, one.until_offset)
    ]


def test_no_ranges_are_an_empty_frame(spark, options):
    frame = range_frames(spark, options(subscribe="t", includeKey="false"))([])
    assert frame.collect() == []
    assert frame.columns == ["value", "topic", "partition", "offset", "timestamp", "timestampType"]


def test_a_task_that_fails_says_why(spark, kafka, topics, options):
    topic = topics.create(1)
    topics.fill(topic, {0: 9})
    kafka.delete_records({(topic, 0): 4})
    lost = OffsetRange(TopicPartition(topic, 0), 1, 9)
    with pytest.raises(Exception, match="COULD_NOT_READ_OFFSET_RANGE") as caught:
        range_frames(spark, options(subscribe=topic))([lost]).collect()
    text = str(caught.value)
    assert f"Could not read records in offset [1, 9) for topic partition {topic}-0" in text
    assert "During handling of" not in text
    assert "adapters/kafka_python" not in text
    assert "adapters/confluent" not in text


@dataclass
class Driver:
    """A driver that is restarted for every run, with a checkpoint in a directory."""

    spark: SparkSession
    options: GivesOptions
    topic: str
    directory: Path

    def run(self) -> None:
        with self._execution() as execution:
            while execution.run_batch():
                pass

    def log(self, *path: str) -> FsspecMetadataLog:
        return FsspecMetadataLog(StoragePath(str(self.directory.joinpath("checkpoint", *path))))

    def output(self) -> list[int]:
        return numbers(self.spark.read.parquet(str(self.directory / "output" / "*")))

    @contextmanager
    def _execution(self) -> Iterator[MicroBatchExecution[DataFrame]]:
        parsed = self.options(
            subscribe=self.topic,
            startingOffsets="earliest",
            maxOffsetsPerTrigger="8",
            metadataPath=str(self.directory / "checkpoint" / "sources" / "0"),
        )
        container = container_for(parsed)
        source = container.kafka_source(range_frames(self.spark, parsed))
        try:
            yield MicroBatchExecution(
                source, self.log("offsets"), self.log("commits"), self._process
            )
        finally:
            source.stop()
            container.shutdown_resources()

    def _process(self, batch: DataFrame, number: int) -> None:
        # By its number, a batch that is run again takes the place of its first run.
        batch.write.mode("overwrite").parquet(str(self.directory / "output" / str(number)))


def test_spark_takes_the_checkpoint_over(spark, kafka, topics, options, tmp_path):
    topic = topics.create(1)
    topics.numbers(topic, 0, range(10))
    driver = Driver(spark, options, topic, tmp_path)
    driver.run()
    # Apart from that, Spark wants only an id for the query.
    (tmp_path / "checkpoint" / "metadata").write_text(f'{{"id":"{uuid.uuid4()}"}}')
    batches: list[list[int]] = []
    for source, start in ((OURS, 10), (PEER, 15)):
        topics.numbers(topic, 0, range(start, start + 5))
        query = (
            read_stream(spark, kafka, source, subscribe=topic, startingOffsets="earliest")
            .writeStream.foreachBatch(lambda batch, _number: batches.append(numbers(batch)))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(120)
    assert [batch for batch in batches if batch] == [list(range(10, 15)), list(range(15, 20))]
    topics.numbers(topic, 0, range(20, 25))
    driver.run()
    assert driver.output() == [*range(10), *range(20, 25)]
