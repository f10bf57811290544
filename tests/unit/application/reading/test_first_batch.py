from collections.abc import Iterable
from typing import Final

import pytest

from pyspark_kafka.application.reading.stream import KafkaMicroBatchStream
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.reading.admission import ReadAllAvailable
from pyspark_kafka.domain.reading.errors import DataLossError
from pyspark_kafka.domain.reading.ranges import OffsetRange
from pyspark_kafka.domain.topic_partition import TopicPartition

from ..conftest import Kit, offsets, tp


def stream(kit: Kit, options: dict[str, str] | None = None) -> KafkaMicroBatchStream:
    return kit.container(options).micro_batch_stream()


def produce(kit: Kit, count: int, timestamp: int, partition: int = 0) -> None:
    for _ in range(count):
        kit.cluster.produce("t", b"v", partition=partition, timestamp=timestamp)


def ranges_of(ranges: Iterable[OffsetRange], partition: TopicPartition) -> set[int]:
    """Return the offsets that are read in a partition, each of them once."""
    found = [
        offset
        for one in ranges
        if one.partition == partition
        for offset in range(one.from_offset, one.until_offset)
    ]
    assert len(found) == len(set(found))
    return set(found)


LATER_STARTS: Final = [
    {},
    {"startingOffsets": '{"t":{"0":-1,"1":-1}}'},
    {"startingOffsets": '{"t":"latest"}'},
    {"startingTimestamp": "1000", "startingOffsetsByTimestampStrategy": "latest"},
    {
        "startingOffsetsByTimestamp": '{"t":{"0":1000,"1":1000}}',
        "startingOffsetsByTimestampStrategy": "latest",
    },
    {
        "startingOffsets": "group",
        "kafka.group.id": "g",
        "startingOffsetsGroupFallback": "latest",
    },
]


@pytest.mark.parametrize("options", LATER_STARTS)
@pytest.mark.parametrize("add_partition", [False, True])
def test_a_first_batch_that_runs_again_skips_no_record(kit, options, add_partition):
    """Spark has logged the end of the first batch only; records arrived before the restart."""
    produce(kit, 3, 500)
    made = stream(kit, options)
    start = made.initial_offset()
    produce(kit, 2, 2_000)
    end = made.latest_offset(start, ReadAllAvailable())
    produce(kit, 4, 2_000)
    if add_partition:
        kit.cluster.add_partitions("t", 3)
    restarted = stream(kit, options)
    ranges = [
        *restarted.plan_input_partitions(restarted.initial_offset(), end),
        *restarted.plan_input_partitions(end, restarted.latest_offset(end, ReadAllAvailable())),
    ]
    assert ranges_of(ranges, tp(0)) == set(range(3, 9))
    assert kit.events.named("data_lost") == ()


STARTS_WITHOUT_NAMES: Final = [LATER_STARTS[0], LATER_STARTS[3], LATER_STARTS[5]]
"""Those that are valid before there is any topic."""

PINNED_STARTS: Final = [
    {"startingOffsets": '{"t":{"0":1,"1":0}}'},
    {"startingOffsets": '{"t":{"0":1,"1":-2}}'},
    {"startingOffsetsByTimestamp": '{"t":{"0":1000,"1":1000}}'},
    {"startingTimestamp": "1000"},
    {"startingOffsets": "group", "kafka.group.id": "g"},
]


@pytest.mark.parametrize("options", PINNED_STARTS)
def test_a_first_batch_runs_again_after_a_partition_was_added(kit, options):
    """A new query would be refused: its options do not cover the partition."""
    produce(kit, 1, 500)
    produce(kit, 4, 2_000)
    produce(kit, 1, 2_000, partition=1)
    kit.cluster.commit("g", {tp(0): 1, tp(1): 0})
    made = stream(kit, options)
    end = made.latest_offset(made.initial_offset(), ReadAllAvailable())
    kit.cluster.add_partitions("t", 3)
    kit.produce(2)
    restarted = stream(kit, options)
    start = restarted.initial_offset()
    assert restarted.plan_input_partitions(start, end) == (
        OffsetRange(tp(0), 1, 5),
        OffsetRange(tp(1), 0, 1),
    )


@pytest.mark.parametrize("options", [{"startingOffsets": "earliest"}, *LATER_STARTS])
def test_a_partition_that_is_added_while_the_first_batch_is_planned_is_read_whole(kit, options):
    made = stream(kit, options)
    start = made.initial_offset()
    kit.cluster.add_partitions("t", 3)
    produce(kit, 2, 2_000, partition=2)
    end = made.latest_offset(start, ReadAllAvailable())
    produce(kit, 2, 2_000, partition=2)
    restarted = stream(kit, options)
    ranges = [
        *restarted.plan_input_partitions(restarted.initial_offset(), end),
        *restarted.plan_input_partitions(end, restarted.latest_offset(end, ReadAllAvailable())),
    ]
    assert ranges_of(ranges, tp(2)) == {0, 1, 2, 3}


@pytest.mark.parametrize("options", [{"startingOffsets": "earliest"}, *STARTS_WITHOUT_NAMES])
def test_a_topic_that_is_created_before_the_first_batch_is_read_whole(kit, options):
    """While there is no partition, no batch is logged: the first one may be planned much later."""
    pattern = options | {"subscribePattern": "new.*"}
    made = stream(kit, pattern)
    assert made.latest_offset(made.initial_offset(), ReadAllAvailable()) == {}
    kit.cluster.create_topic("new1", 1)
    kit.produce(5, topic="new1")
    end = made.latest_offset(made.initial_offset(), ReadAllAvailable())
    assert made.plan_input_partitions(made.initial_offset(), end) == ()
    kit.produce(2, topic="new1")
    restarted = stream(kit, pattern)
    ranges = [
        *restarted.plan_input_partitions(restarted.initial_offset(), end),
        *restarted.plan_input_partitions(end, restarted.latest_offset(end, ReadAllAvailable())),
    ]
    assert ranges_of(ranges, tp(0, "new1")) == set(range(7))
    assert kit.events.named("data_lost") == ()


def test_a_first_batch_whose_partitions_were_all_replaced_reports_them(kit):
    made = stream(kit, {"subscribePattern": ".*", "failOnDataLoss": "false"})
    start = made.initial_offset()
    kit.cluster.delete_topic("t")
    kit.cluster.create_topic("new1", 1)
    kit.produce(5, topic="new1")
    end = made.latest_offset(start, ReadAllAvailable())
    assert end == {tp(0, "new1"): 0}
    made.plan_input_partitions(start, end)
    assert len(kit.events.named("data_lost")) == 1


def test_a_first_batch_whose_group_has_moved_past_its_end_is_a_data_loss(kit):
    options = {"startingOffsets": "group", "kafka.group.id": "g"}
    kit.produce(5)
    kit.cluster.commit("g", {tp(0): 1, tp(1): 0})
    made = stream(kit, options)
    end = made.latest_offset(made.initial_offset(), ReadAllAvailable())
    kit.produce(5)
    kit.cluster.commit("g", {tp(0): 7, tp(1): 0})
    restarted = stream(kit, options)
    with pytest.raises(DataLossError, match="'metadataPath'") as caught:
        restarted.plan_input_partitions(restarted.initial_offset(), end)
    assert caught.value.sub_condition == "FIRST_BATCH_START_UNKNOWN"
    going_on = stream(kit, options | {"failOnDataLoss": "false"})
    assert going_on.plan_input_partitions(going_on.initial_offset(), end) == ()
    assert len(kit.events.named("data_lost")) == 1


def test_a_group_whose_offset_was_never_reached_has_not_moved(kit):
    """The log ends before it: the report is the one of the first run."""
    options = {"startingOffsets": "group", "kafka.group.id": "g", "failOnDataLoss": "false"}
    kit.produce(5)
    kit.cluster.commit("g", {tp(0): 9, tp(1): 0})
    made = stream(kit, options)
    end = made.latest_offset(made.initial_offset(), ReadAllAvailable())
    restarted = stream(kit, options)
    assert restarted.plan_input_partitions(restarted.initial_offset(), end) == ()
    [(loss,)] = kit.events.named("data_lost")
    assert loss.condition == "PARTITION_OFFSET_CHANGED"


def test_a_group_without_offsets_has_not_moved_if_retention_passes_the_first_batch(kit):
    options = {
        "startingOffsets": "group",
        "startingOffsetsGroupFallback": "earliest",
        "kafka.group.id": "g",
        "failOnDataLoss": "false",
    }
    kit.produce(5)
    made = stream(kit, options)
    end = made.latest_offset(made.initial_offset(), ReadAllAvailable())
    kit.produce(5)
    kit.cluster.delete_records({tp(0): 6})
    restarted = stream(kit, options)
    restarted.plan_input_partitions(restarted.initial_offset(), end)
    [(loss,)] = kit.events.named("data_lost")
    assert loss.condition == "PARTITION_OFFSET_CHANGED"


TIMES: Final = [
    {"startingTimestamp": "1000"},
    {"startingOffsetsByTimestamp": '{"t":{"0":1000,"1":1000}}'},
]
LATEST_WITHOUT_MATCH: Final = {"startingOffsetsByTimestampStrategy": "latest"}


def run_again(kit: Kit, options: dict[str, str], end: PartitionOffsets) -> set[int]:
    restarted = stream(kit, options)
    ranges = restarted.plan_input_partitions(restarted.initial_offset(), end)
    return ranges_of(ranges, tp(0))


@pytest.mark.parametrize("options", TIMES)
@pytest.mark.parametrize("strategy", [{}, LATEST_WITHOUT_MATCH])
@pytest.mark.parametrize("later", [0, 3])
def test_a_first_batch_whose_records_since_a_time_were_all_deleted_is_a_data_loss(
    kit, options, strategy, later
):
    """Records that were added later match the time, but are not those of the batch."""
    options = options | strategy
    produce(kit, 1, 500)
    produce(kit, 9, 2_000)
    produce(kit, 1, 2_000, partition=1)
    made = stream(kit, options)
    end = made.latest_offset(made.initial_offset(), ReadAllAvailable())
    produce(kit, later, 3_000)
    kit.cluster.delete_records({tp(0): 10})
    with pytest.raises(
        DataLossError, match=r"Set\(t-0\) is unknown: .* deleted.*'metadataPath'"
    ) as caught:
        run_again(kit, options, end)
    assert caught.value.sub_condition == "FIRST_BATCH_START_UNKNOWN"
    assert run_again(kit, options | {"failOnDataLoss": "false"}, end) == set()
    assert len(kit.events.named("data_lost")) == 1


@pytest.mark.parametrize("options", TIMES)
def test_a_first_batch_since_a_time_that_older_records_survived_is_a_data_loss(kit, options):
    """Without the strategy 'latest', the batch had a record of the time: it was deleted."""
    produce(kit, 5, 2_000)
    produce(kit, 5, 500)
    produce(kit, 1, 2_000, partition=1)
    made = stream(kit, options)
    end = made.latest_offset(made.initial_offset(), ReadAllAvailable())
    kit.cluster.delete_records({tp(0): 5})
    with pytest.raises(DataLossError, match="'metadataPath'"):
        run_again(kit, options, end)


@pytest.mark.parametrize("options", TIMES)
@pytest.mark.parametrize("deleted", [0, 2])
@pytest.mark.parametrize("later", [0, 3])
def test_a_first_batch_that_no_record_matched_has_lost_none(kit, options, deleted, later):
    options = options | LATEST_WITHOUT_MATCH
    produce(kit, 5, 500)
    kit.cluster.delete_records({tp(0): deleted})
    made = stream(kit, options)
    end = made.latest_offset(made.initial_offset(), ReadAllAvailable())
    produce(kit, later, 2_000)
    assert run_again(kit, options, end) == set()
    assert kit.events.named("data_lost") == ()


@pytest.mark.parametrize("options", TIMES)
def test_an_empty_first_batch_whose_start_is_stored_has_lost_no_record(kit, options):
    options = options | LATEST_WITHOUT_MATCH | {"metadataPath": "memory://stored-empty"}
    produce(kit, 5, 500)
    kit.cluster.delete_records({tp(0): 5})
    made = stream(kit, options)
    end = made.latest_offset(made.initial_offset(), ReadAllAvailable())
    assert run_again(kit, options, end) == set()
    assert kit.events.named("data_lost") == ()


def test_a_first_batch_whose_start_is_stored_has_the_records_since_then(kit):
    options = {"metadataPath": "memory://stored"}
    made = stream(kit, options)
    start = made.initial_offset()
    kit.produce(2)
    end = made.latest_offset(start, ReadAllAvailable())
    assert end == offsets(2, 0)
    kit.produce(3)
    restarted = stream(kit, options)
    ranges = restarted.plan_input_partitions(restarted.initial_offset(), end)
    assert ranges_of(ranges, tp(0)) == {0, 1}


def test_a_log_of_initial_offsets_that_is_added_later_does_not_stop_the_query(kit):
    made = stream(kit)
    end = made.latest_offset(made.initial_offset(), ReadAllAvailable())
    kit.produce(5)
    for _ in range(2):
        restarted = stream(kit, {"metadataPath": "memory://added-later"})
        assert restarted.plan_input_partitions(restarted.initial_offset(), end) == ()


def test_a_start_beyond_the_log_is_still_a_data_loss_after_a_restart(kit):
    kit.produce(5)
    for made in (stream(kit, {"startingOffsets": '{"t":{"0":9,"1":0}}'}) for _ in range(2)):
        with pytest.raises(DataLossError, match="changed from 9 to 5"):
            made.plan_input_partitions(made.initial_offset(), offsets(5, 0))


@pytest.mark.parametrize("options", LATER_STARTS)
def test_a_first_batch_that_starts_at_the_end_is_empty_again_if_the_end_is_lower_now(kit, options):
    """The topic was created again; a broker that lags answers the same."""
    kit.cluster.commit("g", {})
    produce(kit, 3, 500)
    made = stream(kit, options)
    end = made.latest_offset(made.initial_offset(), ReadAllAvailable())
    assert end == offsets(3, 0)
    kit.cluster.delete_topic("t")
    kit.cluster.create_topic("t", 2)
    produce(kit, 2, 500)
    restarted = stream(kit, options)
    assert restarted.plan_input_partitions(restarted.initial_offset(), end) == ()


def test_a_stored_start_that_a_new_topic_does_not_reach_is_a_data_loss_after_each_restart(kit):
    options = {"metadataPath": "memory://recreated"}
    kit.produce(5)
    assert stream(kit, options).initial_offset() == offsets(5, 0)
    kit.cluster.delete_topic("t")
    kit.cluster.create_topic("t", 2)
    for _ in range(2):
        made = stream(kit, options)
        with pytest.raises(DataLossError, match="changed from 5 to 0"):
            made.plan_input_partitions(made.initial_offset(), offsets(0, 0))


@pytest.mark.parametrize("offset", ["-1", "-2"])
def test_a_first_batch_whose_partition_is_gone_runs_again_with_a_report(kit, offset):
    options = {"startingOffsets": f'{{"t":{{"0":0,"1":{offset}}}}}', "failOnDataLoss": "false"}
    kit.produce(2)
    made = stream(kit, options)
    end = made.latest_offset(made.initial_offset(), ReadAllAvailable())
    kit.cluster.delete_topic("t")
    kit.cluster.create_topic("t", 1)
    kit.produce(3)
    restarted = stream(kit, options)
    ranges = restarted.plan_input_partitions(restarted.initial_offset(), end)
    assert ranges_of(ranges, tp(0)) == {0, 1}


@pytest.mark.parametrize("is_pattern", [False, True])
def test_a_stored_start_beyond_a_partition_that_is_gone_since_is_reported(kit, is_pattern):
    """The error that its topic does not exist would end each restart."""
    path = f"memory://gone-{is_pattern}"
    options = {"metadataPath": path, "failOnDataLoss": "false", "fetchOffset.numRetries": "1"}
    if is_pattern:
        options |= {"subscribe": "", "subscribePattern": "^t$"}
    kit.cluster.produce("t", b"v", partition=1)
    stream(kit, options).initial_offset()
    kit.cluster.delete_topic("t")
    kit.cluster.create_topic("t", 1)
    restarted = stream(kit, options)
    assert restarted.plan_input_partitions(restarted.initial_offset(), offsets(0, 0)) == ()
    [(loss,)] = kit.events.named("data_lost")
    assert loss.condition == "PARTITION_OFFSET_CHANGED"
