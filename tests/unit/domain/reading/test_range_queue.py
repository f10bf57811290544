"""The ranges that a reader is told to expect."""

from __future__ import annotations

from pyspark_kafka.domain.reading.range_queue import RangeQueue
from pyspark_kafka.domain.reading.ranges import OffsetRange
from pyspark_kafka.domain.topic_partition import TopicPartition

RANGES = tuple(OffsetRange(TopicPartition("t", number), 7, 9) for number in range(4))


def test_what_was_begun_is_not_expected() -> None:
    """Neither are ranges that were passed over."""
    queue = RangeQueue(RANGES)
    assert queue.begin(RANGES[0].partition, 7) == ()
    assert queue.begin(RANGES[2].partition, 7) == RANGES[1:2]
    assert tuple(queue) == RANGES[3:]


def test_a_range_that_was_not_expected_changes_nothing() -> None:
    """Its start tells it: of another partition, or elsewhere in this one."""
    queue = RangeQueue(RANGES)
    assert queue.begin(RANGES[1].partition, 8) == queue.begin(TopicPartition("u", 1), 7) == ()
    assert tuple(queue) == RANGES


def test_the_next_ones_are_returned_in_order() -> None:
    """There may be fewer than asked for."""
    queue = RangeQueue(RANGES)
    assert queue.first(2) == RANGES[:2]
    assert queue.first(9) == RANGES
    assert RangeQueue().first(9) == ()
