"""Offsets and ranges of micro-batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pyspark_kafka.domain.errors import DataLossError
from pyspark_kafka.domain.offset_range import OffsetRange
from pyspark_kafka.domain.partition_offsets import PartitionOffsets

from .conftest import Kit, tp

if TYPE_CHECKING:
    from pyspark_kafka.application.micro_batch_stream import KafkaMicroBatchStream

GO_ON = {"failOnDataLoss": "false"}


def stream(kit: Kit, options: dict[str, str] | None = None) -> KafkaMicroBatchStream:
    made: KafkaMicroBatchStream = kit.container(options).micro_batch_stream()
    return made


def test_a_new_stream_begins_at_the_end(kit: Kit) -> None:
    """Without `startingOffsets` a stream reads what comes after its start."""
    kit.produce(3)
    assert stream(kit).initial_offset() == {tp(0): 3, tp(1): 0}
    assert kit.events.named("initial_offsets") == ((PartitionOffsets({tp(0): 3, tp(1): 0}),),)


def test_a_stream_can_begin_at_the_start(kit: Kit) -> None:
    """With `startingOffsets` earliest it reads what the brokers hold."""
    kit.produce(3)
    kit.cluster.delete_records({tp(0): 2})
    made = stream(kit, {"startingOffsets": "earliest"})
    assert made.initial_offset() == {tp(0): 2, tp(1): 0}


def test_a_batch_ends_at_the_latest_offsets(kit: Kit) -> None:
    """The latest offsets are the batch's end, and what is reported as the latest."""
    made = stream(kit)
    start = made.initial_offset()
    assert made.report_latest_offset() is None
    kit.produce(4, partition=1)
    assert made.latest_offset(start) == {tp(0): 0, tp(1): 4}
    assert made.report_latest_offset() == PartitionOffsets({tp(0): 0, tp(1): 4})


def test_an_answer_without_partitions_keeps_the_start(kit: Kit) -> None:
    """When every topic of a pattern is gone, the offsets stay where they were."""
    made = stream(kit, {"subscribePattern": "^t$"})
    start = made.initial_offset()
    kit.cluster.delete_topic("t")
    assert made.latest_offset(start) == start


def test_available_now_stops_at_what_it_found_first(kit: Kit) -> None:
    """Records that come after the first look are left for the next run."""
    made = stream(kit)
    start = made.initial_offset()
    made.prepare_for_trigger_available_now()
    kit.produce(3)
    end = made.latest_offset(start)
    kit.produce(3)
    assert end == {tp(0): 3, tp(1): 0}
    assert made.latest_offset(end) == end


def test_each_partition_with_records_is_a_range(kit: Kit) -> None:
    """Partitions without new offsets make no task."""
    start, end = PartitionOffsets({tp(0): 2, tp(1): 7}), PartitionOffsets({tp(0): 5, tp(1): 7})
    assert stream(kit).plan_input_partitions(start, end) == (OffsetRange(tp(0), 2, 5),)


def test_an_added_partition_is_read_from_its_beginning(kit: Kit) -> None:
    """A partition that was not there before starts at 0, and is reported."""
    kit.cluster.add_partitions("t", 3)
    kit.produce(4, partition=2)
    start = PartitionOffsets({tp(0): 0, tp(1): 0})
    ranges = stream(kit).plan_input_partitions(start, start.merge({tp(2): 4}))
    assert ranges == (OffsetRange(tp(2), 0, 4),)
    assert kit.events.named("partitions_added") == ((PartitionOffsets({tp(2): 0}),),)


LOSSES = {
    "an added partition whose start is gone": (
        PartitionOffsets({tp(0): 0}),
        PartitionOffsets({tp(0): 0, tp(1): 5}),
        "ADDED_PARTITION_DOES_NOT_START_FROM_OFFSET_ZERO",
        "Added partition t-1 starts from 3 instead of 0.",
        (OffsetRange(tp(1), 3, 5),),
    ),
    "an added partition that went again": (
        PartitionOffsets({tp(0): 0}),
        PartitionOffsets({tp(0): 0, tp(9): 5}),
        "INITIAL_OFFSET_NOT_FOUND_FOR_PARTITIONS",
        "Cannot find initial offsets for partitions Set(t-9). They may have been deleted.",
        (),
    ),
    "a partition that was deleted": (
        PartitionOffsets({tp(0): 0, tp(7): 1}),
        PartitionOffsets({tp(0): 2}),
        "PARTITIONS_DELETED",
        "Partitions Set(t-7) have been deleted.",
        (OffsetRange(tp(0), 0, 2),),
    ),
    "a partition that ends before its start": (
        PartitionOffsets({tp(0): 5, tp(1): 3}),
        PartitionOffsets({tp(0): 1, tp(1): 5}),
        "PARTITION_OFFSET_CHANGED",
        "Partition t-0 offset was changed from 5 to 1.",
        (OffsetRange(tp(1), 3, 5),),
    ),
}


@pytest.mark.parametrize("case", LOSSES)
def test_what_is_lost_fails_the_query(kit: Kit, case: str) -> None:
    """With failOnDataLoss each finding is an error in the JVM connector's words."""
    kit.produce(5, partition=1)
    kit.cluster.delete_records({tp(1): 3})
    start, end, condition, reason, _ = LOSSES[case]
    with pytest.raises(DataLossError) as caught:
        stream(kit).plan_input_partitions(start, end)
    assert caught.value.sub_condition == condition
    assert f"Reason: {reason}" in str(caught.value)
    assert kit.events.named("data_lost") == ()


@pytest.mark.parametrize("case", LOSSES)
def test_what_is_lost_is_reported_when_the_query_may_go_on(kit: Kit, case: str) -> None:
    """Without failOnDataLoss each finding is reported once, and the rest is read."""
    kit.produce(5, partition=1)
    kit.cluster.delete_records({tp(1): 3})
    start, end, condition, _, ranges = LOSSES[case]
    assert stream(kit, GO_ON).plan_input_partitions(start, end) == ranges
    [[loss]] = kit.events.named("data_lost")
    assert loss.condition == condition  # type: ignore[attr-defined]


def test_a_group_id_is_suspected_when_partitions_are_gone(kit: Kit) -> None:
    """With `kafka.group.id` set, the error says why that is unsafe."""
    made = stream(kit, {"kafka.group.id": "mine"})
    with pytest.raises(DataLossError, match="This option is unsafe to use") as caught:
        made.plan_input_partitions(PartitionOffsets({tp(7): 1}), PartitionOffsets())
    assert caught.value.sub_condition == "PARTITIONS_DELETED_AND_GROUP_ID_CONFIG_PRESENT"


def test_a_stream_is_named_as_in_the_jvm_connector(kit: Kit) -> None:
    """Its name tells what it is subscribed to."""
    assert str(stream(kit)) == "KafkaV2[Subscribe[t]]"
