"""Ranges that one task reads."""

from __future__ import annotations

from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka.domain.partition_offsets import EARLIEST, LATEST
from pyspark_kafka.domain.reading.offset_range import OffsetRange
from pyspark_kafka.domain.reading.range_joining import (
    RANGE_COST,
    are_small,
    join_ranges,
    needs_join,
)
from pyspark_kafka.domain.topic_partition import TopicPartition

backlogs = st.lists(st.integers(0, 10_000), max_size=60).map(
    lambda sizes: [of(number // 2, 0, size) for number, size in enumerate(sizes)]
)
"""Two ranges of each partition."""


def of(number: int, start: int, end: int) -> OffsetRange:
    return OffsetRange(TopicPartition("t", number), start, end)


def test_without_a_limit_each_range_has_a_task() -> None:
    """So has each if there are as many tasks as ranges."""
    ranges = [of(0, 0, 5), of(1, 3, 4)]
    for limit in (None, 2, 3):
        assert not needs_join(ranges, limit)
        assert join_ranges(ranges, limit) == ((ranges[0],), (ranges[1],))
    assert join_ranges([], 1) == ()


def test_small_ranges_share_a_task() -> None:
    """A large range has a task of its own, and the rest is read in the order of the ranges."""
    large, *small = ranges = [of(0, 0, 1_000_000), of(1, 0, 10), of(2, 0, 20), of(3, 0, 5)]
    assert needs_join(ranges, 2)
    assert join_ranges(ranges, 2) == ((large,), tuple(small))


def test_open_ends_count_as_what_they_resolve_to() -> None:
    """They stay open."""
    ranges = [of(number, EARLIEST, LATEST) for number in range(4)]
    sizes = (1, 50_000, 1, 1)
    resolved = {
        one.partition: of(one.partition.partition, 0, sizes[i]) for i, one in enumerate(ranges)
    }
    assert join_ranges(ranges, 2, resolved) == ((ranges[1],), (ranges[0], *ranges[2:]))
    assert sorted(map(len, join_ranges(ranges, 2))) == [2, 2]


def test_open_parts_count_as_what_is_left_of_the_partition() -> None:
    """Each part of a partition has its own size, whatever the other parts have."""
    ranges = [of(0, EARLIEST, 90_000), of(0, 90_000, LATEST), of(1, 0, 60_000), of(2, 0, 40_000)]
    resolved = {ranges[0].partition: of(0, 20_000, 95_000)}
    assert join_ranges(ranges, 2, resolved) == ((ranges[0], ranges[1]), (ranges[2], ranges[3]))


@pytest.mark.parametrize(
    ("count", "end", "expected"),
    [(301, 999, True), (300, 999, False), (301, 1_000, False), (301, LATEST, False)],
)
def test_small_ranges(count: int, end: int, expected: bool) -> None:
    """There are some hundred of them, with little to read, as far as is known."""
    assert are_small([of(number, 0, end) for number in range(count)]) is expected


@given(backlogs, st.integers(1, 12))
def test_each_range_is_read_once(ranges: list[OffsetRange], limit: int) -> None:
    """No task is empty, none reads a partition backwards, and there are no more than the limit."""
    tasks = join_ranges(ranges, limit)
    assert len(tasks) == min(limit, len(ranges))
    assert all(tasks)
    places = {id(one): place for place, one in enumerate(ranges)}
    read = [[places[id(one)] for one in task] for task in tasks]
    assert sorted(chain.from_iterable(read)) == list(range(len(ranges)))
    assert all(task == sorted(task) for task in read)


@given(backlogs, st.integers(1, 12))
def test_tasks_have_about_as_much_to_read(ranges: list[OffsetRange], limit: int) -> None:
    """The largest task has at most the average and one more range."""
    costs = [sum(one.size + RANGE_COST for one in task) for task in join_ranges(ranges, limit)]
    largest = max((one.size for one in ranges), default=0) + RANGE_COST
    assert not costs or max(costs) <= sum(costs) / limit + largest


@pytest.mark.parametrize("limit", [1, 7])
def test_equal_ranges_are_dealt_out(limit: int) -> None:
    """Tasks differ by one range at most."""
    lengths = [len(task) for task in join_ranges([of(n, 0, 50) for n in range(200)], limit)]
    assert max(lengths) - min(lengths) <= 1
