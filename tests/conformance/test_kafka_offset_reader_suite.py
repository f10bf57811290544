"""KafkaOffsetReaderSuite: which ranges a query reads, and how offsets are learnt."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, final

import pytest
from dependency_injector import providers

from pyspark_kafka.adapters.memory.clock import MemoryClock
from pyspark_kafka.application.errors import OffsetsMismatchError, TimestampsMismatchError
from pyspark_kafka.domain.errors import KafkaRequestError, OptionsError
from pyspark_kafka.domain.offset_range import OffsetRange
from pyspark_kafka.domain.options import QueryKind, SourceOptions, parse_source_options
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.ports.offset_fetcher import OffsetFetcher
from pyspark_kafka.testing import KafkaWorld, Record

from .peer import Held, peer

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pyspark_kafka.domain.subscription import Subscription

    from .conftest import OpenContainer

SUITE = "KafkaOffsetReaderSuite"


def options(**given: str) -> SourceOptions:
    return parse_source_options(
        {"kafka.bootstrap.servers": "host:9092", "subscribe": "t", **given}, QueryKind.BATCH
    )


def tp(topic: str, partition: int = 0) -> TopicPartition:
    return TopicPartition(topic, partition)


def write(world: KafkaWorld, partition: TopicPartition, count: int) -> None:
    world.produce(partition, [Record(b"%d" % number) for number in range(count)])


@final
class Unsteady(OffsetFetcher):
    """Fails so many times to tell the latest offsets, and then lets another fetcher answer."""

    def __init__(self, fetcher: OffsetFetcher, failures: int) -> None:
        self._fetcher = fetcher
        self._failures = failures
        self.calls = 0

    def latest(self, partitions: Collection[TopicPartition]) -> PartitionOffsets:
        self.calls += 1
        if self.calls <= self._failures:
            raise KafkaRequestError("a request for offsets", "the leader is not available")
        return self._fetcher.latest(partitions)

    def partitions(self, subscription: Subscription) -> frozenset[TopicPartition]:
        return self._fetcher.partitions(subscription)

    def earliest(self, partitions: Collection[TopicPartition]) -> PartitionOffsets:
        return self._fetcher.earliest(partitions)

    def for_timestamps(
        self, timestamps: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, int | None]:
        return self._fetcher.for_timestamps(timestamps)

    def committed(self, group_id: str, partitions: Collection[TopicPartition]) -> PartitionOffsets:
        return self._fetcher.committed(group_id, partitions)

    def commit(self, group_id: str, offsets: PartitionOffsets) -> None:
        self._fetcher.commit(group_id, offsets)

    def close(self) -> None:
        """Do nothing: the other fetcher belongs to its container."""


@peer(SUITE, "isolationLevel must give back default isolation level when not set", Held.LIBRARY)
def test_isolation_level_must_give_back_default_isolation_level_when_not_set() -> None:
    """Without a setting, records of open and aborted transactions are read."""
    assert not options().reads_committed_only


@peer(SUITE, "isolationLevel must give back READ_UNCOMMITTED when set", Held.LIBRARY)
def test_isolation_level_must_give_back_read_uncommitted_when_set() -> None:
    """The default may be spelled out."""
    assert not options(**{"kafka.isolation.level": "read_uncommitted"}).reads_committed_only


@peer(SUITE, "isolationLevel must give back READ_COMMITTED when set", Held.LIBRARY)
def test_isolation_level_must_give_back_read_committed_when_set(
    world: KafkaWorld, open_container: OpenContainer
) -> None:
    """With ``read_committed`` a partition ends before the first open transaction."""
    assert options(**{"kafka.isolation.level": "read_committed"}).reads_committed_only
    partition = tp(world.topic())
    write(world, partition, 2)
    with world.transaction(commit=True) as send:
        send(partition, [Record(b"open")])
        ends = {
            level: open_container(
                QueryKind.BATCH, **{"subscribe": partition.topic, "kafka.isolation.level": level}
            )
            .offset_fetcher()
            .latest([partition])[partition]
            for level in ("read_committed", "read_uncommitted")
        }
    assert ends == {"read_committed": 2, "read_uncommitted": 3}


@peer(SUITE, "isolationLevel must throw exception when invalid isolation level set", Held.LIBRARY)
def test_isolation_level_must_throw_exception_when_invalid_isolation_level_set() -> None:
    """Any other level is refused before a broker is asked."""
    with pytest.raises(OptionsError) as refused:
        options(**{"kafka.isolation.level": "intentionally_invalid"})
    assert refused.value.problems == (
        (
            "Option 'kafka.isolation.level' must be 'read_uncommitted' or 'read_committed', "
            "got 'intentionally_invalid'"
        ),
    )


@peer(
    SUITE,
    "SPARK-30656: getOffsetRangesFromUnresolvedOffsets - using specific offsets "
    "with useDeprecatedOffsetFetching false",
    Held.LIBRARY,
)
def test_spark_30656_unresolved_offsets_using_specific_offsets(
    world: KafkaWorld, open_container: OpenContainer
) -> None:
    """A batch query from 1 to 4 in three tasks reads one offset in each."""
    partition = tp(world.topic())
    write(world, partition, 10)
    batch = open_container(
        QueryKind.BATCH,
        subscribe=partition.topic,
        startingOffsets=json.dumps({partition.topic: {"0": 1}}),
        endingOffsets=json.dumps({partition.topic: {"0": 4}}),
        minPartitions="3",
    ).batch()
    assert batch.plan_input_partitions() == (
        OffsetRange(partition, 1, 2),
        OffsetRange(partition, 2, 3),
        OffsetRange(partition, 3, 4),
    )


@peer(
    SUITE,
    "SPARK-30656: getOffsetRangesFromUnresolvedOffsets - using special offsets "
    "with useDeprecatedOffsetFetching false",
    Held.LIBRARY,
)
def test_spark_30656_unresolved_offsets_using_special_offsets(
    world: KafkaWorld, open_container: OpenContainer
) -> None:
    """Open ends are cut where the log is now, and stay open in the first and the last task."""
    partition = tp(world.topic())
    write(world, partition, 4)
    batch = open_container(QueryKind.BATCH, subscribe=partition.topic, minPartitions="3").batch()
    assert batch.plan_input_partitions() == (
        OffsetRange(partition, -2, 1),
        OffsetRange(partition, 1, 2),
        OffsetRange(partition, 2, -1),
    )


@peer(
    SUITE,
    "SPARK-48383: START_OFFSET_DOES_NOT_MATCH_ASSIGNED error class "
    "with useDeprecatedOffsetFetching false",
    Held.LIBRARY,
)
def test_spark_48383_start_offset_does_not_match_assigned_error_class(
    world: KafkaWorld, open_container: OpenContainer
) -> None:
    """Starting offsets of more partitions than there are end a batch query."""
    topic = world.topic(3)
    given = json.dumps({topic: {str(number): -2 for number in range(4)}})
    batch = open_container(QueryKind.BATCH, subscribe=topic, startingOffsets=given).batch()
    with pytest.raises(OffsetsMismatchError) as refused:
        batch.plan_input_partitions()
    assert str(refused.value) == (
        "[KAFKA_START_OFFSET_DOES_NOT_MATCH_ASSIGNED] Partitions specified for Kafka start offsets "
        "don't match what are assigned. Maybe topic partitions are created \n"
        "or deleted while the query is running. Use -1 for latest, -2 for earliest.\n"
        f"Specified: Set({topic}-0, {topic}-1, {topic}-2, {topic}-3) "
        f"Assigned: Set({topic}-0, {topic}-1, {topic}-2)"
    )


@peer(
    SUITE,
    "SPARK-30656: getOffsetRangesFromUnresolvedOffsets - multiple topic partitions "
    "with useDeprecatedOffsetFetching false",
    Held.LIBRARY,
)
def test_spark_30656_unresolved_offsets_multiple_topic_partitions(
    world: KafkaWorld, open_container: OpenContainer
) -> None:
    """Of 100 and 3 records in four tasks, only the 100 are cut."""
    topic = world.topic(2)
    large, small = tp(topic, 0), tp(topic, 1)
    write(world, large, 100)
    write(world, small, 3)
    batch = open_container(
        QueryKind.BATCH,
        subscribe=topic,
        endingOffsets=json.dumps({topic: {"0": -1, "1": 3}}),
        minPartitions="4",
    ).batch()
    assert set(batch.plan_input_partitions()) == {
        OffsetRange(small, -2, 3),
        OffsetRange(large, -2, 33),
        OffsetRange(large, 33, 66),
        OffsetRange(large, 66, -1),
    }


@peer(
    SUITE,
    "SPARK-30656: getOffsetRangesFromResolvedOffsets with useDeprecatedOffsetFetching false",
    Held.LIBRARY,
)
def test_spark_30656_get_offset_ranges_from_resolved_offsets(
    world: KafkaWorld, open_container: OpenContainer
) -> None:
    """A micro-batch is cut in the same places, a partition that is new in it among them."""
    topic = world.topic(2)
    large, small = tp(topic, 0), tp(topic, 1)
    write(world, large, 100)
    write(world, small, 3)
    stream = open_container(
        QueryKind.STREAM, subscribe=topic, minPartitions="4"
    ).micro_batch_stream()
    planned = stream.plan_input_partitions(
        PartitionOffsets({large: 0}), PartitionOffsets({large: 100, small: 3})
    )
    assert set(planned) == {
        OffsetRange(small, 0, 3),
        OffsetRange(large, 0, 33),
        OffsetRange(large, 33, 66),
        OffsetRange(large, 66, 100),
    }


def assert_timestamps_mismatch(
    world: KafkaWorld, open_container: OpenContainer, position: str, specified: int
) -> None:
    topic = world.topic(3)
    times = json.dumps({topic: {str(number): 1_700_000_000_000 for number in range(specified)}})
    batch = open_container(
        QueryKind.BATCH, **{"subscribe": topic, f"{position}ingOffsetsByTimestamp": times}
    ).batch()
    with pytest.raises(TimestampsMismatchError) as refused:
        batch.plan_input_partitions()
    names = ", ".join(f"{topic}-{number}" for number in range(specified))
    assert str(refused.value) == (
        "[KAFKA_TIMESTAMP_OFFSET_DOES_NOT_MATCH_ASSIGNED] Partitions specified for Kafka "
        f"timestamp based {position} offsets don't match what are assigned. Maybe topic "
        "partitions are created \n"
        "or deleted while the query is running, or you didn't specify all the partitions.\n"
        f"Specified: Set({names}) Assigned: Set({topic}-0, {topic}-1, {topic}-2)"
    )


@peer(
    SUITE,
    "KAFKA_TIMESTAMP_OFFSET_DOES_NOT_MATCH_ASSIGNED error class - partitions assigned: 3, "
    "specified: 2 with useDeprecatedOffsetFetching false",
    Held.LIBRARY,
)
@pytest.mark.parametrize("position", ["start", "end"])
def test_timestamp_offset_does_not_match_assigned_with_2_of_3_specified(
    world: KafkaWorld, open_container: OpenContainer, position: str
) -> None:
    """Times for fewer partitions than there are end a batch query."""
    assert_timestamps_mismatch(world, open_container, position, 2)


@peer(
    SUITE,
    "KAFKA_TIMESTAMP_OFFSET_DOES_NOT_MATCH_ASSIGNED error class - partitions assigned: 3, "
    "specified: 4 with useDeprecatedOffsetFetching false",
    Held.LIBRARY,
)
@pytest.mark.parametrize("position", ["start", "end"])
def test_timestamp_offset_does_not_match_assigned_with_4_of_3_specified(
    world: KafkaWorld, open_container: OpenContainer, position: str
) -> None:
    """Times for more partitions than there are end a batch query."""
    assert_timestamps_mismatch(world, open_container, position, 4)


@peer(SUITE, "SPARK-55561: fetchPartitionOffsets retries on transient failures", Held.LIBRARY)
def test_spark_55561_fetch_partition_offsets_retries_on_transient_failures(
    world: KafkaWorld, open_container: OpenContainer
) -> None:
    """Two failures and an answer are three calls."""
    partition = tp(world.topic())
    write(world, partition, 5)
    container = open_container(QueryKind.BATCH, subscribe=partition.topic, minPartitions="2")
    unsteady = Unsteady(container.offset_fetcher(), failures=2)
    with (
        container.offset_fetcher.override(providers.Object(unsteady)),
        container.clock.override(providers.Singleton(MemoryClock)),
    ):
        assert container.batch().plan_input_partitions() == (
            OffsetRange(partition, -2, 2),
            OffsetRange(partition, 2, -1),
        )
    assert unsteady.calls == 3


@peer(SUITE, "SPARK-55561: fetchPartitionOffsets throws after all retries exhausted", Held.LIBRARY)
def test_spark_55561_fetch_partition_offsets_throws_after_all_retries_exhausted(
    world: KafkaWorld, open_container: OpenContainer
) -> None:
    """After the third failure the query fails with what Kafka said."""
    topic = world.topic()
    container = open_container(QueryKind.BATCH, subscribe=topic, minPartitions="2")
    unsteady = Unsteady(container.offset_fetcher(), failures=10)
    with (
        container.offset_fetcher.override(providers.Object(unsteady)),
        container.clock.override(providers.Singleton(MemoryClock)),
        pytest.raises(KafkaRequestError, match="the leader is not available"),
    ):
        container.batch().plan_input_partitions()
    assert unsteady.calls == 3
