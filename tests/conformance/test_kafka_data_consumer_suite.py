"""KafkaDataConsumerSuite: tasks that read through clients which a process keeps."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

import pytest

from pyspark_kafka.adapters.kafka_format.column_buffers import MAX_ROWS
from pyspark_kafka.bootstrap.container import Container
from pyspark_kafka.bootstrap.pool import ContainerPool
from pyspark_kafka.domain.errors import DataLossError, OffsetOutOfRangeError
from pyspark_kafka.domain.offset_range import OffsetRange
from pyspark_kafka.domain.options import QueryKind, SourceOptions, parse_source_options
from pyspark_kafka.domain.projection import Projection
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.testing import KafkaWorld, Record

from .peer import Held, peer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

SUITE = "KafkaDataConsumerSuite"

VALUE = Projection(("value",))


@pytest.fixture
def pool() -> Iterator[ContainerPool]:
    """Yield a pool for this test."""
    made = ContainerPool()
    yield made
    made.close()


@pytest.fixture
def partition(world: KafkaWorld) -> TopicPartition:
    """Return a partition with the numbers below 1,000."""
    made = TopicPartition(world.topic(), 0)
    world.produce(made, [Record(b"%d" % number) for number in range(1_000)])
    return made


def options(world: KafkaWorld, **given: str) -> SourceOptions:
    return parse_source_options(
        {
            **world.addresses,
            "client": world.client,
            "subscribe": "t",
            "kafkaConsumer.pollTimeoutMs": "30000",
            **given,
        },
        QueryKind.BATCH,
    )


def in_memory(**given: str) -> SourceOptions:
    return parse_source_options(
        {"kafka.bootstrap.servers": "memory", "client": "memory", "subscribe": "t", **given},
        QueryKind.BATCH,
    )


def numbers(batches: Iterable[pa.RecordBatch]) -> list[int]:
    return [int(row["value"]) for batch in batches for row in batch.to_pylist()]


def open_read(
    container: Container, partition: TopicPartition, start: int, end: int
) -> Iterator[pa.RecordBatch]:
    batches: Iterator[pa.RecordBatch] = container.range_read().read(
        OffsetRange(partition, start, end), VALUE
    )
    return batches


def read(container: Container, partition: TopicPartition, start: int, end: int) -> list[int]:
    return numbers(open_read(container, partition, start, end))


@peer(SUITE, "SPARK-19886: Report error cause correctly in throwOnDataLoss", Held.LIBRARY)
def test_spark_19886_report_error_cause_correctly(
    world: KafkaWorld, pool: ContainerPool, partition: TopicPartition
) -> None:
    """The failure of a query that lost data tells of the fetch that failed."""
    world.delete_records(partition, 10)
    with pytest.raises(DataLossError) as failed, pool.lease(options(world)) as container:
        read(container, partition, 0, 20)
    assert failed.value.sub_condition == "COULD_NOT_READ_OFFSET_RANGE"
    cause = failed.value.__cause__ or failed.value.__context__
    assert isinstance(cause, OffsetOutOfRangeError)
    assert (cause.offset, cause.earliest, cause.latest) == (0, 10, 1_000)


@peer(SUITE, "new KafkaDataConsumer instance in case of Task retry", Held.LIBRARY)
def test_new_instance_in_case_of_task_retry(
    world: KafkaWorld, pool: ContainerPool, partition: TopicPartition
) -> None:
    """A task that is tried again has a client that no failure has touched."""
    readers = []
    with suppress(ZeroDivisionError), pool.lease(options(world)) as container:
        readers.append(container.record_reader())
        assert numbers([next(open_read(container, partition, 0, 1_000))])[0] == 0
        _ = 1 / 0
    with pool.lease(options(world)) as container:
        readers.append(container.record_reader())
        assert read(container, partition, 0, 1_000) == list(range(1_000))
    assert readers[0] is not readers[1]


@peer(SUITE, "same KafkaDataConsumer instance in case of same token", Held.LIBRARY)
def test_same_instance_in_case_of_same_credentials(pool: ContainerPool) -> None:
    """The next task of a query that logs in as the last one did has its client."""
    readers = []
    for _task in range(2):
        with pool.lease(in_memory(**{"kafka.sasl.password": "one"})) as container:
            readers.append(container.record_reader())
    assert readers[0] is readers[1]


@peer(SUITE, "new KafkaDataConsumer instance in case of token renewal", Held.LIBRARY)
def test_new_instance_in_case_of_renewed_credentials(pool: ContainerPool) -> None:
    """A task with other credentials has a client of its own."""
    readers = []
    for password in ("one", "two"):
        with pool.lease(in_memory(**{"kafka.sasl.password": password})) as container:
            readers.append(container.record_reader())
    assert readers[0] is not readers[1]


@peer(SUITE, "SPARK-23623: concurrent use of KafkaDataConsumer", Held.LIBRARY)
def test_spark_23623_concurrent_use(
    world: KafkaWorld, pool: ContainerPool, partition: TopicPartition
) -> None:
    """Five hundred tasks on a hundred threads, some of which fail, read what they were given."""
    chance = random.Random(23623)  # noqa: S311  # no secret
    plans = [(chance.randrange(900), chance.random() < 0.1) for _use in range(500)]

    def use(plan: tuple[int, bool]) -> None:
        start, fails = plan
        with suppress(ZeroDivisionError), pool.lease(options(world)) as container:
            assert read(container, partition, start, start + 100) == [*range(start, start + 100)]
            _ = 1 / (0 if fails else 1)

    with ThreadPoolExecutor(100) as threads:
        assert len(list(threads.map(use, plans))) == 500


@peer(
    SUITE,
    "SPARK-25151 Handles multiple tasks in executor fetching same (topic, partition) pair",
    Held.LIBRARY,
)
def test_spark_25151_multiple_tasks_fetching_the_same_partition(
    world: KafkaWorld, pool: ContainerPool, partition: TopicPartition
) -> None:
    """Two tasks at two places of a partition, by turns, do not disturb one another."""
    with ExitStack() as leases:
        one, two = (leases.enter_context(pool.lease(options(world))) for _task in range(2))
        assert one.record_reader() is not two.record_reader()
        for step in range(0, 300, 100):
            assert read(one, partition, step, step + 100) == [*range(step, step + 100)]
            assert read(two, partition, 500 + step, 600 + step) == [*range(500 + step, 600 + step)]


@peer(
    SUITE,
    "SPARK-25151 Handles multiple tasks in executor fetching same (topic, partition) pair and "
    "same offset (edge-case) - data in use",
    Held.LIBRARY,
)
def test_spark_25151_the_same_offset_with_data_in_use(
    world: KafkaWorld, pool: ContainerPool, partition: TopicPartition
) -> None:
    """A task that begins where another stands in the middle of a read has every record too."""
    everything = [*range(2 * MAX_ROWS)]
    world.produce(partition, [Record(b"%d" % number) for number in everything[1_000:]])
    with pool.lease(options(world)) as one:
        batches = open_read(one, partition, 0, len(everything))
        first = numbers([next(batches)])
        assert len(first) < len(everything)
        with pool.lease(options(world)) as two:
            assert two.record_reader() is not one.record_reader()
            assert read(two, partition, 0, len(everything)) == everything
        assert first + numbers(batches) == everything


@peer(
    SUITE,
    "SPARK-25151 Handles multiple tasks in executor fetching same (topic, partition) pair and "
    "same offset (edge-case) - data not in use",
    Held.LIBRARY,
)
def test_spark_25151_the_same_offset_with_data_not_in_use(
    world: KafkaWorld, pool: ContainerPool, partition: TopicPartition
) -> None:
    """A restarted task with a client that has already read gets every record, too."""
    readers = []
    for _task in range(2):
        with pool.lease(options(world)) as container:
            readers.append(container.record_reader())
            assert read(container, partition, 0, 100) == [*range(100)]
    assert readers[0] is readers[1]
