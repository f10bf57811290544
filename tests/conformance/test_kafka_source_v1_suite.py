"""KafkaMicroBatchV1SourceSuite: what the legacy source does, batch for batch, without Spark."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from pyspark_kafka.adapters.checkpoints.metadata_log import FsspecMetadataLog
from pyspark_kafka.adapters.memory.clock import MemoryClock
from pyspark_kafka.application.reading.kafka_source import KafkaSource
from pyspark_kafka.application.reading.micro_batch_execution import MicroBatchExecution
from pyspark_kafka.bootstrap.container import container_for
from pyspark_kafka.domain.checkpoints.storage_path import StoragePath
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.source import parse_source_options
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.reading.admission import ReadAllAvailable
from pyspark_kafka.domain.reading.ranges import OffsetRange
from pyspark_kafka.domain.reading.records import Projection
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.testing import KafkaWorld, Record

from .peer import Held, peer
from .start_offsets import STARTS, STRATEGIES, filled, write

BASE = "KafkaMicroBatchSourceSuiteBase"
VALUE = Projection(("value",))


class Run:
    """One life of a driver: a source whose batches are numbers, over logs in a directory."""

    def __init__(self, world: KafkaWorld, directory: Path, **options: str) -> None:
        given = {
            **world.addresses,
            "client": world.client,
            "startingOffsets": "earliest",
            "fetchOffset.retryIntervalMs": "20",
            "kafkaConsumer.pollTimeoutMs": "10000",
            "metadataPath": str(directory / "sources" / "0"),
            **options,
        }
        self.container = container_for(parse_source_options(given, QueryKind.STREAM))
        self.clock = MemoryClock(now_ms=3_600_000)
        self.container.clock.override(self.clock)
        self.batches: list[list[int]] = []
        self.source: KafkaSource[list[int]] = self.container.kafka_source(self._load)
        offsets, commits = (
            FsspecMetadataLog(StoragePath(str(directory / name))) for name in ("offsets", "commits")
        )
        self.execution = MicroBatchExecution(
            self.source, offsets, commits, lambda batch, _number: self.batches.append(batch)
        )

    def to_end(self) -> list[list[int]]:
        while self.execution.run_batch():
            pass
        return self.batches

    def _load(self, ranges: Sequence[OffsetRange]) -> list[int]:
        return [
            int(row["value"])
            for planned in ranges
            for batch in self.container.range_read().read(planned, VALUE)
            for row in batch.to_pylist()
        ]


@contextmanager
def run(world: KafkaWorld, directory: Path, **options: str) -> Iterator[Run]:
    made = Run(world, directory, **options)
    yield made
    made.source.stop()
    made.container.shutdown_resources()


def sized(world: KafkaWorld, *counts: int) -> str:
    topic = world.topic(len(counts))
    for partition, count in enumerate(counts):
        write(world, topic, partition, *range(1000 * partition, 1000 * partition + count))
    return topic


@peer(BASE, "maxOffsetsPerTrigger", Held.EMBEDDED)
def test_max_offsets_per_trigger(world, tmp_path):
    topic = sized(world, 101, 11, 1)
    with run(world, tmp_path, subscribe=topic, maxOffsetsPerTrigger="10") as driver:
        assert driver.execution.run_batch()
        assert driver.execution.run_batch()
        assert driver.batches == [[*range(8), 1000, 2000], [*range(8, 17), 1001]]
        rest = driver.source.latest_offset(None, ReadAllAvailable())
        assert rest == _offsets(topic, 101, 11, 1)


@peer(BASE, "Trigger.AvailableNow", Held.EMBEDDED)
def test_trigger_available_now(world, tmp_path):
    topic = sized(world, 15)
    with run(world, tmp_path, subscribe=topic, maxOffsetsPerTrigger="5") as driver:
        driver.source.prepare_for_trigger_available_now()
        while driver.execution.run_batch():
            write(world, topic, 0, 99)
        assert driver.batches == [list(range(5)), list(range(5, 10)), list(range(10, 15))]


@peer(
    "KafkaSourceSuiteBase",
    "SPARK-53560: no crash looping during uncommitted batch retry in AvailableNow trigger",
    Held.EMBEDDED,
)
def test_spark_53560_an_uncommitted_batch_is_run_again(world, tmp_path):
    topic = sized(world, 4)
    with run(world, tmp_path, subscribe=topic, maxOffsetsPerTrigger="3") as driver:
        driver.execution = MicroBatchExecution(
            driver.source, _log(tmp_path, "offsets"), _log(tmp_path, "commits"), _crash
        )
        with pytest.raises(CrashError):
            driver.execution.run_batch()
    world.add_partitions(topic, 2)
    write(world, topic, 1, 50)
    with run(world, tmp_path, subscribe=topic, maxOffsetsPerTrigger="3") as driver:
        driver.source.prepare_for_trigger_available_now()
        assert driver.to_end() == [[0, 1, 2], [3, 50]]


@peer(BASE, "read Kafka transactional messages: read_committed", Held.EMBEDDED)
def test_read_committed(world, tmp_path):
    topic = world.topic()
    for commit, numbers in ((True, range(5)), (False, range(6, 11)), (True, range(12, 17))):
        with world.transaction(commit=commit) as write_in:
            write_in(TopicPartition(topic, 0), [Record(str(number).encode()) for number in numbers])
    options = {"maxOffsetsPerTrigger": "3", "kafka.isolation.level": "read_committed"}
    with run(world, tmp_path, subscribe=topic, **options) as driver:
        assert driver.to_end() == [[0, 1, 2], [3, 4], [], [], [12, 13, 14], [15, 16]]


@peer(
    "KafkaDontFailOnDataLossSuite",
    "failOnDataLoss=false should not return duplicated records: microbatch v1",
    Held.EMBEDDED,
)
def test_fail_on_data_loss_false_returns_no_duplicates(world, tmp_path):
    topic = sized(world, 10)
    part = TopicPartition(topic, 0)
    options = {"subscribe": topic, "failOnDataLoss": "false", "maxOffsetsPerTrigger": "20"}
    with run(world, tmp_path, **options) as driver:
        assert driver.to_end() == [list(range(10))]
        write(world, topic, 0, *range(10, 40))
        world.delete_records(part, 15)
        assert driver.to_end() == [list(range(10)), list(range(15, 30)), list(range(30, 40))]
    write(world, topic, 0, *range(40, 50))
    world.delete_records(part, 45)
    with run(world, tmp_path, **options) as driver:
        assert driver.to_end() == [list(range(45, 50))]


@pytest.mark.parametrize("start", STARTS)
def test_a_source_begins_at_its_offsets(world, start, tmp_path):
    begin = STARTS[start]
    topic = filled(world, begin)
    options = {**STRATEGIES["subscribing topic by name"](topic), **begin.options(topic)}
    with run(world, tmp_path, **options) as driver:
        assert sorted(driver.to_end()[0]) == sorted(begin.first)
    write(world, topic, 0, 7, 8)
    world.add_partitions(topic, 6)
    write(world, topic, 5, 9)
    with run(world, tmp_path, **options) as driver:
        assert driver.to_end() == [[7, 8, 9]]


class CrashError(RuntimeError):
    """What takes a driver down."""


def _crash(_batch: list[int], _number: int) -> None:
    raise CrashError


def _log(directory: Path, name: str) -> FsspecMetadataLog:
    return FsspecMetadataLog(StoragePath(str(directory / name)))


def _offsets(topic: str, *offsets: int) -> PartitionOffsets:
    return PartitionOffsets(
        (TopicPartition(topic, number), offset) for number, offset in enumerate(offsets)
    )
