import logging
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from pyspark_kafka.adapters.confluent import record_reader
from pyspark_kafka.adapters.confluent.consumer_handle import ConsumerHandle, FetchQueue
from pyspark_kafka.adapters.confluent.range_consumer import MAX_AHEAD
from pyspark_kafka.adapters.confluent.record_reader import ConfluentRecordReader
from pyspark_kafka.brokers.settings import free_ports
from pyspark_kafka.domain.errors import BrokerUnreachableError, OptionsError
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.source import parse_source_options
from pyspark_kafka.domain.reading.ranges import OffsetRange
from pyspark_kafka.domain.reading.records import ALL_COLUMNS, Projection
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.testing import KafkaWorld, Record, await_until

from .processes import succeeds_in_child, threads

RECORDS = 40_000
OFFSETS = Projection(("offset",))
ANY = TopicPartition("t", 0)
SECRET = "not-to-be-seen"  # noqa: S105


@pytest.fixture
def client():
    return "confluent"


@pytest.fixture
def partition(world):
    partition = TopicPartition(world.topic(), 0)
    world.produce(partition, [Record(b"v%d" % number) for number in range(RECORDS)])
    return partition


def reader_of(world: KafkaWorld, **options: str) -> ConfluentRecordReader:
    return world.container(**options).record_reader()


def unreachable(options: dict[str, str] | None = None) -> ConfluentRecordReader:
    [port] = free_ports(1)
    given = {
        "kafka.bootstrap.servers": f"127.0.0.1:{port}",
        "client": "confluent",
        "subscribe": "t",
        "kafka.default.api.timeout.ms": "1000",
        "kafkaConsumer.pollTimeoutMs": "100",
        **(options or {}),
    }
    return ConfluentRecordReader(parse_source_options(given, QueryKind.BATCH))


def offsets(batches: Iterable[pa.RecordBatch]) -> list[int]:
    return [row["offset"] for batch in batches for row in batch.to_pylist()]


def test_two_iterators_take_turns(world, partition):
    reader = reader_of(world)
    ranges = OffsetRange(partition, 0, RECORDS), OffsetRange(partition, 10, RECORDS - 10)
    iterators = [reader.read(each, OFFSETS) for each in ranges]
    read: list[list[int]] = [[], []]
    while any(read[i][-1:] != [ranges[i].until_offset - 1] for i in (0, 1)):
        for i in (0, 1):
            batch = next(iterators[i], None)
            read[i] += offsets([] if batch is None else [batch])
    assert read == [list(range(each.from_offset, each.until_offset)) for each in ranges]


def test_an_iterator_does_not_outlive_its_reader(world, partition):
    reader = reader_of(world)
    iterator = reader.read(OffsetRange(partition, 0, RECORDS), OFFSETS)
    next(iterator)
    reader.close()
    with pytest.raises(RuntimeError, match="closed"):
        next(iterator)


def test_a_reader_that_is_dropped_gives_back_its_threads(world, partition):
    """Neither a reader nor an iterator has to be closed by hand."""
    before = threads()
    reader = ConfluentRecordReader(world.options())
    iterator = reader.read(OffsetRange(partition, 0, RECORDS), OFFSETS)
    next(iterator)
    assert threads() > before
    del reader, iterator
    # The thread that closed them ends a moment later.
    await_until(lambda: threads() <= before)


def test_a_reader_reads_on_in_a_child_and_in_its_parent(world, partition):
    """A fork makes a new handle, and leaves the parent's alone."""
    reader = reader_of(world)
    wanted = OffsetRange(partition, 0, RECORDS)
    iterator = reader.read(wanted, OFFSETS)
    next(iterator)

    def reads_on() -> bool:
        nonlocal iterator
        reader.read(wanted, OFFSETS)
        is_whole = offsets(reader.read(wanted, OFFSETS)) == list(range(RECORDS))
        reader.close()
        del iterator
        return is_whole

    assert succeeds_in_child(reads_on)
    assert offsets(iterator)[-1] == RECORDS - 1


@pytest.fixture
def fetches(monkeypatch):
    """Return a list to which the number of fetches is added when one starts or is stopped."""
    running = [0]
    started, stopped = ConsumerHandle.start, ConsumerHandle.stop

    def start(handle: ConsumerHandle, *arguments: Any) -> FetchQueue:
        running.append(running[-1] + 1)
        return started(handle, *arguments)

    def stop(handle: ConsumerHandle, fetch: FetchQueue) -> None:
        running.append(running[-1] - 1)
        stopped(handle, fetch)

    monkeypatch.setattr(ConsumerHandle, "start", start)
    monkeypatch.setattr(ConsumerHandle, "stop", stop)
    return running


@pytest.fixture
def small_ranges(world):
    """Return ranges of more partitions than are fetched ahead, some with large records."""
    topic = world.topic(2 * MAX_AHEAD)
    partitions = [TopicPartition(topic, number) for number in range(2 * MAX_AHEAD)]
    for partition in partitions:
        size = 100_000 if partition.partition in (3, 4) else 10
        world.produce(partition, [Record(bytes(size))] * 20)
    return [OffsetRange(partition, 0, 15) for partition in partitions]


def test_small_ranges_are_fetched_ahead(world, small_ranges, fetches):
    reader = reader_of(world)
    for ranges in (small_ranges, small_ranges[::5]):
        reader.expect(small_ranges)
        for one in ranges:
            assert offsets(reader.read(one, OFFSETS)) == list(range(15))
        assert max(fetches) == 1 + MAX_AHEAD
        reader.expect([])
        assert fetches[-1] == 0
    reader.expect(small_ranges)
    assert offsets(reader.read(small_ranges[0], OFFSETS)) == list(range(15))
    reader.close()
    assert offsets(reader.read(small_ranges[1], OFFSETS)) == list(range(15))


def test_large_ranges_are_fetched_one_by_one(world, small_ranges, fetches, monkeypatch):
    monkeypatch.setattr(record_reader, "MAX_OFFSETS", 14)
    reader = reader_of(world)
    ranges = [small_ranges[0], replace(small_ranges[1], until_offset=14), small_ranges[2]]
    reader.expect(ranges)
    for one in ranges:
        assert offsets(reader.read(one, OFFSETS)) == list(range(one.size))
    assert max(fetches) == 1


def test_a_record_may_be_larger_than_a_column(world):
    partition = TopicPartition(world.topic(max__message__bytes="20000000"), 0)
    sizes = [10, 900_000, 900_000, 900_000, 10]
    world.produce(partition, [Record(bytes(size), bytes(7)) for size in sizes])
    batches = list(reader_of(world).read(OffsetRange(partition, 0, len(sizes)), ALL_COLUMNS))
    assert [len(row["value"]) for batch in batches for row in batch.to_pylist()] == sizes


def test_why_no_broker_is_reached_is_said(capfd):
    reader = unreachable()
    with pytest.raises(BrokerUnreachableError, match="Connection refused"):
        list(reader.read(OffsetRange(ANY, 0, 1), OFFSETS))
    reader.close()
    assert capfd.readouterr().err == ""


def test_lines_of_librdkafka_reach_the_logger(caplog, capfd):
    reader = unreachable(
        {
            "kafka.debug": "all",
            "kafka.security.protocol": "SASL_PLAINTEXT",
            "kafka.sasl.mechanism": "PLAIN",
            "kafka.sasl.username": "me",
            "kafka.sasl.password": SECRET,
        }
    )
    with (
        caplog.at_level(logging.DEBUG, logger="pyspark_kafka.librdkafka"),
        pytest.raises(BrokerUnreachableError),
    ):
        list(reader.read(OffsetRange(ANY, 0, 1), OFFSETS))
    reader.close()
    levels = {record.levelno for record in caplog.records}
    assert logging.DEBUG in levels
    assert "CONNECT [rdkafka#consumer-" in caplog.text
    assert SECRET not in caplog.text
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    "setting",
    [
        {"kafka.debug": "nothing"},
        {"kafka.fetch.error.backoff.ms": "soon"},
        {"kafka.fetch.wait.max.ms": "-1"},
        {"kafka.security.protocol": "sasl_plaintext", "kafka.sasl.mechanism": "X"},
    ],
    ids=lambda setting: next(reversed(setting)),
)
def test_a_setting_that_is_refused_is_an_error_of_options(setting):
    with pytest.raises(OptionsError, match="The client 'confluent'"):
        unreachable(setting).read(OffsetRange(ANY, 0, 1), OFFSETS)
