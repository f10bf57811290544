import json
from collections.abc import Callable, Collection

import pytest

from pyspark_kafka.adapters.memory.reading import MemoryOffsetFetcher
from pyspark_kafka.application.reading.planner import ALL_RECORDS
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.reading.errors import (
    NoOffsetForTimestampError,
    OffsetsMismatchError,
    ResolvedOffsetsError,
    StreamOffsetsMismatchError,
    TimestampsMismatchError,
)
from pyspark_kafka.domain.reading.ranges import OffsetRange
from pyspark_kafka.domain.reading.records import RecordFilter, Span

from ..conftest import Kit, tp


def plan(kit: Kit, **options: str) -> tuple[OffsetRange, ...]:
    return plan_filtered(kit, ALL_RECORDS, **options)


def plan_filtered(kit: Kit, record_filter: RecordFilter, **options: str) -> tuple[OffsetRange, ...]:
    batch = kit.container(options, QueryKind.BATCH).batch()
    return batch.plan_input_partitions(record_filter)


def t(**offsets: object) -> str:
    """Return offsets of `t` as in an option: `t(p0=3)`."""
    return json.dumps({"t": {name[1:]: offset for name, offset in offsets.items()}})


def test_open_ends_stay_open(kit):
    assert plan(kit) == (OffsetRange(tp(0), -2, -1), OffsetRange(tp(1), -2, -1))


def test_ranges_share_tasks(kit):
    kit.cluster.add_partitions("t", 4)
    kit.produce(5_000, partition=2)
    batch = kit.container({"maxPartitions": "2"}, QueryKind.BATCH).batch()
    ranges = [OffsetRange(tp(number), -2, -1) for number in range(4)]
    assert batch.plan_tasks() == ((ranges[2],), (ranges[0], ranges[1], ranges[3]))


def test_split_and_joined_ranges_are_resolved_once(kit, monkeypatch):
    asked: list[str] = []
    for name in ("earliest", "latest"):
        monkeypatch.setattr(MemoryOffsetFetcher, name, counted(name, asked))
    kit.produce(9_000)
    kit.produce(6_000, partition=1)
    options = {"minPartitions": "2", "maxPartitions": "2"}
    assert kit.container(options, QueryKind.BATCH).batch().plan_tasks() == (
        (OffsetRange(tp(1), -2, -1),),
        (OffsetRange(tp(0), -2, 4_500), OffsetRange(tp(0), 4_500, -1)),
    )
    assert asked == ["earliest", "latest"]


def counted(name: str, calls: list[str]) -> Callable[..., PartitionOffsets]:
    method: Callable[..., PartitionOffsets] = getattr(MemoryOffsetFetcher, name)

    def call(*arguments: object) -> PartitionOffsets:
        calls.append(name)
        return method(*arguments)

    return call


def test_specific_ends_are_kept(kit):
    starts, ends = t(p0=3, p1=-2), t(p0=-1, p1=7)
    assert plan(kit, startingOffsets=starts, endingOffsets=ends) == (
        OffsetRange(tp(0), 3, -1),
        OffsetRange(tp(1), -2, 7),
    )


def test_ranges_without_offsets_are_left_out(kit):
    starts, ends = t(p0=3, p1=2), t(p0=3, p1=7)
    assert plan(kit, startingOffsets=starts, endingOffsets=ends) == (OffsetRange(tp(1), 2, 7),)


@pytest.mark.parametrize("side", ["start", "end"])
def test_offsets_and_times_name_every_partition(kit, side):
    with pytest.raises(OffsetsMismatchError, match=r"Specified: Set\(t-0\)") as caught:
        plan(kit, **{f"{side}ingOffsets": t(p0=3)})
    assert not isinstance(caught.value, StreamOffsetsMismatchError)
    with pytest.raises(TimestampsMismatchError, match=f"timestamp based {side} offsets"):
        plan(kit, **{f"{side}ingOffsetsByTimestamp": t(p0=0)})


def test_a_topic_has_one_offset(kit):
    assert plan(kit, startingOffsets='{"t":"earliest"}', endingOffsets=t(p0=4, p1=-1)) == (
        OffsetRange(tp(0), -2, 4),
        OffsetRange(tp(1), -2, -1),
    )


def produce_at(kit: Kit, partition: int, *times: int) -> None:
    for time in times:
        kit.cluster.produce("t", b"v", partition=partition, timestamp=time)


def test_times_are_bound_when_the_query_is_planned(kit):
    produce_at(kit, 0, 100, 200, 300)
    produce_at(kit, 1, 150, 250)
    assert plan(kit, startingTimestamp="150", endingTimestamp="300") == (
        OffsetRange(tp(0), 1, 2),
        OffsetRange(tp(1), 0, 2),
    )
    assert plan(kit, startingOffsetsByTimestamp=t(p0=300, p1=200)) == (
        OffsetRange(tp(0), 2, -1),
        OffsetRange(tp(1), 1, -1),
    )
    assert plan(kit, endingOffsetsByTimestamp=t(p0=200, p1=999)) == (
        OffsetRange(tp(0), -2, 1),
        OffsetRange(tp(1), -2, 2),
    )


def test_a_start_that_no_record_reaches_fails_or_reads_nothing(kit):
    produce_at(kit, 0, 100, 200)
    produce_at(kit, 1, 100)
    with pytest.raises(NoOffsetForTimestampError, match="topic-partition t-1 and timestamp 150"):
        plan(kit, startingTimestamp="150")
    latest = plan(kit, startingTimestamp="150", startingOffsetsByTimestampStrategy="latest")
    assert latest == (OffsetRange(tp(0), 1, -1), OffsetRange(tp(1), 1, -1))


@pytest.mark.parametrize(
    ("options", "start", "end"),
    [
        ({"startingOffsets": t(p0=3, p1=0), "endingTimestamp": "150"}, 3, 1),
        ({"startingTimestamp": "150", "endingOffsets": t(p0=0, p1=1)}, 1, 0),
        ({"startingTimestamp": "150", "endingTimestamp": "50"}, 1, 0),
    ],
)
def test_a_start_behind_its_end_is_an_error(kit, options, start, end):
    produce_at(kit, 0, 100, 200, 300, 400)
    produce_at(kit, 1, 200)
    with pytest.raises(
        ResolvedOffsetsError,
        match=f"start offset {start} is greater than the resolved end offset {end} "
        "for topic t partition 0",
    ):
        plan(kit, **options)


def test_a_start_behind_an_open_end_is_left_to_the_task(kit):
    """Records may still come, so that nothing is wrong when the query is planned."""
    kit.produce(1)
    assert plan(kit, startingOffsets=t(p0=5, p1=0))[0] == OffsetRange(tp(0), 5, -1)


def ends_of(ranges: Collection[OffsetRange], partition: int = 0) -> list[tuple[int, int]]:
    return [(one.from_offset, one.until_offset) for one in ranges if one.partition == tp(partition)]


@pytest.mark.parametrize("is_open", [True, False])
def test_the_larger_partition_is_split(kit, is_open):
    kit.produce(100)
    kit.produce(3, partition=1)
    ends = {} if is_open else {"startingOffsets": t(p0=0, p1=0), "endingOffsets": t(p0=100, p1=3)}
    ranges = plan(kit, minPartitions="4", **ends)
    start, end, end_of_1 = (-2, -1, -1) if is_open else (0, 100, 3)
    assert ends_of(ranges) == [(start, 33), (33, 66), (66, end)]
    assert ends_of(ranges, 1) == [(start, end_of_1)]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [(-2, -1)]),
        ({"endingOffsets": t(p0=5, p1=0)}, [(-2, 2), (2, 5)]),
        (
            {"startingOffsets": t(p0=1, p1=0), "endingOffsets": t(p0=8, p1=0)},
            [(1, 3), (3, 5), (5, 8)],
        ),
    ],
)
def test_a_task_has_at_most_so_many_records(kit, options, expected):
    kit.produce(8)
    assert ends_of(plan(kit, maxRecordsPerPartition="3", **options)) == expected


def test_a_split_finds_a_start_behind_its_end(kit):
    kit.produce(1)
    with pytest.raises(ResolvedOffsetsError, match=r"start offset 5 .* end offset 1"):
        plan(kit, startingOffsets=t(p0=5, p1=0), minPartitions="9")


@pytest.mark.parametrize(
    ("record_filter", "expected"),
    [
        (RecordFilter(), [0, 1]),
        (RecordFilter(partitions=Span(1)), [1]),
        (RecordFilter(partitions=Span(None, 1)), [0]),
        (RecordFilter(partition_numbers=frozenset({1, 7})), [1]),
        (RecordFilter(partition_numbers=frozenset()), []),
    ],
)
def test_partitions_that_no_record_can_come_from_are_left_out(kit, record_filter, expected):
    assert plan_filtered(kit, record_filter) == tuple(
        OffsetRange(tp(number), -2, -1) for number in expected
    )


def test_splitting_counts_the_partitions_that_are_left(kit):
    kit.produce(10)
    kit.produce(10, partition=1)
    ranges = plan_filtered(kit, RecordFilter(partitions=Span(1)), minPartitions="2")
    assert ranges == (OffsetRange(tp(1), -2, 5), OffsetRange(tp(1), 5, -1))
    assert plan_filtered(kit, RecordFilter(partitions=Span(9)), minPartitions="2") == ()


@pytest.mark.parametrize(
    ("offsets", "expected"),
    [
        (Span(3), [(0, 3, 10)]),
        (Span(None, 3), [(0, 2, 3), (1, 0, 3)]),
        (Span(3, 5), [(0, 3, 5)]),
        (Span(0, 99), [(0, 2, 10), (1, 0, 3)]),
        (Span(99), []),
        (Span(None, 0), []),
    ],
)
def test_a_filter_on_offsets_narrows_ranges(kit, offsets, expected):
    kit.produce(10)
    kit.produce(3, partition=1)
    kit.cluster.delete_records({tp(0): 2})
    ranges = plan_filtered(kit, RecordFilter(offsets=offsets))
    assert ranges == tuple(OffsetRange(tp(number), *ends) for number, *ends in expected)


@pytest.mark.parametrize(
    ("least", "expected"),
    [(50, [(0, 0, 4), (1, 0, 1)]), (150, [(0, 1, 4), (1, 0, 1)]), (300, [(0, 2, 4)]), (999, [])],
)
def test_a_filter_on_time_leaves_out_what_is_older(kit, least, expected):
    produce_at(kit, 0, 100, 200, 300, 150)
    produce_at(kit, 1, 250)
    ranges = plan_filtered(kit, RecordFilter(min_timestamp=least))
    assert ranges == tuple(OffsetRange(tp(number), *ends) for number, *ends in expected)


def test_a_filter_on_time_keeps_to_the_ends_of_the_query(kit):
    produce_at(kit, 0, 100, 200, 300, 400, 450, 500)
    ends = {"startingOffsets": t(p0=2, p1=0), "endingOffsets": t(p0=4, p1=0)}
    assert plan_filtered(kit, RecordFilter(min_timestamp=200), **ends) == (
        OffsetRange(tp(0), 2, 4),
    )
    assert plan_filtered(kit, RecordFilter(min_timestamp=400), **ends) == (
        OffsetRange(tp(0), 3, 4),
    )
    for behind_the_end in (450, 500):
        assert plan_filtered(kit, RecordFilter(min_timestamp=behind_the_end), **ends) == ()
    both = RecordFilter(offsets=Span(3), min_timestamp=200)
    assert plan_filtered(kit, both, **ends) == (OffsetRange(tp(0), 3, 4),)


def test_no_time_is_looked_up_for_ranges_that_are_empty(kit, monkeypatch):
    def fail(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(MemoryOffsetFetcher, "for_timestamps", fail)
    assert plan_filtered(kit, RecordFilter(min_timestamp=1)) == ()


def test_a_narrowed_range_is_split(kit):
    kit.produce(10)
    ranges = plan_filtered(kit, RecordFilter(offsets=Span(4)), minPartitions="2")
    assert ranges == (OffsetRange(tp(0), 4, 7), OffsetRange(tp(0), 7, 10))


@pytest.mark.parametrize("answers", [[[0, 1], [0]], [[0], [0, 1]]])
def test_partitions_that_are_known_at_one_end_only_are_not_read(kit, monkeypatch, answers):
    """A partition that comes or goes between two looks is left for the next query."""
    looks = [frozenset(map(tp, numbers)) for numbers in answers]
    monkeypatch.setattr(MemoryOffsetFetcher, "partitions", lambda *_: looks.pop(0))
    assert plan(kit) == (OffsetRange(tp(0), -2, -1),)


@pytest.mark.parametrize("timestamp", [-1, -2, -3, -2_208_988_800_000])
def test_a_time_before_1970_leaves_no_record_out(kit, monkeypatch, timestamp):
    """No record is older, and to Kafka such a number means something else than a time."""
    kit.produce(3)
    monkeypatch.delattr(MemoryOffsetFetcher, "for_timestamps")
    monkeypatch.setattr(MemoryOffsetFetcher, "__abstractmethods__", frozenset())
    ranges = plan_filtered(kit, RecordFilter(min_timestamp=timestamp))
    assert ranges == (OffsetRange(tp(0), 0, 3),)
