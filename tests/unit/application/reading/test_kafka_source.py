"""The legacy source: offsets that it remembers, and batches that it makes."""

import logging
from collections.abc import Sequence

import pytest

from pyspark_kafka.adapters.memory.metadata_log import MemoryMetadataLog
from pyspark_kafka.adapters.memory.reading import MemoryOffsetFetcher
from pyspark_kafka.application.reading.kafka_source import KafkaSource
from pyspark_kafka.domain.errors import BrokerUnreachableError, MetadataLogError
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.reading.admission import (
    CompositeReadLimit,
    ReadAllAvailable,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
)
from pyspark_kafka.domain.reading.available_now import (
    EndBeyondLatestError,
    EndBeyondPrefetchedError,
    LostPartitionsError,
    PartitionsNotPrefetchedError,
)
from pyspark_kafka.domain.reading.errors import DataLossError, StreamOffsetsMismatchError
from pyspark_kafka.domain.reading.ranges import OffsetRange

from ..conftest import Kit, tp

Ranges = tuple[OffsetRange, ...]

EARLIEST = {"startingOffsets": "earliest"}
GO_ON = {"failOnDataLoss": "false"}


def source(
    kit: Kit, options: dict[str, str] | None = None, log: MemoryMetadataLog | None = None
) -> KafkaSource[Ranges]:
    """Return a source whose batches are their ranges."""
    container = kit.container(options)
    container.metadata_log.override(log)

    def load(ranges: Sequence[OffsetRange]) -> Ranges:
        return tuple(ranges)

    return container.kafka_source(load)


def offsets(*values: int) -> PartitionOffsets:
    """Return offsets of the partitions of ``t``, beginning with partition 0."""
    return PartitionOffsets({tp(number): value for number, value in enumerate(values)})


def ranges(*bounds: tuple[int, int, int]) -> Ranges:
    """Return ranges of ``t``."""
    return tuple(OffsetRange(tp(number), start, end) for number, start, end in bounds)


def test_a_source_is_named_as_in_the_jvm_connector(kit):
    assert str(source(kit)) == "KafkaSourceV1[Subscribe[t]]"


def test_nothing_is_asked_for_before_it_is_needed(kit, monkeypatch):
    failure = BrokerUnreachableError("memory", 1)

    def fail(*_arguments: object) -> None:
        raise failure

    monkeypatch.setattr(MemoryOffsetFetcher, "partitions", fail)
    made = source(kit)
    assert made.current_partition_offsets is None
    assert made.report_latest_offset() is None
    with pytest.raises(BrokerUnreachableError):
        _ = made.initial_partition_offsets


def test_initial_offsets_are_written_down_once(kit):
    kit.produce(3)
    log = MemoryMetadataLog()
    made = source(kit, log=log)
    assert made.initial_partition_offsets == offsets(3, 0)
    assert log.get(0) == b'\0v1\n{"t":{"0":3,"1":0}}'
    kit.produce(3)
    assert made.initial_partition_offsets == offsets(3, 0)
    assert source(kit, log=log).initial_partition_offsets == offsets(3, 0)
    assert kit.events.named("initial_offsets") == ((offsets(3, 0),),)


def test_initial_offsets_of_a_later_version_are_refused(kit):
    log = MemoryMetadataLog()
    log.add(0, b"\0v99999\n{}")
    with pytest.raises(MetadataLogError, match="maximum supported log version is v1, but encount"):
        source(kit, log=log).get_offset()


@pytest.mark.parametrize(
    ("starting", "expected"),
    [
        ("earliest", (1, 0)),
        ("latest", (4, 2)),
        ('{"t":{"0":-2,"1":-1}}', (1, 2)),
        ('{"t":{"0":3,"1":1}}', (3, 1)),
        ('{"t":{"0":1,"1":2}}', (1, 2)),
    ],
)
def test_a_source_begins_by_its_options(kit, starting, expected):
    kit.produce(4)
    kit.produce(2, partition=1)
    kit.cluster.delete_records({tp(0): 1})
    assert source(kit, {"startingOffsets": starting}).initial_partition_offsets == offsets(
        *expected
    )


def test_offsets_of_other_partitions_are_refused(kit):
    with pytest.raises(StreamOffsetsMismatchError):
        source(kit, {"startingOffsets": '{"t":{"0":0}}'}).get_offset()


@pytest.mark.parametrize("given", [0, 1, 9])
def test_a_start_that_is_not_held_is_data_loss(kit, given):
    kit.produce(5)
    kit.cluster.delete_records({tp(0): 2})
    log = MemoryMetadataLog()
    made = source(kit, {"startingOffsets": f'{{"t":{{"0":{given},"1":0}}}}'}, log)
    with pytest.raises(DataLossError) as caught:
        made.get_offset()
    assert caught.value.sub_condition == "START_OFFSET_RESET"
    text = f"Reason: Starting offset for t-0 was {given} but consumer reset to 2."
    assert str(caught.value).endswith(text)
    assert log.get(0) is None


@pytest.mark.parametrize("given", [0, 1, 9])
def test_a_start_that_is_not_held_is_reset(kit, given):
    kit.produce(5)
    kit.cluster.delete_records({tp(0): 2})
    made = source(kit, {"startingOffsets": f'{{"t":{{"0":{given},"1":-1}}}}', **GO_ON})
    assert made.initial_partition_offsets == offsets(2, 0)
    [[loss]] = kit.events.named("data_lost")
    expected = f"startingOffsets for t-0 was {given} but consumer reset to 2. "
    assert loss.as_warning().startswith(expected)


def test_a_start_in_an_open_transaction_is_held(kit):
    kit.produce(2)
    kit.cluster.produce("t", b"v", transaction=kit.cluster.begin_transaction())
    kit.produce(2)
    committed = {"kafka.isolation.level": "read_committed"}
    made = source(kit, {"startingOffsets": '{"t":{"0":4,"1":0}}', **committed})
    assert made.initial_partition_offsets == offsets(4, 0)


def test_offsets_are_remembered(kit):
    made = source(kit)
    assert made.latest_offset(None, ReadAllAvailable()) == offsets(0, 0)
    kit.produce(3)
    assert made.get_offset() == offsets(3, 0)
    assert made.current_partition_offsets == offsets(3, 0)
    assert made.report_latest_offset() == offsets(3, 0)


def test_the_limit_counts_from_the_initial_offsets_and_then_from_the_current_ones(kit):
    kit.produce(9)
    made = source(kit, {**EARLIEST, "maxOffsetsPerTrigger": "4"})
    ends = [made.get_offset() for _ in range(4)]
    assert ends == [offsets(4, 0), offsets(8, 0), offsets(9, 0), offsets(9, 0)]
    assert made.report_latest_offset() == offsets(9, 0)


def test_a_restarted_driver_may_say_where_it_stands(kit):
    kit.produce(9)
    made = source(kit, EARLIEST)
    assert made.latest_offset(offsets(5, 0), ReadMaxRows(2)) == offsets(7, 0)


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (ReadAllAvailable(), 9),
        (ReadMaxRows(4), 4),
        (ReadMinRows(10, 5_000), 9),
        (ReadMaxBytes(1), 1),
        (CompositeReadLimit((ReadMinRows(2, 5_000), ReadMaxRows(3))), 3),
        (CompositeReadLimit((ReadMaxRows(3), ReadAllAvailable())), 9),
    ],
)
def test_every_limit_is_kept(kit, limit, expected):
    kit.clock.sleep_ms(10_000)
    kit.produce(9)
    assert source(kit, EARLIEST).latest_offset(None, limit) == offsets(expected, 0)


def test_a_batch_that_is_too_small_waits_for_its_time(kit):
    kit.clock.sleep_ms(5_000)
    made = source(kit, {**EARLIEST, "minOffsetsPerTrigger": "5", "maxTriggerDelay": "5s"})
    kit.produce(6)
    assert made.get_offset() == offsets(6, 0)
    kit.produce(4)
    assert made.get_offset() == offsets(6, 0)
    assert made.current_partition_offsets == offsets(6, 0)
    kit.clock.sleep_ms(5_000)
    assert made.get_offset() == offsets(10, 0)


def test_without_partitions_there_is_no_offset(kit):
    assert source(kit, {"subscribePattern": "^none$"}).get_offset() is None


def test_a_limit_counts_from_a_start_without_topics(kit):
    kit.cluster.create_topic("later", 1)
    kit.produce(5, topic="later")
    restarted = source(kit, {"subscribePattern": "later"})
    assert restarted.latest_offset(PartitionOffsets(), ReadMaxRows(2)) == {tp(0, "later"): 2}


def test_partitions_that_are_gone_move_nothing(kit):
    """When every topic of a pattern is gone, the offsets stay where they were (SPARK-41375)."""
    kit.produce(3)
    made = source(kit, {"subscribePattern": "^t$"})
    end = made.get_offset()
    kit.cluster.delete_topic("t")
    assert made.get_offset() == end
    assert made.report_latest_offset() is None


def test_a_batch_is_what_the_ranges_load_as(kit):
    made = source(kit, {**EARLIEST, "maxRecordsPerPartition": "3"})
    assert made.get_batch(offsets(2, 1), offsets(7, 1)) == ranges((0, 2, 4), (0, 4, 7))


def test_the_first_batch_begins_at_the_initial_offsets(kit):
    kit.produce(4)
    kit.cluster.delete_records({tp(0): 1})
    made = source(kit, EARLIEST)
    assert made.get_batch(None, offsets(4, 0)) == ranges((0, 1, 4))


def test_a_batch_of_nothing_is_empty(kit):
    assert source(kit).get_batch(offsets(3, 0), offsets(3, 0)) == ()


def test_a_batch_before_any_offset_tells_where_the_source_stands(kit):
    kit.produce(9)
    made = source(kit, {**EARLIEST, "maxOffsetsPerTrigger": "2"})
    made.get_batch(offsets(0, 0), offsets(5, 0))
    assert made.current_partition_offsets == offsets(5, 0)
    assert made.get_offset() == offsets(7, 0)
    made.get_batch(offsets(5, 0), offsets(6, 0))
    assert made.current_partition_offsets == offsets(7, 0)


def test_the_log_has_the_words_of_the_jvm_connector(kit, caplog):
    caplog.set_level(logging.DEBUG, "pyspark_kafka")
    made = source(kit, EARLIEST)
    kit.produce(3)
    end = made.get_offset()
    assert end is not None
    made.get_batch(None, end)
    made.get_batch(offsets(2, 0), end)
    wanted = ("GetOffset", "GetBatch", "TopicPartitions")
    lines = [
        (record.levelname, record.getMessage())
        for record in caplog.records
        if record.getMessage().startswith(wanted)
    ]
    assert lines == [
        ("DEBUG", 'GetOffset: {"t":{"0":3,"1":0}}'),
        ("INFO", 'GetBatch called with start = None, end = {"t":{"0":3,"1":0}}'),
        ("DEBUG", "TopicPartitions: t-0, t-1"),
        ("INFO", "GetBatch generating RDD of offset range: t-0[0, 3)"),
        (
            "INFO",
            ('GetBatch called with start = Some({"t":{"0":2,"1":0}}), end = {"t":{"0":3,"1":0}}'),
        ),
        ("DEBUG", "TopicPartitions: t-0, t-1"),
        ("INFO", "GetBatch generating RDD of offset range: t-0[2, 3)"),
    ]


def test_an_added_partition_is_read_from_its_beginning(kit):
    made = source(kit)
    kit.cluster.add_partitions("t", 3)
    kit.produce(4, partition=2)
    assert made.get_batch(offsets(0, 0), offsets(0, 0, 4)) == ranges((2, 0, 4))
    assert kit.events.named("partitions_added") == ((PartitionOffsets({tp(2): 0}),),)


LOSSES = {
    "ADDED_PARTITION_DOES_NOT_START_FROM_OFFSET_ZERO": (
        PartitionOffsets({tp(0): 0}),
        offsets(0, 5),
        "Added partition t-1 starts from 3 instead of 0. Some data may have been missed",
    ),
    "INITIAL_OFFSET_NOT_FOUND_FOR_PARTITIONS": (
        offsets(0, 5),
        offsets(0, 5, 7),
        "Cannot find earliest offsets of Set(t-2). Some data may have been missed",
    ),
    "PARTITIONS_DELETED": (
        offsets(0, 5),
        PartitionOffsets({tp(1): 5}),
        "Set(t-0) are gone. Some data may have been missed",
    ),
    "PARTITION_OFFSET_CHANGED": (
        offsets(5, 5),
        offsets(1, 5),
        "Partition t-0's offset was changed from 5 to 1, some data may have been missed",
    ),
}


@pytest.mark.parametrize("condition", LOSSES)
def test_a_finding_fails_the_query_or_is_a_warning(kit, condition):
    kit.produce(5, partition=1)
    kit.cluster.delete_records({tp(1): 3})
    start, end, warning = LOSSES[condition]
    with pytest.raises(DataLossError) as caught:
        source(kit).get_batch(start, end)
    assert caught.value.sub_condition == condition
    source(kit, GO_ON).get_batch(start, end)
    [[loss]] = kit.events.named("data_lost")
    assert loss.as_warning().startswith(warning)


def test_the_stream_keeps_its_own_words(kit):
    container = kit.container(GO_ON)
    container.micro_batch_stream().plan_input_partitions(offsets(5, 0), offsets(1, 0))
    [[loss]] = kit.events.named("data_lost")
    assert "was changed from 5 to 1. This could be" in loss.as_warning()


def available_now(kit: Kit) -> tuple[KafkaSource[Ranges], PartitionOffsets]:
    """Return a source with five records in each of two partitions, and their ends."""
    kit.produce(5)
    kit.produce(5, partition=1)
    made = source(kit, EARLIEST)
    made.prepare_for_trigger_available_now()
    end = made.get_offset()
    assert end is not None
    return made, end


def test_available_now_ends_with_what_was_found_first(kit):
    kit.produce(15)
    made = source(kit, {**EARLIEST, "maxOffsetsPerTrigger": "5"})
    made.prepare_for_trigger_available_now()
    sizes, start = [], None
    for _ in range(4):
        end = made.get_offset()
        assert end is not None
        kit.produce(5)
        sizes.append([one.size for one in made.get_batch(start, end)])
        start = end
    assert sizes == [[5], [5], [5], []]


def test_available_now_fails_when_kafka_changes(kit):
    made, end = available_now(kit)
    with pytest.raises(PartitionsNotPrefetchedError):
        made.get_batch(None, end.merge({tp(2): 0}))
    with pytest.raises(EndBeyondPrefetchedError):
        made.get_batch(None, end.merge({tp(0): 6}))
    kit.cluster.delete_topic("t")
    kit.cluster.create_topic("t", 1)
    with pytest.raises(LostPartitionsError, match="have been lost during running query with"):
        made.get_batch(None, end)
    kit.cluster.add_partitions("t", 2)
    with pytest.raises(EndBeyondLatestError, match="report available offset which is less than"):
        made.get_batch(None, end)


def test_a_planned_batch_is_run_again_under_available_now(kit):
    """A batch of an earlier run is not held against this run's first look (SPARK-53560)."""
    log = MemoryMetadataLog()
    source(kit, EARLIEST, log).get_offset()
    _, end = available_now(kit)
    again = source(kit, EARLIEST, log)
    again.prepare_for_trigger_available_now()
    kit.cluster.add_partitions("t", 3)
    assert again.get_batch(None, end) == ranges((0, 0, 5), (1, 0, 5))
    assert again.get_offset() == offsets(5, 5, 0)


def test_a_commit_reports_lag_and_the_groups_offsets(kit):
    made = source(kit, {**EARLIEST, "commitOffsetsToGroup": "g"})
    kit.produce(5)
    made.get_offset()
    made.commit(offsets(2, 0))
    assert kit.cluster.committed("g") == offsets(2, 0)


def test_the_options_make_the_default_limit(kit):
    limits = {"minOffsetsPerTrigger": "15", "maxTriggerDelay": "5s", "maxOffsetsPerTrigger": "20"}
    assert source(kit, limits).default_read_limit == CompositeReadLimit(
        (ReadMinRows(15, 5_000), ReadMaxRows(20))
    )


def test_stopping_closes_the_connections(kit, monkeypatch):
    closed: list[MemoryOffsetFetcher] = []

    def close(fetcher: MemoryOffsetFetcher) -> None:
        closed.append(fetcher)

    monkeypatch.setattr(MemoryOffsetFetcher, "close", close)
    made = source(kit)
    made.stop()
    made.stop()
    assert len(closed) == 2


def test_a_batch_is_counted_from_where_the_driver_is(kit):
    kit.produce(9)
    made = source(kit, EARLIEST)
    assert made.latest_offset(None, ReadMaxRows(4)) == offsets(4, 0)
    assert made.latest_offset(offsets(0, 0), ReadMaxRows(4)) == offsets(4, 0)
