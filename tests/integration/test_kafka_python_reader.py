"""State that the reader keeps from one range to the next."""

from collections.abc import Callable, Iterator

import pytest

from pyspark_kafka.adapters.kafka_python.broker_requests import BrokerRequests
from pyspark_kafka.adapters.kafka_python.cluster_metadata import ClusterMetadata
from pyspark_kafka.adapters.kafka_python.connections import FetchConnection
from pyspark_kafka.domain.reading.ranges import OffsetRange
from pyspark_kafka.domain.reading.records import Projection
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.ports.reading import RecordReader
from pyspark_kafka.testing import KafkaWorld, Record

RECORDS = 50_000
VALUES = Projection(("offset", "value"))


@pytest.fixture
def world(fresh_name, kafka):
    made = KafkaWorld("kafka-python", fresh_name, kafka)
    yield made
    made.close()


@pytest.fixture
def partition(world):
    made = TopicPartition(world.topic(), 0)
    world.produce(made, [Record(b"%d" % offset) for offset in range(RECORDS)])
    return made


def read(reader: RecordReader, partition: TopicPartition, start: int, end: int) -> Iterator[int]:
    for batch in reader.read(OffsetRange(partition, start, end), VALUES):
        for row in batch.to_pylist():
            assert row["value"] == b"%d" % row["offset"]
            yield row["offset"]


def test_ranges_by_turns(world, partition):
    reader = world.container(kafka__max__partition__fetch__bytes="100000").record_reader()
    one, two = read(reader, partition, 0, 25_000), read(reader, partition, 20_000, RECORDS)
    turns = [(next(one), next(two)) for _ in range(25_000)]
    assert turns == [(offset, 20_000 + offset) for offset in range(25_000)]
    assert list(two) == list(range(45_000, RECORDS))


def test_a_warm_reader(world, partition, monkeypatch):
    """A reader that has read a partition neither connects for it nor asks who leads it again."""
    reader = world.container().record_reader()
    assert list(read(reader, partition, 0, 10)) == list(range(10))
    monkeypatch.setattr(BrokerRequests, "_open", None)
    monkeypatch.setattr(ClusterMetadata, "refresh", None)
    assert list(read(reader, partition, 10, RECORDS)) == list(range(10, RECORDS))


def test_small_ranges_of_several_topics_are_fetched_by_one_request(world, monkeypatch):
    """One request for metadata a task finds their leaders."""
    partitions = [TopicPartition(world.topic(), 0) for _ in range(6)]
    for partition in partitions:
        world.produce(partition, [Record(b"%d" % offset) for offset in range(10)])
    requests: list[str] = []
    for owner, method in ((ClusterMetadata, "refresh"), (FetchConnection, "send")):
        monkeypatch.setattr(owner, method, _counted(owner, method, requests))
    reader = world.container().record_reader()
    for task in (partitions[:3], partitions[3:]):
        reader.expect([OffsetRange(partition, 0, 10) for partition in task])
        for partition in task:
            assert list(read(reader, partition, 0, 10)) == list(range(10))
        reader.expect([])
    assert requests == ["refresh", "send"] * 2


def _counted(owner: type, method: str, requests: list[str]) -> Callable[..., object]:
    call = getattr(owner, method)

    def counted(*arguments: object, **named: object) -> object:
        requests.append(method)
        return call(*arguments, **named)

    return counted
