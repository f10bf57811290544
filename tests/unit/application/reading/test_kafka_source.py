"""The legacy source: offsets that it remembers, and batches that it makes."""

import logging

import pytest

from pyspark_kafka.adapters.memory.metadata_log import MemoryMetadataLog
from pyspark_kafka.adapters.memory.reading import MemoryOffsetFetcher
from pyspark_kafka.application.reading.kafka_source import KafkaSource
from pyspark_kafka.domain.errors import BrokerUnreachableError
from pyspark_kafka.domain.reading.admission import ReadAllAvailable, ReadMaxRows
from pyspark_kafka.domain.reading.errors import DataLossError
from pyspark_kafka.domain.reading.ranges import OffsetRange

from ..conftest import Kit, offsets, tp

Ranges = tuple[OffsetRange, ...]

EARLIEST = {"startingOffsets": "earliest"}
GO_ON = {"failOnDataLoss": "false"}


def source(
    kit: Kit, options: dict[str, str] | None = None, log: MemoryMetadataLog | None = None
) -> KafkaSource[Ranges]:
    container = kit.container(options)
    container.metadata_log.override(log)
    return container.kafka_source(tuple)


def ranges(*bounds: tuple[int, int, int]) -> Ranges:
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


@pytest.mark.parametrize(
    ("starting", "expected"),
    [
        ("earliest", (1, 0)),
        ('{"t":{"0":-2,"1":-1}}', (1, 2)),
        ('{"t":{"0":3,"1":1}}', (3, 1)),
        ('{"t":{"0":1,"1":2}}', (1, 2)),
    ],
)
def test_a_source_begins_by_its_options(kit, starting, expected):
    kit.produce(4)
    kit.produce(2, partition=1)
    kit.cluster.delete_records({tp(0): 1})
    made = source(kit, {"startingOffsets": starting})
    assert made.initial_partition_offsets == offsets(*expected)


@pytest.mark.parametrize("given", [0, 1, 9])
def test_a_start_that_is_not_held_is_data_loss_or_reset(kit, given):
    kit.produce(5)
    kit.cluster.delete_records({tp(0): 2})
    log = MemoryMetadataLog()
    starting = {"startingOffsets": f'{{"t":{{"0":{given},"1":-1}}}}'}
    with pytest.raises(DataLossError) as caught:
        source(kit, starting, log).get_offset()
    assert caught.value.sub_condition == "START_OFFSET_RESET"
    assert log.get(0) is None
    assert source(kit, starting | GO_ON).initial_partition_offsets == offsets(2, 0)
    [[loss]] = kit.events.named("data_lost")
    assert loss.warning == f"startingOffsets for t-0 was {given} but consumer reset to 2"


def test_a_start_that_a_broker_does_not_have_yet_is_asked_for_again(kit, monkeypatch):
    """A broker that lags must not let the stream begin again at the earliest offset."""
    kit.produce(5)
    answers = [offsets(0, 0), offsets(5, 0)]
    monkeypatch.setattr(MemoryOffsetFetcher, "latest", lambda *_: answers.pop(0))
    starting = {"startingOffsets": '{"t":{"0":3,"1":0}}', **GO_ON}
    assert source(kit, starting).initial_partition_offsets == offsets(3, 0)
    assert not kit.events.named("data_lost")


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


def test_without_partitions_there_is_no_offset(kit):
    assert source(kit, {"subscribePattern": "^none$"}).get_offset() is None


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


def test_a_topic_that_is_created_before_the_first_batch_is_read_whole(kit):
    pattern = {"subscribePattern": "new.*", "startingOffsets": "latest"}
    made = source(kit, pattern)
    assert made.get_offset() is None
    kit.cluster.create_topic("new1", 1)
    kit.produce(5, topic="new1")
    end = made.get_offset()
    assert end == {tp(0, "new1"): 0}
    restarted = source(kit, pattern)
    partition = tp(0, "new1")
    assert restarted.get_batch(None, end) == ()
    following = restarted.get_offset()
    assert following is not None
    assert restarted.get_batch(end, following) == (OffsetRange(partition, 0, 5),)


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


def test_only_the_source_has_the_words_of_the_legacy_source(kit):
    container = kit.container(GO_ON)
    container.micro_batch_stream().plan_input_partitions(offsets(5, 0), offsets(1, 0))
    source(kit, GO_ON).get_batch(offsets(5, 0), offsets(1, 0))
    [[of_the_stream], [of_the_source]] = kit.events.named("data_lost")
    assert "was changed from 5 to 1. This could be" in of_the_stream.as_warning()
    assert "was changed from 5 to 1, some data may have been" in of_the_source.as_warning()
    with pytest.raises(DataLossError):
        source(kit).get_batch(offsets(5, 0), offsets(1, 0))


def test_a_planned_batch_is_run_again_under_available_now(kit):
    """A batch of an earlier run is not held against this run's first look (SPARK-53560)."""
    log = MemoryMetadataLog()
    source(kit, EARLIEST, log).get_offset()
    kit.produce(5)
    again = source(kit, EARLIEST, log)
    again.prepare_for_trigger_available_now()
    kit.cluster.add_partitions("t", 3)
    assert again.get_batch(None, offsets(5, 0)) == ranges((0, 0, 5))
    assert again.get_offset() == offsets(5, 0, 0)


def test_a_commit_reports_lag_and_the_groups_offsets(kit):
    made = source(kit, {**EARLIEST, "commitOffsetsToGroup": "g"})
    kit.produce(5)
    made.get_offset()
    made.commit(offsets(2, 0))
    assert kit.cluster.committed("g") == offsets(2, 0)


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


def test_a_later_batch_that_starts_at_the_initial_offsets_is_not_the_first(kit):
    """Its partitions that are gone are reported, after a restart as well."""
    with pytest.raises(DataLossError, match="t-1"):
        source(kit, EARLIEST).get_batch(offsets(0, 0), offsets(0))
