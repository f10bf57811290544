"""Offsets and ranges of micro-batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pyspark_kafka.application.errors import (
    NoOffsetForTimestampError,
    OffsetsMismatchError,
    StreamOffsetsMismatchError,
    TimestampsMismatchError,
    TopicOffsetsMismatchError,
)
from pyspark_kafka.domain.errors import DataLossError
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.reading.admission import (
    CompositeReadLimit,
    ReadAllAvailable,
    ReadMaxRows,
    ReadMinRows,
)
from pyspark_kafka.domain.reading.available_now import (
    AvailableNowError,
    EndBeyondLatestError,
    EndBeyondPrefetchedError,
    LostPartitionsError,
    PartitionsNotPrefetchedError,
)
from pyspark_kafka.domain.reading.ranges import OffsetRange

from ..conftest import Kit, tp

if TYPE_CHECKING:
    from pyspark_kafka.application.reading.micro_batch_stream import KafkaMicroBatchStream

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


def test_a_stream_begins_where_it_said_first(kit: Kit) -> None:
    """Before the first commit the initial offsets stay the same, also with new records."""
    made = stream(kit)
    first = made.initial_offset()
    kit.produce(3)
    assert made.initial_offset() == first
    assert len(kit.events.named("initial_offsets")) == 1


def test_a_batch_ends_at_the_latest_offsets(kit: Kit) -> None:
    """The latest offsets are the batch's end, and what is reported as the latest."""
    made = stream(kit)
    start = made.initial_offset()
    assert made.report_latest_offset() is None
    kit.produce(4, partition=1)
    assert made.latest_offset(start, ReadAllAvailable()) == {tp(0): 0, tp(1): 4}
    assert made.report_latest_offset() == PartitionOffsets({tp(0): 0, tp(1): 4})


def test_an_answer_without_partitions_keeps_the_start(kit: Kit) -> None:
    """When every topic of a pattern is gone, the offsets stay where they were."""
    made = stream(kit, {"subscribePattern": "^t$"})
    start = made.initial_offset()
    kit.cluster.delete_topic("t")
    assert made.latest_offset(start, ReadAllAvailable()) == start


def test_available_now_stops_at_what_it_found_first(kit: Kit) -> None:
    """Records that come after the first look are left for the next run."""
    made = stream(kit)
    start = made.initial_offset()
    made.prepare_for_trigger_available_now()
    kit.produce(3)
    end = made.latest_offset(start, ReadAllAvailable())
    kit.produce(3)
    assert end == {tp(0): 3, tp(1): 0}
    assert made.latest_offset(end, ReadAllAvailable()) == end


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


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        (
            {"startingOffsets": '{"t":{"0":3}}'},
            StreamOffsetsMismatchError,
            "If startingOffsets contains specific offsets, you must specify all TopicPartitions.",
        ),
        (
            {"startingOffsetsByTimestamp": '{"t":{"0":3}}'},
            TimestampsMismatchError,
            "timestamp based start offsets",
        ),
        (
            {"startingOffsets": '{"u":"earliest"}'},
            TopicOffsetsMismatchError,
            "no assigned partitions: u",
        ),
        (
            {"startingTimestamp": "5"},
            NoOffsetForTimestampError,
            "No offset matched from request of topic-partition t-0 and timestamp 5.",
        ),
    ],
)
def test_a_beginning_that_does_not_fit(
    kit: Kit, options: dict[str, str], error: type[Exception], text: str
) -> None:
    """A stream whose options do not fit the topic fails when it begins."""
    with pytest.raises(error, match=text):
        stream(kit, options).initial_offset()
    assert kit.events.named("initial_offsets") == ()


def test_a_mismatch_of_a_stream_is_a_mismatch(kit: Kit) -> None:
    """The error of a stream is a subclass of a batch query's error."""
    with pytest.raises(OffsetsMismatchError):
        stream(kit, {"startingOffsets": '{"t":{"0":3}}'}).initial_offset()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"startingOffsets": '{"t":{"0":3,"1":-1}}'}, (3, 2)),
        ({"startingOffsets": '{"t":{"0":-2,"1":-2}}'}, (1, 0)),
        # The brokers are not asked whether they hold such an offset.
        ({"startingOffsets": '{"t":{"0":99,"1":0}}'}, (99, 0)),
        ({"startingOffsets": '{"t":"earliest"}'}, (1, 0)),
        ({"startingOffsets": '{"t":"latest"}'}, (4, 2)),
        ({"startingTimestamp": "30"}, (2, 0)),
        ({"startingOffsetsByTimestamp": '{"t":{"0":40,"1":31}}'}, (3, 1)),
        (
            {"startingTimestamp": "99", "startingOffsetsByTimestampStrategy": "latest"},
            (4, 2),
        ),
    ],
)
def test_a_beginning_is_bound_when_the_stream_begins(
    kit: Kit, options: dict[str, str], expected: tuple[int, int]
) -> None:
    """With any starting option, the first offsets are offsets of the log."""
    for time in (10, 20, 30, 40):
        kit.cluster.produce("t", b"v", timestamp=time)
    for time in (30, 40):
        kit.cluster.produce("t", b"v", partition=1, timestamp=time)
    kit.cluster.delete_records({tp(0): 1})
    assert stream(kit, options).initial_offset() == dict(zip((tp(0), tp(1)), expected, strict=True))


def test_the_options_make_the_default_limit(kit: Kit) -> None:
    """Without limits a batch reads everything, with several it keeps all of them."""
    assert stream(kit).default_read_limit == ReadAllAvailable()
    limits = {"minOffsetsPerTrigger": "15", "maxTriggerDelay": "5s", "maxOffsetsPerTrigger": "20"}
    assert stream(kit, limits).default_read_limit == CompositeReadLimit(
        (ReadMinRows(15, 5_000), ReadMaxRows(20))
    )


def sizes(made: KafkaMicroBatchStream, start: PartitionOffsets, batches: int) -> list[list[int]]:
    """Return the sizes of the ranges of some batches under the default limit."""
    found = []
    for _ in range(batches):
        end = made.latest_offset(start, made.default_read_limit)
        found.append([one.size for one in made.plan_input_partitions(start, end)])
        start = end
    return found


def test_tasks_of_small_ranges(kit: Kit) -> None:
    """With maxPartitions several ranges share a task; without it each has its own."""
    kit.produce(3)
    kit.produce(2, partition=1)
    ranges = OffsetRange(tp(0), 0, 3), OffsetRange(tp(1), 0, 2)
    start, end = PartitionOffsets({tp(0): 0, tp(1): 0}), PartitionOffsets({tp(0): 3, tp(1): 2})
    assert stream(kit).plan_tasks(start, end) == tuple((one,) for one in ranges)
    assert stream(kit, {"maxPartitions": "1"}).plan_tasks(start, end) == (ranges,)


@pytest.mark.parametrize(
    ("partitions", "offsets", "options", "is_reported"),
    [
        (301, 999, {}, True),
        (300, 1, {}, False),
        (301, 1_000, {}, False),
        (301, 1, {"maxPartitions": "1000"}, False),
    ],
)
def test_many_small_tasks_are_reported(
    kit: Kit, partitions: int, offsets: int, options: dict[str, str], *, is_reported: bool
) -> None:
    """Once, with their number, unless the query says how many tasks it wants."""
    kit.cluster.add_partitions("t", partitions)
    made = stream(kit, options)
    start = PartitionOffsets({tp(number): 0 for number in range(partitions)})
    for step in (1, 2):
        end = PartitionOffsets({tp(number): step * offsets for number in range(partitions)})
        assert len(made.plan_tasks(start, end)) == partitions
        start = end
    expected = ((partitions, partitions * offsets),) if is_reported else ()
    assert kit.events.named("tasks_are_small") == expected


def test_a_limit_on_offsets_over_batches(kit: Kit) -> None:
    """Ten at a time of 101, 11 and 1 records are 8, 1 and 1, then 9 and 1."""
    kit.cluster.add_partitions("t", 3)
    for partition, count in enumerate((101, 11, 1)):
        kit.produce(count, partition)
    made = stream(kit, {"startingOffsets": "earliest", "maxOffsetsPerTrigger": "10"})
    start = made.initial_offset()
    assert sizes(made, start, 2) == [[8, 1, 1], [9, 1]]
    assert made.latest_offset(start, ReadAllAvailable()) == {tp(0): 101, tp(1): 11, tp(2): 1}


def test_limits_together_over_batches(kit: Kit) -> None:
    """At least 15 and at most 20 of 33 records make 19; 14 are left, and wait for their time."""
    kit.cluster.add_partitions("t", 3)
    for partition, count in enumerate((21, 11, 1)):
        kit.produce(count, partition)
    made = stream(
        kit,
        {
            "startingOffsets": "earliest",
            "minOffsetsPerTrigger": "15",
            "maxOffsetsPerTrigger": "20",
            "maxTriggerDelay": "5s",
        },
    )
    assert sizes(made, made.initial_offset(), 2) == [[12, 6, 1], []]
    kit.clock.sleep_ms(5_000)
    start = PartitionOffsets({tp(0): 12, tp(1): 6, tp(2): 1})
    assert sizes(made, start, 2) == [[9, 5], []]


def test_a_query_over_what_is_available_has_batches_too(kit: Kit) -> None:
    """With at most 5 a batch, 15 records make three batches, and then none."""
    kit.produce(15)
    made = stream(kit, {"startingOffsets": "earliest", "maxOffsetsPerTrigger": "5"})
    start = made.initial_offset()
    made.prepare_for_trigger_available_now()
    assert sizes(made, start, 4) == [[5], [5], [5], []]


def available_now(
    kit: Kit, options: dict[str, str] | None = None
) -> tuple[KafkaMicroBatchStream, PartitionOffsets, PartitionOffsets]:
    """Return a query with five records in each of two partitions, its start and its end."""
    kit.produce(5)
    kit.produce(5, partition=1)
    made = stream(kit, {"startingOffsets": "earliest", **(options or {})})
    start = made.initial_offset()
    made.prepare_for_trigger_available_now()
    return made, start, made.latest_offset(start, ReadAllAvailable())


def test_the_end_has_the_partitions_that_were_found(kit: Kit) -> None:
    """A batch with other partitions than the prefetched ones fails."""
    made, start, end = available_now(kit)
    with pytest.raises(PartitionsNotPrefetchedError):
        made.plan_input_partitions(start, end.merge({tp(2): 0}))
    with pytest.raises(PartitionsNotPrefetchedError):
        made.plan_input_partitions(start, PartitionOffsets({tp(0): 5}))


def test_the_end_is_not_beyond_what_was_found(kit: Kit) -> None:
    """A batch that ends behind the first look fails, even if Kafka has more by now."""
    made, start, end = available_now(kit)
    kit.produce(5)
    with pytest.raises(EndBeyondPrefetchedError):
        made.plan_input_partitions(start, end.merge({tp(0): 6}))


@pytest.mark.parametrize("fail_on_data_loss", ["true", "false"])
@pytest.mark.parametrize(
    ("partitions", "count", "error", "text"),
    [
        (
            1,
            9,
            LostPartitionsError,
            (
                r"Some of partitions in Kafka topic\(s\) have been lost during running query "
                r"with Trigger\.AvailableNow\."
            ),
        ),
        (
            2,
            4,
            EndBeyondLatestError,
            (
                r"Some of partitions in Kafka topic\(s\) report available offset which is less "
                r"than end offset during running query with Trigger\.AvailableNow\."
            ),
        ),
    ],
)
def test_a_topic_that_is_recreated_fails_the_query(
    kit: Kit,
    partitions: int,
    count: int,
    error: type[AvailableNowError],
    text: str,
    fail_on_data_loss: str,
) -> None:
    """A topic with fewer partitions or records than before fails with any failOnDataLoss."""
    made, start, end = available_now(kit, {"failOnDataLoss": fail_on_data_loss})
    kit.cluster.delete_topic("t")
    kit.cluster.create_topic("t", partitions)
    for partition in range(partitions):
        kit.produce(count, partition)
    with pytest.raises(error, match=text):
        made.plan_input_partitions(start, end)


def test_what_kafka_still_has_is_read(kit: Kit) -> None:
    """New records and partitions do not disturb a query over what is available."""
    made, start, end = available_now(kit)
    kit.cluster.add_partitions("t", 3)
    kit.produce(5)
    kit.produce(5, partition=2)
    assert made.plan_input_partitions(start, end) == (
        OffsetRange(tp(0), 0, 5),
        OffsetRange(tp(1), 0, 5),
    )


def test_a_first_batch_that_runs_again_has_the_partitions_of_its_end(kit: Kit) -> None:
    """A partition that was added after the batch was planned is not a deleted one."""
    kit.produce(3)
    kit.cluster.add_partitions("t", 3)
    made = stream(kit, {"startingOffsets": "earliest"})
    end = PartitionOffsets({tp(0): 3, tp(1): 0})
    assert made.plan_input_partitions(made.initial_offset(), end) == (OffsetRange(tp(0), 0, 3),)


def test_a_partition_that_is_deleted_before_the_first_batch_is_lost(kit: Kit) -> None:
    """In the process that plans the first batch, a partition without an end is deleted."""
    made = stream(kit, {"startingOffsets": "earliest"})
    start = made.initial_offset()
    made.latest_offset(start, ReadAllAvailable())
    with pytest.raises(DataLossError, match="have been deleted"):
        made.plan_input_partitions(start, PartitionOffsets({tp(0): 0}))


def test_an_empty_batch_of_topics_that_are_gone(kit: Kit) -> None:
    """Spark plans one where the JVM connector has written the same offsets as another text."""
    kit.cluster.delete_topic("t")
    made = stream(kit, {"subscribePattern": "^t$"})
    made.prepare_for_trigger_available_now()
    start = PartitionOffsets({tp(0): 5, tp(1): 5})
    assert made.latest_offset(start, ReadAllAvailable()) == start
    assert made.plan_input_partitions(start, start) == ()


def test_a_batch_that_is_done_again_after_a_restart_is_not_checked(kit: Kit) -> None:
    """Before its first look a query has nothing to hold the end of a batch against."""
    _, start, end = available_now(kit)
    again = stream(kit)
    again.prepare_for_trigger_available_now()
    kit.cluster.add_partitions("t", 3)
    assert len(again.plan_input_partitions(start, end)) == 2
    assert again.latest_offset(end, ReadAllAvailable()).keys() == {tp(0), tp(1), tp(2)}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [(0, 0, 9), (1, 0, 3)]),
        ({"minPartitions": "2"}, [(0, 0, 9), (1, 0, 3)]),
        ({"minPartitions": "4"}, [(0, 0, 3), (0, 3, 6), (0, 6, 9), (1, 0, 3)]),
        ({"maxRecordsPerPartition": "5"}, [(0, 0, 4), (0, 4, 9), (1, 0, 3)]),
        ({"maxRecordsPerPartition": "9223372036854775807"}, [(0, 0, 9), (1, 0, 3)]),
    ],
)
def test_a_batch_is_split_into_tasks(
    kit: Kit, options: dict[str, str], expected: list[tuple[int, int, int]]
) -> None:
    """Large ranges are split for the least number of tasks and for the most records of one."""
    start, end = PartitionOffsets({tp(0): 0, tp(1): 0}), PartitionOffsets({tp(0): 9, tp(1): 3})
    assert stream(kit, options).plan_input_partitions(start, end) == tuple(
        OffsetRange(tp(number), *ends) for number, *ends in expected
    )


def test_metrics_tell_how_far_a_query_is_behind(kit: Kit) -> None:
    """The lag is measured against the latest offsets of the last batch; before it there is none."""
    kit.produce(3)
    kit.produce(6, partition=1)
    made = stream(kit)
    consumed = PartitionOffsets({tp(0): 1, tp(1): 2})
    assert made.metrics(consumed) == {}
    made.latest_offset(consumed, ReadMaxRows(1))
    assert made.metrics(None) == {}
    assert made.metrics(consumed) == {
        "minOffsetsBehindLatest": "2",
        "maxOffsetsBehindLatest": "4",
        "avgOffsetsBehindLatest": "3.0",
    }
    kit.produce(100)
    latest = made.latest_offset(consumed, ReadAllAvailable())
    assert set(made.metrics(latest).values()) == {"0", "0.0"}


def test_metrics_of_a_query_without_partitions(kit: Kit) -> None:
    """When every topic of a pattern is gone there is nothing to be behind of."""
    made = stream(kit, {"subscribePattern": "^none$"})
    start = PartitionOffsets()
    assert made.latest_offset(start, ReadAllAvailable()) == start
    assert made.metrics(start) == {}
