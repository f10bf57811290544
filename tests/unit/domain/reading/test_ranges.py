import pickle
import re
from itertools import chain, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka.domain.partition_offsets import EARLIEST, LATEST
from pyspark_kafka.domain.reading.ranges import (
    RANGE_COST,
    OffsetRange,
    TaskLimits,
    are_small,
    join_ranges,
    needs_join,
    needs_split,
    split_ranges,
    split_unbound,
)
from pyspark_kafka.domain.topic_partition import TopicPartition

from ..strategies import LARGEST_OFFSET

T0 = TopicPartition("t", 0)
bounds = st.lists(st.integers(0, LARGEST_OFFSET), min_size=3, max_size=3).map(sorted)


@given(bounds)
def test_the_rest_of_a_range_keeps_partition_and_end_and_in_sum_the_size(offsets):
    start, middle, end = offsets
    whole = OffsetRange(T0, start, end)
    rest = whole.starting_at(middle)
    assert (rest.partition, rest.from_offset, rest.until_offset) == (T0, middle, end)
    assert OffsetRange(T0, start, middle).size + rest.size == whole.size


@pytest.mark.parametrize(("start", "end", "size"), [(0, 0, 0), (5, 5, 0), (3, 10, 7)])
def test_size(start, end, size):
    assert OffsetRange(T0, start, end).size == size


@pytest.mark.parametrize(
    ("start", "end", "is_bound"),
    [(0, 0, True), (3, 10, True), (EARLIEST, 10, False), (3, LATEST, False), (-2, -1, False)],
)
def test_a_range_is_bound_when_neither_end_is_open(start, end, is_bound):
    assert OffsetRange(T0, start, end).is_bound is is_bound


@pytest.mark.parametrize(
    ("start", "end", "text"),
    [(EARLIEST, 10, "t-0[-2, 10)"), (3, LATEST, "t-0[3, -1)"), (-2, -1, "t-0[-2, -1)")],
)
def test_open_range_has_no_size(start, end, text):
    problem = f"{text} has no size before its ends are bound"
    with pytest.raises(ValueError, match=f"^{re.escape(problem)}$"):
        _ = OffsetRange(T0, start, end).size


@pytest.mark.parametrize(
    ("start", "end", "problem"),
    [
        (LATEST, 10, "not a valid starting offset: -1"),
        (-3, LATEST, "not a valid starting offset: -3"),
        (0, EARLIEST, "not a valid ending offset: -2"),
        (EARLIEST, -3, "not a valid ending offset: -3"),
        (11, 10, "t-0[11, 10) ends before it starts"),
    ],
)
def test_invalid_ranges_are_refused(start, end, problem):
    with pytest.raises(ValueError, match=f"^{re.escape(problem)}$"):
        OffsetRange(T0, start, end)


def test_a_range_has_no_rest_beyond_its_end():
    with pytest.raises(ValueError, match=r"^t-0\[11, 10\) ends before it starts$"):
        OffsetRange(T0, 3, 10).starting_at(11)


def test_binding_an_open_start_keeps_the_end_open():
    assert OffsetRange(T0, EARLIEST, LATEST).starting_at(7) == OffsetRange(T0, 7, LATEST)


@given(bounds)
def test_pickle(offsets):
    stretch = OffsetRange(T0, offsets[0], offsets[-1])
    assert pickle.loads(pickle.dumps(stretch)) == stretch  # noqa: S301


T = [TopicPartition(f"t{number}", 1) for number in range(4)]
Bounds = tuple[int, int]


def ranges_of(*bounds: Bounds) -> list[OffsetRange]:
    return [OffsetRange(T[number], *ends) for number, ends in enumerate(bounds)]


def cuts(number: int, *offsets: int) -> list[OffsetRange]:
    """Return the ranges of a partition between each offset and the next."""
    return [OffsetRange(T[number], start, end) for start, end in pairwise(offsets)]


def read_cuts(text: str) -> list[OffsetRange]:
    """Read the ranges of each partition in turn, as in ``CASES``."""
    offsets = [[] if word == "." else map(int, word.split("-")) for word in text.split()]
    return [one for number, each in enumerate(offsets) for one in cuts(number, *each)]


backlogs = st.lists(
    st.tuples(st.integers(0, 1_000), st.integers(0, 500) | st.integers(0, 2**40)), max_size=4
).map(lambda sizes: ranges_of(*((start, start + size) for start, size in sizes)))
minimums = st.none() | st.integers(1, 50)


CASES = [
    ("N TopicPartitions to N offset ranges", None, None, "1-2 1-2 1-2", "1-2 1-2 1-2"),
    ("empty ranges ignored, without minPartitions", None, None, "1-2 1-1 1-2", "1-2 . 1-2"),
    (
        "N TopicPartitions to N offset ranges, as many as minPartitions",
        3,
        None,
        "1-2 1-2 1-2",
        "1-2 1-2 1-2",
    ),
    ("1 TopicPartition to N offset ranges", 4, None, "1-5", "1-2-3-4-5"),
    ("N skewed TopicPartitions to M offset ranges", 4, None, "1-5 1-21", "1-5 1-7-14-21"),
    ("SPARK-30656: ignore empty ranges and split the rest", 4, None, "1-1 1-21", ". 1-6-11-16-21"),
    (
        "SPARK-30656: N very skewed TopicPartitions to M offset ranges",
        4,
        None,
        "1-2 1-1001",
        "1-2 1-334-667-1001",
    ),
    (
        "SPARK-30656: minPartitions less than the length of topic partitions",
        1,
        None,
        "1-5 1-21 1-1001",
        "1-5 1-21 1-1001",
    ),
    ("range inexact multiple of minPartitions", 3, None, "1-11", "1-4-7-11"),
    ("empty ranges ignored", 4, None, "1-5 1-21 1-1", "1-5 1-7-14-21 ."),
    ("SPARK-28489: never drop offsets", 6, None, "0-10 0-10 0-1", "0-3-6-10 0-3-6-10 0-1"),
    (
        "SPARK-36576: 0 small unsplit ranges and 3 large split ranges",
        9,
        None,
        "0-10000 0-15000 0-20000",
        "0-5000-10000 0-5000-10000-15000 0-5000-10000-15000-20000",
    ),
    (
        "SPARK-36576: 1 small unsplit range and 2 large split ranges",
        6,
        None,
        "0-500 0-12000 0-15001",
        "0-500 0-6000-12000 0-5000-10000-15001",
    ),
    (
        "SPARK-36576: 2 small unsplit ranges and 1 large split range",
        6,
        None,
        "0-1 0-1 0-10000",
        "0-1 0-1 0-2500-5000-7500-10000",
    ),
    ("SPARK-49259: 1 TopicPartition to N offset ranges", None, 4, "1-6", "1-3-6"),
    (
        "SPARK-49259: N TopicPartition to N offset ranges",
        None,
        20,
        "1-40 1-50 1-60",
        "1-20-40 1-17-33-50 1-20-40-60",
    ),
    ("SPARK-49259: 1 TopicPartition with low minPartitions value", 1, 20, "1-40", "1-20-40"),
    ("SPARK-49259: 1 TopicPartition with high minPartitions value", 4, 20, "1-40", "1-10-20-30-40"),
    ("halves are rounded up, and what is empty after that vanishes", 3, None, "0-1 0-1", "0-1 0-1"),
    ("a part that stays whole keeps its partition from being cut on", 3, 2, "0-3", "0-1-3"),
    ("nothing to read", 4, 20, "5-5 7-7", ". ."),
    ("no partition", 4, 20, "", ""),
]
"""The offsets of each partition between dashes, before and after; a dot has no range."""


@pytest.mark.parametrize(
    ("min_partitions", "max_records", "bounds", "expected"),
    [case[1:] for case in CASES],
    ids=[case[0] for case in CASES],
)
def test_ranges_are_cut_where_spark_cuts_them(min_partitions, max_records, bounds, expected):
    parts = split_ranges(read_cuts(bounds), TaskLimits(min_partitions, None, max_records))
    assert list(parts) == read_cuts(expected)


@given(backlogs, minimums, st.none() | st.integers(2**34, 2**40))
def test_no_offset_is_lost(ranges, min_partitions, max_records):
    parts = split_ranges(ranges, TaskLimits(min_partitions, None, max_records))
    assert all(part.size > 0 for part in parts)
    for stretch in ranges:
        offset = stretch.from_offset
        for part in parts:
            if part.partition == stretch.partition:
                assert part.from_offset == offset
                offset = part.until_offset
        assert offset == stretch.until_offset


@given(st.lists(st.integers(0, 500), max_size=4), minimums, st.integers(1, 600))
def test_no_part_has_more_records_than_allowed(sizes, min_partitions, max_records):
    ranges = ranges_of(*((0, size) for size in sizes))
    parts = split_ranges(ranges, TaskLimits(min_partitions, None, max_records))
    assert all(part.size <= max_records for part in parts)


@pytest.mark.parametrize(
    ("bounds", "min_partitions", "max_records", "is_needed"),
    [
        (((EARLIEST, LATEST),), None, None, False),
        (((EARLIEST, LATEST),), 1, None, False),
        (((EARLIEST, LATEST),), 2, None, True),
        (((EARLIEST, LATEST),), None, 1, False),
        (((100, LATEST),), None, 1, False),
        (((EARLIEST, 100),), None, 102, False),
        (((EARLIEST, 100),), None, 101, True),
        (((0, 5), (0, 6)), None, 5, True),
        (((0, 5), (0, 6)), 2, 6, False),
        ((), None, 1, False),
    ],
)
def test_more_tasks_or_a_large_range_need_a_split(bounds, min_partitions, max_records, is_needed):
    limits = TaskLimits(min_partitions, None, max_records)
    assert needs_split(ranges_of(*bounds), limits) is is_needed


@pytest.mark.parametrize(
    ("bounds", "resolved", "min_partitions", "max_records", "expected"),
    [
        pytest.param(((1, 4),), ((1, 4),), 3, None, cuts(0, 1, 2, 3, 4), id="specific offsets"),
        pytest.param(
            ((EARLIEST, LATEST),),
            ((0, 4),),
            3,
            None,
            cuts(0, EARLIEST, 1, 2, LATEST),
            id="special offsets",
        ),
        pytest.param(
            ((EARLIEST, LATEST), (EARLIEST, 3)),
            ((0, 100), (0, 3)),
            4,
            None,
            [*cuts(0, EARLIEST, 33, 66, LATEST), *cuts(1, EARLIEST, 3)],
            id="multiple topic partitions",
        ),
        pytest.param(
            ((EARLIEST, LATEST), (5, LATEST)),
            ((3, 7), (5, 5)),
            3,
            None,
            cuts(0, EARLIEST, 4, 5, LATEST),
            id="empty once resolved",
        ),
        pytest.param(
            ((EARLIEST, 100), (7, LATEST)),
            ((50, 100), (7, 57)),
            None,
            25,
            [*cuts(0, EARLIEST, 75, 100), *cuts(1, 7, 32, LATEST)],
            id="too many records as the numbers stand",
        ),
    ],
)
def test_open_ends_are_resolved_for_a_split(
    bounds, resolved, min_partitions, max_records, expected
):
    found = {stretch.partition: stretch for stretch in ranges_of(*resolved)}
    parts = split_unbound(ranges_of(*bounds), found, TaskLimits(min_partitions, None, max_records))
    assert list(parts) == expected


def test_without_a_split_ranges_are_not_resolved():
    ranges = ranges_of((EARLIEST, LATEST), (5, 5))
    assert split_unbound(ranges, {}, TaskLimits(2, None, 1_000)) == tuple(ranges)


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ((900, 10, 0, 90), [225, 225, 225, 225, 10, 90]),
        ((10, 10, 10, 10), [10, 10, 10, 10]),
        ((), []),
        ((0, 0), []),
    ],
)
def test_large_ranges_are_split_though_there_are_enough(sizes, expected):
    ranges = ranges_of(*((0, size) for size in sizes))
    parts = split_ranges(ranges, TaskLimits(min_partitions=4, max_partitions=4))
    assert [part.size for part in parts] == expected


def test_both_limits_need_the_ends():
    ranges = ranges_of(*[(EARLIEST, LATEST)] * 3)
    assert needs_split(ranges, TaskLimits(min_partitions=2, max_partitions=2))
    assert not needs_split(ranges, TaskLimits(max_partitions=2))


_joined_backlogs = st.lists(st.integers(0, 10_000), max_size=60).map(
    lambda sizes: [of(number // 2, 0, size) for number, size in enumerate(sizes)]
)
"""Two ranges of each partition."""


def of(number: int, start: int, end: int) -> OffsetRange:
    return OffsetRange(TopicPartition("t", number), start, end)


@pytest.mark.parametrize("limit", [None, 2, 3])
def test_without_a_limit_each_range_has_a_task(limit):
    ranges = [of(0, 0, 5), of(1, 3, 4)]
    assert not needs_join(ranges, limit)
    assert join_ranges(ranges, limit) == ((ranges[0],), (ranges[1],))
    assert join_ranges([], limit) == join_ranges([], 1) == ()


def test_small_ranges_share_a_task():
    large, *small = ranges = [of(0, 0, 1_000_000), of(1, 0, 10), of(2, 0, 20), of(3, 0, 5)]
    assert needs_join(ranges, 2)
    assert join_ranges(ranges, 2) == ((large,), tuple(small))


def test_open_ends_count_as_what_they_resolve_to():
    ranges = [of(number, EARLIEST, LATEST) for number in range(4)]
    sizes = (1, 50_000, 1, 1)
    resolved = {
        one.partition: of(one.partition.partition, 0, sizes[i]) for i, one in enumerate(ranges)
    }
    assert join_ranges(ranges, 2, resolved) == ((ranges[1],), (ranges[0], *ranges[2:]))
    assert sorted(map(len, join_ranges(ranges, 2))) == [2, 2]


def test_open_parts_count_as_what_is_left_of_the_partition():
    ranges = [of(0, EARLIEST, 90_000), of(0, 90_000, LATEST), of(1, 0, 60_000), of(2, 0, 40_000)]
    resolved = {ranges[0].partition: of(0, 20_000, 95_000)}
    assert join_ranges(ranges, 2, resolved) == ((ranges[0], ranges[1]), (ranges[2], ranges[3]))


@pytest.mark.parametrize(
    ("count", "end", "expected"),
    [(301, 999, True), (300, 999, False), (301, 1_000, False), (301, LATEST, False)],
)
def test_hundreds_of_ranges_with_little_to_read_are_small(count, end, expected):
    assert are_small([of(number, 0, end) for number in range(count)]) is expected


@given(_joined_backlogs, st.integers(1, 12))
def test_each_range_is_read_once(ranges, limit):
    tasks = join_ranges(ranges, limit)
    assert len(tasks) == min(limit, len(ranges))
    assert all(tasks)
    places = {id(one): place for place, one in enumerate(ranges)}
    read = [[places[id(one)] for one in task] for task in tasks]
    assert sorted(chain.from_iterable(read)) == list(range(len(ranges)))
    assert all(task == sorted(task) for task in read)


@given(_joined_backlogs, st.integers(1, 12))
def test_tasks_have_about_as_much_to_read(ranges, limit):
    tasks = [[one.size + RANGE_COST for one in task] for task in join_ranges(ranges, limit)]
    least = min(map(sum, tasks), default=0)
    assert [costs for costs in tasks if sum(costs) - min(costs) > least] == []


@pytest.mark.parametrize("limit", [1, 7])
def test_equal_ranges_are_dealt_out(limit):
    lengths = [len(task) for task in join_ranges([of(n, 0, 50) for n in range(200)], limit)]
    assert max(lengths) - min(lengths) <= 1
