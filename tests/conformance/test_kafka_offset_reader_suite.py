"""KafkaOffsetReaderSuite: which ranges a query reads, and how offsets are learnt."""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from dependency_injector import providers

from pyspark_kafka.adapters.memory.clock import MemoryClock
from pyspark_kafka.application.reading.planner import KafkaBatch
from pyspark_kafka.domain.errors import KafkaRequestError, OptionsError
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.source import SourceOptions, parse_source_options
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.reading.ranges import OffsetRange
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.testing import KafkaWorld, Record

from .conftest import OpenContainer
from .jvm_connector import JvmConnector, JvmOffsetReader
from .one_client import one_client
from .peer import Held, peer
from .side_by_side import failure, last_cause
from .unsteady_fetcher import unsteady

SUITE = "KafkaOffsetReaderSuite"

FETCHERS = {True: "useDeprecatedOffsetFetching true", False: "useDeprecatedOffsetFetching false"}

both_fetchers = pytest.mark.parametrize("deprecated", FETCHERS, ids=FETCHERS.get)
"""The JVM connector's two ways to fetch offsets, which give the same answers."""


def peers(name: str) -> Callable[..., object]:
    def mark(test: Callable[..., object]) -> Callable[..., object]:
        for fetcher in FETCHERS.values():
            test = peer(SUITE, f"{name} with {fetcher}", Held.BESIDE_JVM)(test)
        return one_client(both_fetchers(test))

    return mark


def options(**given: str) -> SourceOptions:
    return parse_source_options(
        {"kafka.bootstrap.servers": "host:9092", "subscribe": "t", **given}, QueryKind.BATCH
    )


def tp(topic: str, partition: int = 0) -> TopicPartition:
    return TopicPartition(topic, partition)


def write(world: KafkaWorld, partition: TopicPartition, count: int) -> None:
    world.produce(partition, [Record(b"%d" % number) for number in range(count)])


def large_and_small(world: KafkaWorld) -> tuple[TopicPartition, TopicPartition]:
    """Return the partitions of a topic: the first has 100 records, the second 4."""
    topic = world.topic(2)
    large, small = tp(topic, 0), tp(topic, 1)
    write(world, large, 100)
    write(world, small, 4)
    return large, small


def batch_between(
    open_container: OpenContainer, start: PartitionOffsets, end: PartitionOffsets, tasks: int
) -> KafkaBatch:
    [topic] = {partition.topic for partition in start}
    return open_container(
        QueryKind.BATCH,
        subscribe=topic,
        startingOffsets=start.to_json(),
        endingOffsets=end.to_json(),
        minPartitions=str(tasks),
    ).batch()


@contextmanager
def their_reader(
    jvm: JvmConnector, world: KafkaWorld, strategy: Any, *, deprecated: bool = False, **given: str
) -> Iterator[JvmOffsetReader]:
    given = {"fetchOffset.retryIntervalMs": "1", **given}
    with jvm.offset_reader(strategy, world.addresses, deprecated=deprecated, **given) as reader:
        yield reader


def theirs_level(jvm: JvmConnector, level: str | None) -> str:
    given = {} if level is None else {"kafka.isolation.level": level}
    with jvm.offset_reader(jvm.subscribe(), {"kafka.bootstrap.servers": "h:1", **given}) as reader:
        return reader.isolation_level()


@pytest.mark.parametrize(
    ("level", "is_committed"),
    [
        pytest.param(
            level,
            level == "read_committed",
            marks=peer(SUITE, f"isolationLevel must give back {name} set", Held.BESIDE_JVM),
        )
        for level, name in (
            (None, "default isolation level when not"),
            ("read_uncommitted", "READ_UNCOMMITTED when"),
            ("read_committed", "READ_COMMITTED when"),
        )
    ],
)
def test_isolation_level(jvm, level, is_committed):
    given = {} if level is None else {"kafka.isolation.level": level}
    assert options(**given).reads_committed_only is is_committed
    assert theirs_level(jvm, level) == (level or "read_uncommitted")


@peer(SUITE, "isolationLevel must give back READ_COMMITTED when set", Held.BESIDE_JVM)
def test_partitions_end_as_their_isolation_level_says(jvm, world, open_container):
    partition = tp(world.topic())
    write(world, partition, 2)
    with world.transaction(commit=True) as send:
        send(partition, [Record(b"open")])
        for level, end in (("read_committed", 2), ("read_uncommitted", 3)):
            given = {"kafka.isolation.level": level}
            container = open_container(QueryKind.BATCH, subscribe=partition.topic, **given)
            assert container.offset_fetcher().latest([partition]) == {partition: end}
            strategy = jvm.subscribe(partition.topic)
            with jvm.offset_reader(strategy, {**world.addresses, **given}) as reader:
                assert reader.latest() == {partition: end}


@peer(
    SUITE, "isolationLevel must throw exception when invalid isolation level set", Held.BESIDE_JVM
)
def test_isolation_level_must_throw_exception_when_invalid_isolation_level_set(jvm):
    with pytest.raises(OptionsError) as refused:
        options(**{"kafka.isolation.level": "intentionally_invalid"})
    assert refused.value.problems == (
        (
            "Option 'kafka.isolation.level' must be 'read_uncommitted' or 'read_committed', "
            "got 'intentionally_invalid'"
        ),
    )
    theirs = failure(lambda: theirs_level(jvm, "intentionally_invalid"))
    assert "INTENTIONALLY_INVALID" in str(theirs)


@peers("SPARK-30656: getOffsetRangesFromUnresolvedOffsets - using specific offsets")
def test_spark_30656_unresolved_offsets_using_specific_offsets(
    jvm, world, open_container, deprecated
):
    partition = tp(world.topic())
    write(world, partition, 10)
    start, end = PartitionOffsets({partition: 1}), PartitionOffsets({partition: 4})
    batch = batch_between(open_container, start, end, 3)
    expected = [
        OffsetRange(partition, 1, 2),
        OffsetRange(partition, 2, 3),
        OffsetRange(partition, 3, 4),
    ]
    assert list(batch.plan_input_partitions()) == expected
    strategy = jvm.subscribe(partition.topic)
    with their_reader(jvm, world, strategy, deprecated=deprecated, minPartitions="3") as reader:
        assert reader.unresolved_ranges(jvm.specific(start), jvm.specific(end)) == expected


@peers("SPARK-30656: getOffsetRangesFromUnresolvedOffsets - using special offsets")
def test_spark_30656_unresolved_offsets_using_special_offsets(
    jvm, world, open_container, deprecated
):
    """Open ends are cut where the log is now, and stay open in the first and the last task."""
    partition = tp(world.topic())
    write(world, partition, 4)
    batch = open_container(QueryKind.BATCH, subscribe=partition.topic, minPartitions="3").batch()
    expected = [
        OffsetRange(partition, -2, 1),
        OffsetRange(partition, 1, 2),
        OffsetRange(partition, 2, -1),
    ]
    assert list(batch.plan_input_partitions()) == expected
    strategy = jvm.subscribe(partition.topic)
    with their_reader(jvm, world, strategy, deprecated=deprecated, minPartitions="3") as reader:
        assert reader.unresolved_ranges(jvm.earliest(), jvm.latest()) == expected


@peers("SPARK-48383: START_OFFSET_DOES_NOT_MATCH_ASSIGNED error class")
@pytest.mark.parametrize("specified", [2, 4])
def test_spark_48383_start_offset_does_not_match_assigned_error_class(
    jvm, world, open_container, deprecated, specified
):
    topic = world.topic(3)
    start = PartitionOffsets((tp(topic, number), -2) for number in range(specified))
    end = PartitionOffsets((tp(topic, number), -1) for number in range(specified))
    batch = batch_between(open_container, start, end, 4)
    limits = jvm.specific(start), jvm.specific(end)
    strategy = jvm.subscribe(topic)
    with their_reader(jvm, world, strategy, deprecated=deprecated, minPartitions="4") as reader:
        theirs = failure(lambda: reader.unresolved_ranges(*limits))
    assert_mismatch("KAFKA_START_OFFSET_DOES_NOT_MATCH_ASSIGNED", batch, theirs, topic, specified)


@peers("SPARK-30656: getOffsetRangesFromUnresolvedOffsets - multiple topic partitions")
def test_spark_30656_unresolved_offsets_multiple_topic_partitions(
    jvm, world, open_container, deprecated
):
    large, small = large_and_small(world)
    start, end = PartitionOffsets({large: -2, small: -2}), PartitionOffsets({large: -1, small: 3})
    batch = batch_between(open_container, start, end, 4)
    expected = [
        OffsetRange(large, -2, 33),
        OffsetRange(large, 33, 66),
        OffsetRange(large, 66, -1),
        OffsetRange(small, -2, 3),
    ]
    assert by_partition(batch.plan_input_partitions()) == expected
    strategy = jvm.subscribe(large.topic)
    with their_reader(jvm, world, strategy, deprecated=deprecated, minPartitions="4") as reader:
        found = reader.unresolved_ranges(jvm.specific(start), jvm.specific(end))
    assert by_partition(found) == expected


@peers("SPARK-30656: getOffsetRangesFromResolvedOffsets")
def test_spark_30656_get_offset_ranges_from_resolved_offsets(
    jvm, world, open_container, deprecated
):
    large, small = large_and_small(world)
    expected = [
        OffsetRange(large, 0, 33),
        OffsetRange(large, 33, 66),
        OffsetRange(large, 66, 100),
        OffsetRange(small, 0, 3),
    ]
    end = PartitionOffsets({large: 100, small: 3})
    strategy = jvm.subscribe(large.topic)
    with their_reader(jvm, world, strategy, deprecated=deprecated, minPartitions="4") as reader:
        for start in (PartitionOffsets({large: 0, small: 0}), PartitionOffsets({large: 0})):
            container = open_container(QueryKind.STREAM, subscribe=large.topic, minPartitions="4")
            planned = container.micro_batch_stream().plan_input_partitions(start, end)
            assert by_partition(planned) == expected
            assert by_partition(reader.resolved_ranges(start, end)) == expected


def by_partition(ranges: Iterable[OffsetRange]) -> list[OffsetRange]:
    return sorted(ranges, key=lambda one: one.partition)


def assert_mismatch(
    condition: str, batch: KafkaBatch, theirs: Exception, topic: str, specified: int
) -> str:
    """Compare our words with the last cause of the other, and return ours.

    The sets in the other's have an order of their own.
    """
    ours = str(failure(batch.plan_input_partitions))
    last = last_cause(theirs)
    assert last.getCondition() == condition
    text = re.sub(r"Set\((.*?)\)", in_order, last.getMessage())
    assert ours == f"[{condition}] {text}"
    names = ", ".join(f"{topic}-{number}" for number in range(specified))
    assert text.endswith(f"Specified: Set({names}) Assigned: Set({topic}-0, {topic}-1, {topic}-2)")
    return ours


def in_order(found: re.Match[str]) -> str:
    return f"Set({', '.join(sorted(found[1].split(', ')))})"


@pytest.mark.parametrize(
    ("specified", "deprecated"),
    [
        pytest.param(
            specified,
            deprecated,
            marks=peer(
                SUITE,
                "KAFKA_TIMESTAMP_OFFSET_DOES_NOT_MATCH_ASSIGNED error class - partitions "
                f"assigned: 3, specified: {specified} with {fetcher}",
                Held.BESIDE_JVM,
            ),
        )
        for specified in (2, 4)
        for deprecated, fetcher in FETCHERS.items()
    ],
)
@one_client
def test_timestamp_offset_does_not_match_assigned(
    jvm, world, open_container, deprecated, specified
):
    topic = world.topic(3)
    times = PartitionOffsets((tp(topic, number), 1_700_000_000_000) for number in range(specified))
    batch = open_container(
        QueryKind.BATCH,
        subscribe=topic,
        startingOffsetsByTimestamp=times.to_json(),
        endingOffsetsByTimestamp=times.to_json(),
        minPartitions="4",
    ).batch()
    limit = jvm.by_timestamp(times)
    strategy = jvm.subscribe(topic)
    with their_reader(jvm, world, strategy, deprecated=deprecated, minPartitions="4") as reader:
        theirs = failure(lambda: reader.unresolved_ranges(limit, limit))
    condition = "KAFKA_TIMESTAMP_OFFSET_DOES_NOT_MATCH_ASSIGNED"
    ours = assert_mismatch(condition, batch, theirs, topic, specified)
    assert "timestamp based start offsets" in ours


@peer(SUITE, "SPARK-55561: fetchPartitionOffsets retries on transient failures", Held.BESIDE_JVM)
@one_client
def test_spark_55561_fetch_partition_offsets_retries_on_transient_failures(
    jvm, world, open_container
):
    partition = tp(world.topic())
    container = open_container(QueryKind.BATCH, subscribe=partition.topic)
    ours = unsteady(container.offset_fetcher(), failures=2)
    with (
        container.offset_fetcher.override(providers.Object(ours)),
        container.clock.override(providers.Singleton(MemoryClock)),
    ):
        limit = container.options().starting_offsets
        assert container.offset_reader().unresolved(limit, "start") == {partition: -2}
    theirs = jvm.unsteady(jvm.subscribe(partition.topic), failures=2)
    with their_reader(jvm, world, theirs) as reader:
        assert reader.partition_offsets(jvm.earliest()) == {partition: -2}
    assert ours.partitions.call_count == theirs.calls == 3


@peer(
    SUITE, "SPARK-55561: fetchPartitionOffsets throws after all retries exhausted", Held.BESIDE_JVM
)
@one_client
def test_spark_55561_fetch_partition_offsets_throws_after_all_retries_exhausted(
    jvm, world, open_container
):
    topic = world.topic()
    container = open_container(QueryKind.BATCH, subscribe=topic)
    ours = unsteady(container.offset_fetcher(), failures=10)
    with (
        container.offset_fetcher.override(providers.Object(ours)),
        container.clock.override(providers.Singleton(MemoryClock)),
        pytest.raises(KafkaRequestError, match="the leader is not available"),
    ):
        container.offset_reader().unresolved(container.options().starting_offsets, "start")
    theirs = jvm.unsteady(jvm.subscribe(topic), failures=10)
    with their_reader(jvm, world, theirs) as reader:
        refused = failure(lambda: reader.partition_offsets(jvm.earliest()))
    assert "the leader is not available" in str(refused)
    assert ours.partitions.call_count == theirs.calls == 3
