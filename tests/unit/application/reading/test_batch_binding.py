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
from pyspark_kafka.domain.reading.data_loss import DataLoss
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


def lost(kit: Kit) -> list[str]:
    losses = [loss for (loss,) in kit.events.named("data_lost")]
    return [loss.warning for loss in losses if isinstance(loss, DataLoss)]


@pytest.mark.parametrize(
    "options",
    [{}, {"startingTimestamp": "5", **LATEST_IF_NONE}, {"startingOffsets": '{"t": "earliest"}'}],
    ids=str,
)
@pytest.mark.parametrize("fails", ["true", "false"])
def test_records_deleted_between_the_tasks_of_a_split_partition_are_reported(kit, options, fails):
    produce_at(kit, 0, *range(100))
    given = {**options, "minPartitions": "4", "failOnDataLoss": fails}
    tasks = plan(kit, given)
    rows = run(kit, tasks[:1], given)
    kit.cluster.delete_records({tp(0): 60})
    rows += run(kit, tasks[1:], given)
    read = [row[2] for row in rows]
    missing = sorted(set(range(read[0], 100)) - set(read))
    first, inner = tasks[1].parts[0].start or 0, tasks[1].parts[0].end
    assert missing == list(range(first, 60))
    assert lost(kit) == [
        f"Skip missing records in [{first}, {inner}) of t-0",
        f"Skip missing records in [{inner}, 60) of t-0",
    ]


@pytest.mark.parametrize(
    "options", [{"startingOffsets": json.dumps({"t": {"0": 0, "1": 0}})}, GROUP], ids=str
)
def test_records_of_fixed_offsets_deleted_between_tasks_are_lost_as_the_options_say(kit, options):
    produce_at(kit, 0, *range(100))
    kit.cluster.commit("g", PartitionOffsets({tp(0): 0, tp(1): 0}))
    given = {**options, "minPartitions": "4"}
    tasks = plan(kit, given)
    run(kit, tasks[:1], given)
    kit.cluster.delete_records({tp(0): 40})
    with pytest.raises(DataLossError):
        run(kit, tasks[1:2], given)
    skipping = {**given, "failOnDataLoss": "false"}
    assert [row[2] for row in run(kit, tasks[1:], skipping)] == list(range(40, 100))
    assert lost(kit) == ["Skip missing records in [25, 40) of t-0"]


def test_records_deleted_before_an_action_are_not_lost_in_the_first_part(kit):
    produce_at(kit, 0, *range(100))
    given = {"minPartitions": "4"}
    tasks = plan(kit, given)
    kit.cluster.delete_records({tp(0): 10})
    assert [row[2] for row in run(kit, tasks, given)] == list(range(10, 100))
    assert lost(kit) == []


def test_parts_look_up_only_their_open_bounds(kit, monkeypatch):
    produce_at(kit, 0, *range(100))
    given = {"minPartitions": "4"}
    tasks = plan(kit, given)
    asked: list[str] = []

    def watch(name: str) -> None:
        method = getattr(MemoryOffsetFetcher, name)

        def call(*arguments: object) -> object:
            asked.append(name)
            return method(*arguments)

        monkeypatch.setattr(MemoryOffsetFetcher, name, call)

    for name in ("partitions", "earliest", "latest", "for_timestamps", "committed"):
        watch(name)
    for task in tasks:
        run(kit, [task], given)
        asked.append("-")
    # The last task also reads the partition that was empty.
    assert asked == ["earliest", "-", "-", "-", "partitions", "earliest", "latest", "-"]


def test_a_start_after_its_end_is_refused(filled):
    given = {"startingTimestamp": "35", "minPartitions": "5", **LATEST_IF_NONE}
    ends = {**given, "endingOffsets": json.dumps({"t": {"0": 9, "1": 0}})}
    before = plan(filled, ends)
    filled.cluster.delete_records({tp(0): 10})
    produce_at(filled, 0, 0)
    with pytest.raises(ResolvedOffsetsError):
        run(filled, before, ends)


@pytest.mark.parametrize("split", SPLITS, ids=str)
def test_a_kept_start_after_its_end_is_refused(filled, split):
    """A new plan would be; rows of the other partitions alone seem to be all."""
    filled.cluster.commit("g", PartitionOffsets({tp(0): 9, tp(1): 0}))
    given = {**GROUP, **split, "endingTimestamp": "95"}
    before = plan(filled, given)
    assert run(filled, before, given) == [("t", 0, 9)]
    filled.cluster.delete_topic("t")
    filled.cluster.create_topic("t", 2)
    produce_at(filled, 0, 50, 100)
    with pytest.raises(ResolvedOffsetsError, match=r"start offset 9 .* end offset 1"):
        run(filled, before, given)


@pytest.mark.parametrize("split", SPLITS, ids=str)
@pytest.mark.parametrize("committed", [{0: 2, 1: 0}, {0: 10, 1: 0}, {1: 0}], ids=str)
def test_a_group_that_commits_while_tasks_run_leaves_no_hole(filled, split, committed):
    filled.cluster.commit("g", {tp(number): offset for number, offset in committed.items()})
    given = {**GROUP, "startingOffsetsGroupFallback": "earliest", **split}
    tasks = plan(filled, given)
    produce_at(filled, 0, 100, 110)
    rows: list[Row] = []
    for offset, task in enumerate(tasks, 3):
        filled.cluster.commit("g", {tp(0): min(offset * 3, 12)})
        rows += run(filled, [task], given)
    first = committed.get(0, 0)
    assert sorted(rows) == [("t", 0, offset) for offset in range(first, 12)]


@pytest.mark.parametrize("split", SPLITS, ids=str)
def test_a_plan_keeps_the_offsets_of_its_group(filled, split):
    filled.cluster.commit("g", PartitionOffsets({tp(0): 2, tp(1): 0}))
    given = {**GROUP, **split}
    before = plan(filled, given)
    assert len(run(filled, before, given)) == 8
    filled.cluster.commit("g", PartitionOffsets({tp(0): 7, tp(1): 0}))
    assert len(run(filled, before, given)) == 8
    assert len(run(filled, plan(filled, given), given)) == 3


@pytest.mark.parametrize("split", SPLITS, ids=str)
def test_tasks_do_not_ask_a_group_for_planned_offsets(filled, split, monkeypatch):
    filled.cluster.commit("g", PartitionOffsets({tp(0): 2, tp(1): 0}))
    given = {**GROUP, **split}
    before = plan(filled, given)
    asked: list[object] = []
    monkeypatch.setattr(MemoryOffsetFetcher, "committed", lambda *facts: asked.append(facts))
    assert len(run(filled, before, given)) == 8
    assert asked == []


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


def test_a_start_that_moves_to_a_record_that_now_matches_is_no_loss(kit):
    """Records before it are older than the time; the options start at the end without a match."""
    options = {
        "startingTimestamp": "1000",
        "startingOffsetsByTimestampStrategy": "latest",
        "minPartitions": "4",
    }
    produce_at(kit, 0, 1_000, 1_000, 1_000, 1_000)
    tasks = plan(kit, options)
    kit.cluster.delete_topic("t")
    kit.cluster.create_topic("t", 2)
    produce_at(kit, 0, 500, 500, 500, 1_000)
    assert run(kit, tasks, options) == [("t", 0, 3)]
    assert lost(kit) == []
