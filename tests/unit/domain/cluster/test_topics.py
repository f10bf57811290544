import pytest

from pyspark_kafka.domain.cluster.topics import PartitionDescription, TopicDescription, summarize
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.topic_partition import TopicPartition

A, B = (TopicPartition("a", number) for number in range(2))


def led(leader: int | None, size: int | None = None) -> PartitionDescription:
    replicas = frozenset({1, 2})
    return PartitionDescription(leader, replicas, replicas if leader else frozenset(), size)


def test_offsets_and_sizes_of_partitions_are_added_up():
    (topic,) = summarize(
        [B, A],
        PartitionOffsets({A: 3, B: 0}),
        PartitionOffsets({A: 5, B: 40}),
        {"a": TopicDescription({0: led(1, 100), 1: led(2, 11)})},
    )
    assert [(each.number, each.offsets) for each in topic.partitions] == [(0, 2), (1, 40)]
    assert (topic.name, topic.offsets, topic.size) == ("a", 42, 111)
    assert topic.leaders == {1, 2}
    assert (topic.replication_factor, topic.under_replicated) == (2, 0)


def test_what_is_not_known_is_not_added_up():
    (topic,) = summarize(
        [A, B],
        PartitionOffsets({A: 3}),
        PartitionOffsets({A: 5}),
        {"a": TopicDescription({0: led(1, 100)})},
    )
    assert [each.offsets for each in topic.partitions] == [2, None]
    assert (topic.offsets, topic.size) == (None, None)
    assert topic.leaders == {1}
    assert topic.under_replicated == 1


def test_replicas_out_of_sync_are_counted():
    lagging = PartitionDescription(1, frozenset({1, 2}), frozenset({1}))
    (topic,) = summarize(
        [A, B],
        PartitionOffsets({}),
        PartitionOffsets({}),
        {"a": TopicDescription({0: lagging, 1: led(None)})},
    )
    assert topic.under_replicated == 2


def test_a_start_after_the_end_counts_no_offsets():
    """Records may be deleted between the two requests."""
    (topic,) = summarize(
        [A], PartitionOffsets({A: 7}), PartitionOffsets({A: 5}), {"a": TopicDescription({})}
    )
    assert topic.offsets == 0


def test_deleted_topics_are_left_out():
    assert summarize([A], PartitionOffsets({}), PartitionOffsets({}), {}) == ()


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (
            {"retention.ms": "9", "retention.bytes": "-1", "cleanup.policy": "compact"},
            (9, -1, "compact"),
        ),
        ({"retention.ms": "soon"}, (None, None, None)),
        (None, (None, None, None)),
    ],
)
def test_retention_and_cleanup_policy_are_settings(config, expected):
    topic = TopicDescription({}, config)
    assert (topic.retention_ms, topic.retention_bytes, topic.cleanup_policy) == expected
