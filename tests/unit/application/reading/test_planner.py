import json
from collections.abc import Callable, Collection

import pytest

from pyspark_kafka.adapters.memory.reading import MemoryOffsetFetcher
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.reading.batch_tasks import BatchTask, PartitionPart
from pyspark_kafka.domain.reading.errors import (
    NoOffsetForTimestampError,
    OffsetsMismatchError,
    ResolvedOffsetsError,
    StreamOffsetsMismatchError,
    TimestampsMismatchError,
)
from pyspark_kafka.domain.reading.ranges import OffsetRange

from ..conftest import Kit, tp


def plan(kit: Kit, **options: str) -> tuple[OffsetRange, ...]:
    return kit.container(options, QueryKind.BATCH).batch().plan_input_partitions()


def t(**offsets: object) -> str:
    """Return offsets of `t` as in an option: `t(p0=3)`."""
    return json.dumps({"t": {name[1:]: offset for name, offset in offsets.items()}})


def test_open_ends_stay_open(kit):
    assert plan(kit) == (OffsetRange(tp(0), -2, -1), OffsetRange(tp(1), -2, -1))


def test_ranges_share_tasks(kit):
    kit.cluster.add_partitions("t", 4)
    kit.produce(5_000, partition=2)
    batch = kit.container({"maxPartitions": "2"}, QueryKind.BATCH).batch()
    parts = [PartitionPart(tp(number)) for number in range(4)]
    assert batch.plan_tasks() == (
        BatchTask((parts[2],)),
        BatchTask((parts[0], parts[1], parts[3]), frozenset(map(tp, range(4)))),
    )


def test_split_and_joined_ranges_are_resolved_once(kit, monkeypatch):
    asked: list[str] = []
    for name in ("earliest", "latest"):
        monkeypatch.setattr(MemoryOffsetFetcher, name, counted(name, asked))
    kit.produce(9_000)
    kit.produce(6_000, partition=1)
    options = {"minPartitions": "2", "maxPartitions": "2"}
    assert kit.container(options, QueryKind.BATCH).batch().plan_tasks() == (
        BatchTask((PartitionPart(tp(1)),)),
        BatchTask(
            (
                PartitionPart(tp(0), None, 4_500, may_be_outdated=True),
                PartitionPart(tp(0), 4_500, None, may_be_outdated=True),
            ),
            frozenset({tp(0), tp(1)}),
        ),
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


@pytest.mark.parametrize("answers", [[[0, 1], [0]], [[0], [0, 1]]])
def test_partitions_that_are_known_at_one_end_only_are_not_read(kit, monkeypatch, answers):
    """A partition that comes or goes between two looks is left for the next query."""
    looks = [frozenset(map(tp, numbers)) for numbers in answers]
    monkeypatch.setattr(MemoryOffsetFetcher, "partitions", lambda *_: looks.pop(0))
    assert plan(kit) == (OffsetRange(tp(0), -2, -1),)
