"""A plan that is used again later: its tasks read what a new plan's would."""

import json
import pickle
from collections.abc import Iterable, Mapping

import pytest

from pyspark_kafka.adapters.memory.reading import MemoryOffsetFetcher
from pyspark_kafka.domain.errors import UnknownTopicError
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.reading.batch_tasks import BatchTask
from pyspark_kafka.domain.reading.errors import (
    DataLossError,
    ResolvedOffsetsError,
)
from pyspark_kafka.domain.reading.records import Projection
from pyspark_kafka.domain.topic_partition import TopicPartition

from ..conftest import Kit, tp

Row = tuple[str, int, int]

SPLITS: tuple[Mapping[str, str], ...] = (
    {},
    {"minPartitions": "5"},
    {"maxPartitions": "1"},
    {"maxRecordsPerPartition": "3"},
    {"minPartitions": "5", "maxPartitions": "6"},
)
GROUP = {"startingOffsets": "group", "kafka.group.id": "g"}


def plan(kit: Kit, options: Mapping[str, str]) -> tuple[BatchTask, ...]:
    planned = kit.container(options, QueryKind.BATCH).batch().plan_tasks()
    # As Spark keeps it.
    kept: tuple[BatchTask, ...] = pickle.loads(pickle.dumps(planned))  # noqa: S301
    return kept


def run(kit: Kit, tasks: Iterable[BatchTask], options: Mapping[str, str]) -> list[Row]:
    rows: list[Row] = []
    projection = Projection(("topic", "partition", "offset"))
    for task in tasks:
        container = kit.container(options, QueryKind.BATCH)
        ranges = container.batch_binding().bind(task)
        for _, batches in container.range_read().read_all(ranges, projection):
            rows += [tuple(row.values()) for batch in batches for row in batch.to_pylist()]
    return sorted(rows)


def produce_at(kit: Kit, partition: int, *times: int) -> None:
    for time in times:
        kit.cluster.produce("t", b"v", partition=partition, timestamp=time)


@pytest.fixture
def filled(kit):
    """Return a kit with records in one of two partitions, at the times 0, 10, ..., 90."""
    produce_at(kit, 0, *range(0, 100, 10))
    return kit


def more_records(kit: Kit) -> None:
    produce_at(kit, 0, 200, 210)
    produce_at(kit, 1, 5, 205)


def a_new_partition(kit: Kit) -> None:
    kit.cluster.add_partitions("t", 4)
    produce_at(kit, 3, 0, 50, 300)


def retention(kit: Kit) -> None:
    kit.cluster.delete_records({tp(0): 7})


def a_shorter_topic_of_the_same_name(kit: Kit) -> None:
    kit.cluster.delete_topic("t")
    kit.cluster.create_topic("t", 2)
    produce_at(kit, 0, 40, 60)


LATEST_IF_NONE = {"startingOffsetsByTimestampStrategy": "latest"}


@pytest.mark.parametrize("split", SPLITS, ids=str)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"startingTimestamp": "35", **LATEST_IF_NONE},
        {"startingTimestamp": "1", "endingTimestamp": "205", **LATEST_IF_NONE},
        {"startingTimestamp": "207", **LATEST_IF_NONE},
        {"endingTimestamp": "55"},
        {"startingOffsets": '{"t": "earliest"}', "endingOffsets": '{"t": "latest"}'},
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "change", [more_records, a_new_partition, retention, a_shorter_topic_of_the_same_name]
)
def test_a_plan_that_is_used_again_reads_what_a_new_one_does(filled, split, options, change):
    given = {**options, **split}
    before = plan(filled, given)
    assert run(filled, before, given) == run(filled, plan(filled, given), given)
    change(filled)
    again = run(filled, before, given)
    assert again == run(filled, plan(filled, given), given)
    assert len(set(again)) == len(again)


@pytest.mark.parametrize("split", SPLITS, ids=str)
def test_topics_that_match_later_are_read(filled, split):
    given = {"subscribePattern": "t.*", **split}
    before = plan(filled, given)
    filled.cluster.create_topic("t2", 2)
    filled.produce(3, partition=1, topic="t2")
    rows = run(filled, before, given)
    assert [row for row in rows if row[0] == "t2"] == [("t2", 1, offset) for offset in range(3)]
    assert len(rows) == 13


def test_assigned_partitions_that_come_later_are_read_and_no_others(filled):
    given = {"assign": '{"t": [0, 2]}'}
    before = plan(filled, given)
    filled.cluster.add_partitions("t", 4)
    filled.produce(1, partition=2)
    filled.produce(1, partition=3)
    assert {row[1] for row in run(filled, before, given)} == {0, 2}


@pytest.mark.parametrize("split", SPLITS, ids=str)
def test_an_empty_topic_is_filled_later(kit, split):
    before = plan(kit, split)
    kit.produce(2)
    kit.produce(1, partition=1)
    assert len(run(kit, before, split)) == 3


def test_one_task_asks_for_partitions_and_none_for_offsets(filled, monkeypatch):
    asked: list[str] = []
    tasks = plan(filled, {})

    def partitions(*_: object) -> frozenset[TopicPartition]:
        asked.append("partitions")
        return frozenset({tp(0), tp(1)})

    for name in ("earliest", "latest", "for_timestamps", "committed"):
        monkeypatch.setattr(MemoryOffsetFetcher, name, lambda *_, name=name: asked.append(name))
    monkeypatch.setattr(MemoryOffsetFetcher, "partitions", partitions)
    for task in tasks:
        filled.container({}, QueryKind.BATCH).batch_binding().bind(task)
    assert asked == ["partitions"]


@pytest.mark.parametrize("split", SPLITS, ids=str)
@pytest.mark.parametrize(
    "options",
    [
        {"startingOffsets": json.dumps({"t": {"0": 0, "1": 0}})},
        {"endingOffsets": json.dumps({"t": {"0": 10, "1": -1}})},
        {"startingOffsetsByTimestamp": json.dumps({"t": {"0": 0, "1": 9}})},
        {"endingOffsetsByTimestamp": json.dumps({"t": {"0": 200, "1": 200}})},
        {"startingTimestamp": "0"},
        GROUP,
    ],
    ids=str,
)
def test_partitions_that_come_later_and_have_no_bound_are_left_out_with_a_warning(
    filled, options, split
):
    produce_at(filled, 1, 20)
    filled.cluster.commit("g", PartitionOffsets({tp(0): 0, tp(1): 0}))
    given = {**options, **split}
    before = plan(filled, given)
    expected = run(filled, before, given)
    filled.cluster.add_partitions("t", 4)
    assert run(filled, before, given) == expected
    assert len(expected) == 11
    assert filled.events.named("partitions_left_out") == (({tp(2), tp(3)},),)


def test_partitions_that_come_later_are_read_where_they_have_a_bound(filled):
    produce_at(filled, 1, 20)
    before = plan(filled, {"startingTimestamp": "9"})
    filled.cluster.add_partitions("t", 4)
    produce_at(filled, 3, 20)
    rows = run(filled, before, {"startingTimestamp": "9"})
    assert [row for row in rows if row[1] > 1] == [("t", 3, 0)]
    assert filled.events.named("partitions_left_out") == (({tp(2)},),)


def test_specific_offsets_that_were_deleted_are_a_loss(filled):
    starts = {"startingOffsets": json.dumps({"t": {"0": 2, "1": 0}})}
    for split in SPLITS:
        before = plan(filled, {**starts, **split})
        assert len(run(filled, before, {**starts, **split})) == 8
    filled.cluster.delete_records({tp(0): 4})
    for split in SPLITS:
        with pytest.raises(DataLossError):
            run(filled, plan(filled, {**starts, **split}), {**starts, **split})


def test_a_start_after_its_end_is_refused_by_each_part(filled):
    given = {"startingTimestamp": "35", "minPartitions": "5", **LATEST_IF_NONE}
    ends = {**given, "endingOffsets": json.dumps({"t": {"0": 9, "1": 0}})}
    before = plan(filled, ends)
    filled.cluster.delete_records({tp(0): 10})
    produce_at(filled, 0, 0)
    with pytest.raises(ResolvedOffsetsError):
        run(filled, before, ends)


@pytest.mark.parametrize("split", [{}, {"maxPartitions": "1"}], ids=str)
def test_a_group_that_has_moved_is_followed(filled, split):
    filled.cluster.commit("g", PartitionOffsets({tp(0): 2, tp(1): 0}))
    given = {**GROUP, **split}
    before = plan(filled, given)
    assert len(run(filled, before, given)) == 8
    filled.cluster.commit("g", PartitionOffsets({tp(0): 7, tp(1): 0}))
    assert len(run(filled, before, given)) == 3


@pytest.mark.parametrize("split", SPLITS[3:], ids=str)
@pytest.mark.parametrize("committed", [{0: 2, 1: 0}, {1: 0}], ids=str)
def test_a_group_that_moves_while_split_partitions_are_read_leaves_no_hole(
    filled, split, committed
):
    filled.cluster.commit("g", {tp(number): offset for number, offset in committed.items()})
    given = {**GROUP, "startingOffsetsGroupFallback": "earliest", **split}
    tasks = plan(filled, given)
    rows: list[Row] = []
    for offset, task in enumerate(tasks, 3):
        rows += run(filled, [task], given)
        filled.cluster.commit("g", {tp(0): offset})
    first = committed.get(0, 0)
    assert sorted(rows) == [("t", 0, offset) for offset in range(first, 10)]


def test_deleted_offsets_of_a_group_are_a_loss(filled):
    filled.cluster.commit("g", PartitionOffsets({tp(0): 2, tp(1): 0}))
    plans = {str(split): plan(filled, {**GROUP, **split}) for split in SPLITS}
    filled.cluster.delete_records({tp(0): 4})
    for split in SPLITS:
        with pytest.raises(DataLossError):
            run(filled, plans[str(split)], {**GROUP, **split})


TIMES = {"startingTimestamp": "0", "startingOffsetsByTimestampStrategy": "latest"}
END_TIME = {"endingTimestamp": "55"}


@pytest.mark.parametrize("split", SPLITS, ids=str)
@pytest.mark.parametrize(
    "options",
    [{}, {"subscribePattern": "t.*"}, {"startingTimestamp": "9"}, TIMES, END_TIME],
    ids=str,
)
def test_a_deleted_topic_is_an_error(filled, split, options):
    produce_at(filled, 1, 20)
    given = {**options, **split}
    before = plan(filled, given)
    filled.cluster.delete_topic("t")
    for task in before:
        with pytest.raises(UnknownTopicError):
            run(filled, [task], given)
