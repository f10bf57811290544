"""FetchedDataPoolSuite: what a client that is used again makes of what it fetched before."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pyspark_kafka.bootstrap.container import Container
from pyspark_kafka.bootstrap.pool import ContainerPool
from pyspark_kafka.domain.offset_range import OffsetRange
from pyspark_kafka.domain.options import QueryKind, SourceOptions, parse_source_options
from pyspark_kafka.domain.projection import Projection
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.testing import KafkaWorld, Record

from .peer import Held, peer

if TYPE_CHECKING:
    from collections.abc import Iterator

SUITE = "FetchedDataPoolSuite"

ROWS = Projection(("value", "partition"))


@pytest.fixture
def pool() -> Iterator[ContainerPool]:
    """Yield a pool for this test."""
    made = ContainerPool()
    yield made
    made.close()


@pytest.fixture
def partitions(world: KafkaWorld) -> list[TopicPartition]:
    """Return three partitions with the numbers below 300 in each."""
    topic = world.topic(3)
    made = [TopicPartition(topic, number) for number in range(3)]
    for partition in made:
        world.produce(partition, [Record(b"%d" % number) for number in range(300)])
    return made


def options(world: KafkaWorld) -> SourceOptions:
    given = {"client": world.client, "subscribe": "t", "kafkaConsumer.pollTimeoutMs": "30000"}
    return parse_source_options({**world.addresses, **given}, QueryKind.BATCH)


def assert_reads(container: Container, partition: TopicPartition, start: int) -> None:
    """Read 30 offsets and look at what came."""
    batches = container.range_read().read(OffsetRange(partition, start, start + 30), ROWS)
    rows = [row for batch in batches for row in batch.to_pylist()]
    assert rows == [
        {"value": b"%d" % number, "partition": partition.partition}
        for number in range(start, start + 30)
    ]


@peer(SUITE, "acquire fetched data from multiple keys", Held.LIBRARY)
def test_acquire_fetched_data_from_multiple_keys(
    world: KafkaWorld, pool: ContainerPool, partitions: list[TopicPartition]
) -> None:
    """One client reads partitions by turns, and no record strays into another's range."""
    for start in range(0, 300, 30):
        for partition in partitions:
            with pool.lease(options(world)) as container:
                assert_reads(container, partition, start)


@peer(SUITE, "continuous use of fetched data from single key", Held.LIBRARY)
def test_continuous_use_of_fetched_data_from_single_key(
    world: KafkaWorld, pool: ContainerPool, partitions: list[TopicPartition]
) -> None:
    """Each task that reads on where the last one ended has the next records, through one client."""
    readers = set()
    for start in range(0, 300, 30):
        with pool.lease(options(world)) as container:
            readers.add(container.record_reader())
            assert_reads(container, partitions[0], start)
    assert len(readers) == 1


@peer(SUITE, "multiple tasks referring same key continuously using fetched data", Held.LIBRARY)
def test_multiple_tasks_referring_same_key_continuously_using_fetched_data(
    world: KafkaWorld, pool: ContainerPool, partitions: list[TopicPartition]
) -> None:
    """Two tasks at once read on in one partition, each from where it was."""
    for start in range(0, 150, 30):
        with pool.lease(options(world)) as one, pool.lease(options(world)) as two:
            assert_reads(one, partitions[0], start)
            assert_reads(two, partitions[0], start + 150)
