"""KafkaMicroBatchV1SourceSuite: what the legacy source does, batch for batch, without Spark."""

import json
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
from pyspark_kafka.domain.errors import MetadataLogError
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.source import parse_source_options
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.reading.admission import ReadAllAvailable
from pyspark_kafka.domain.reading.available_now import EndBeyondLatestError, LostPartitionsError
from pyspark_kafka.domain.reading.errors import DataLossError
from pyspark_kafka.domain.reading.ranges import OffsetRange
from pyspark_kafka.domain.reading.records import Projection
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.testing import KafkaWorld, Record
from tests.spark.queries import PEER, read_stream

from .peer import Held, peer
from .start_offsets import STARTS, STRATEGIES, filled, write
from .stream_runs import run_once

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


@peer(BASE, "minOffsetsPerTrigger", Held.EMBEDDED)
def test_min_offsets_per_trigger(world, tmp_path):
    topic = sized(world, 4, 1)
    limits = {"minOffsetsPerTrigger": "15", "maxTriggerDelay": "5s"}
    with run(world, tmp_path, subscribe=topic, **limits) as driver:
        assert driver.execution.run_batch()
        write(world, topic, 0, *range(10, 16))
        assert not driver.execution.run_batch()
        write(world, topic, 1, *range(20, 29))
        assert driver.execution.run_batch()
        write(world, topic, 0, 30)
        assert not driver.execution.run_batch()
        driver.clock.sleep_ms(5_000)
        assert driver.execution.run_batch()
        assert driver.batches == [[0, 1, 2, 3, 1000], [*range(10, 16), *range(20, 29)], [30]]
        write(world, topic, 0, 31)
        last = driver.source.latest_offset(None, ReadAllAvailable())
        assert last == _offsets(topic, 12, 10)


@peer(BASE, "compositeReadLimit", Held.EMBEDDED)
def test_composite_read_limit(world, tmp_path):
    topic = sized(world, 21, 11, 1)
    limits = {
        "minOffsetsPerTrigger": "15",
        "maxOffsetsPerTrigger": "20",
        "maxTriggerDelay": "5s",
    }
    with run(world, tmp_path, subscribe=topic, **limits) as driver:
        assert [len(batch) for batch in driver.to_end()] == [19]
        driver.clock.sleep_ms(5_000)
        assert [len(batch) for batch in driver.to_end()] == [19, 14]


@peer(BASE, "Trigger.AvailableNow", Held.EMBEDDED)
def test_trigger_available_now(world, tmp_path):
    topic = sized(world, 15)
    with run(world, tmp_path, subscribe=topic, maxOffsetsPerTrigger="5") as driver:
        driver.source.prepare_for_trigger_available_now()
        while driver.execution.run_batch():
            write(world, topic, 0, 99)
        assert driver.batches == [list(range(5)), list(range(5, 10)), list(range(10, 15))]


@peer(
    BASE,
    "Query with Trigger.AvailableNow should throw error when topic partitions got unavailable "
    "during subsequent batches",
    Held.EMBEDDED,
)
def test_available_now_when_partitions_got_unavailable(world, tmp_path):
    topic = sized(world, *[15] * 5)
    with run(world, tmp_path, subscribe=topic, maxOffsetsPerTrigger="5") as driver:
        driver.source.prepare_for_trigger_available_now()
        assert driver.execution.run_batch()
        world.delete_topic(topic)
        world.create(topic, 3)
        with pytest.raises(LostPartitionsError, match="have been lost during running query with"):
            driver.execution.run_batch()


@peer(
    BASE,
    "Query with Trigger.AvailableNow should throw error when offset(s) in planned topic partitions "
    "got unavailable during subsequent batches",
    Held.EMBEDDED,
)
def test_available_now_when_offsets_got_unavailable(world, tmp_path):
    topic = sized(world, 15)
    with run(world, tmp_path, subscribe=topic, maxOffsetsPerTrigger="5") as driver:
        driver.source.prepare_for_trigger_available_now()
        assert driver.execution.run_batch()
        world.delete_topic(topic)
        world.create(topic, 1)
        write(world, topic, 0, 0, 1, 2)
        with pytest.raises(EndBeyondLatestError, match="available offset which is less than end"):
            driver.execution.run_batch()


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


@peer(
    BASE,
    (
        "SPARK-26718 Rate limit set to Long.Max should not overflow integer during end offset "
        "calculation"
    ),
    Held.EMBEDDED,
)
def test_spark_26718_rate_limit_of_long_max(world, tmp_path):
    topic = sized(world, 10)
    options = {
        "startingOffsets": json.dumps({topic: {"0": 5}}),
        "maxOffsetsPerTrigger": str(2**63 - 1),
    }
    with run(world, tmp_path, subscribe=topic, **options) as driver:
        assert driver.to_end() == [list(range(5, 10))]


@peer(
    BASE,
    "SPARK-22956: currentPartitionOffsets should be set when no new data comes in",
    Held.EMBEDDED,
)
def test_spark_22956_current_offsets_without_new_data(world, tmp_path):
    topic = sized(world, 8)
    limit = {"subscribe": topic, "maxOffsetsPerTrigger": "5"}
    with run(world, tmp_path, **limit) as driver:
        assert driver.to_end() == [list(range(5)), list(range(5, 8))]
    with run(world, tmp_path, **limit) as driver:
        assert driver.to_end() == []
        write(world, topic, 0, *range(8, 15))
        assert driver.to_end() == [list(range(8, 13)), [13, 14]]


@peer(BASE, "subscribe topic by pattern with topic recreation between batches", Held.EMBEDDED)
def test_topic_recreation_between_batches(world, tmp_path):
    topic = sized(world, 2, 2)
    options = {"subscribePattern": f"^{topic}$"}
    with run(world, tmp_path, **options) as driver:
        assert driver.to_end() == [[0, 1, 1000, 1001]]
    world.delete_topic(topic)
    world.create(topic, 2)
    write(world, topic, 0, 0)
    write(world, topic, 1, *range(5))
    with (
        run(world, tmp_path, **options) as driver,
        pytest.raises(DataLossError, match="was changed from 2 to 1"),
    ):
        driver.to_end()
    with run(world, tmp_path, failOnDataLoss="false", **options) as driver:
        assert driver.to_end() == [[2, 3, 4]]


@peer(BASE, "SPARK-41375: empty partitions should not record to latest offset", Held.EMBEDDED)
def test_spark_41375_empty_partitions(world, tmp_path):
    topic = sized(world, 3)
    options = {"subscribePattern": f"^{topic}$", "failOnDataLoss": "false"}
    with run(world, tmp_path, **options) as driver:
        assert driver.to_end() == [[0, 1, 2]]
        world.delete_topic(topic)
        assert driver.to_end() == [[0, 1, 2]]
    with run(world, tmp_path, **options) as driver:
        assert driver.to_end() == []
    assert _log(tmp_path, "offsets").batch_ids() == [0]


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


def test_a_start_that_is_not_held(world, tmp_path):
    topic = sized(world, 10)
    world.delete_records(TopicPartition(topic, 0), 4)
    options = {"subscribe": topic, "startingOffsets": json.dumps({topic: {"0": 2}})}
    with (
        run(world, tmp_path, **options) as driver,
        pytest.raises(DataLossError, match=f"for {topic}-0 was 2 but consumer reset to 4"),
    ):
        driver.to_end()
    with run(world, tmp_path, failOnDataLoss="false", **options) as driver:
        assert driver.to_end() == [list(range(4, 10))]


BOTH = pytest.mark.parametrize("kind", ["KafkaSource", "KafkaMicroBatchStream"])


@BOTH
@peer(
    BASE,
    "ensure that initial offset are written with an extra byte in the beginning (SPARK-19517)",
    Held.EMBEDDED,
)
def test_initial_offsets_have_an_extra_byte(world, spark, kafka, kind, tmp_path):
    topic = sized(world, 3, 1)
    run_once(
        read_stream(spark, kafka, PEER, subscribe=topic, startingOffsets="latest"),
        tmp_path / "theirs",
    )
    theirs = (tmp_path / "theirs" / "checkpoint" / "sources" / "0" / "0").read_bytes()
    _initial(world, kind, tmp_path / "ours", subscribe=topic, startingOffsets="latest")
    ours = (tmp_path / "ours" / "sources" / "0" / "0").read_bytes()
    assert ours[0] == 0
    assert ours == theirs


@BOTH
@peer(BASE, "deserialization of initial offset written by Spark 2.1.0 (SPARK-19517)", Held.EMBEDDED)
def test_initial_offsets_of_spark_2_1_0(world, kind, tmp_path):
    topic = sized(world, 3, 1)
    text = json.dumps({topic: {"0": 1, "1": 0}}, separators=(",", ":")).encode()
    _write_initial(tmp_path, bytes([len(text)]) + text)
    found = _initial(world, kind, tmp_path, subscribe=topic, startingOffsets="latest")
    assert found == _offsets(topic, 1, 0)


@BOTH
@peer(BASE, "deserialization of initial offset written by future version", Held.EMBEDDED)
def test_initial_offsets_of_a_future_version(world, kind, tmp_path):
    topic = sized(world, 3)
    _write_initial(tmp_path, b"\0v99999\n{}")
    with pytest.raises(MetadataLogError) as caught:
        _initial(world, kind, tmp_path, subscribe=topic)
    assert "maximum supported log version is v1, but encountered v99999" in str(caught.value)
    assert "produced by a newer version of Spark and cannot be read by this version" in str(
        caught.value
    )


class CrashError(RuntimeError):
    """What takes a driver down."""


def _crash(_batch: list[int], _number: int) -> None:
    raise CrashError


def _initial(world: KafkaWorld, kind: str, directory: Path, **options: str) -> PartitionOffsets:
    with run(world, directory, **options) as driver:
        if kind == "KafkaSource":
            return driver.source.initial_partition_offsets
        return driver.container.micro_batch_stream().initial_offset()


def _write_initial(directory: Path, content: bytes) -> None:
    path = directory / "sources" / "0" / "0"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)


def _log(directory: Path, name: str) -> FsspecMetadataLog:
    return FsspecMetadataLog(StoragePath(str(directory / name)))


def _offsets(topic: str, *offsets: int) -> PartitionOffsets:
    return PartitionOffsets(
        (TopicPartition(topic, number), offset) for number, offset in enumerate(offsets)
    )
