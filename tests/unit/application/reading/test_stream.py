import logging
from unittest.mock import Mock

import pytest

from pyspark_kafka.adapters.call_deadline import within
from pyspark_kafka.adapters.memory.reading import MemoryOffsetFetcher
from pyspark_kafka.adapters.memory.source_events import MemorySourceEvents
from pyspark_kafka.application.reading.stream import (
    RETRY_MS,
    Admission,
    KafkaMicroBatchStream,
    RecordSizes,
)
from pyspark_kafka.bootstrap.container import MAX_REQUEST_S
from pyspark_kafka.domain.errors import KafkaRequestError
from pyspark_kafka.domain.lag.lag import Lag
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
from pyspark_kafka.domain.reading.errors import (
    DataLossError,
    FetchTimeoutError,
    NoOffsetForTimestampError,
    StreamOffsetsMismatchError,
)
from pyspark_kafka.domain.reading.ranges import OffsetRange
from pyspark_kafka.domain.reading.records import Projection
from pyspark_kafka.ports.reading import RecordReader

from ..conftest import Kit, offsets, tp

ALL = ReadAllAvailable()
AT_LEAST_15 = ReadMinRows(15, 5_000)
WAITED = "Maximum wait time is passed, triggering batch"
NOT_ENOUGH = "Delaying batch as number of records available is less than minOffsetsPerTrigger"


def admission(kit: Kit) -> Admission:
    return kit.container().admission()


@pytest.mark.parametrize(
    ("limit", "end"),
    [
        (ALL, (101, 11, 1)),
        (ReadMaxRows(10), (8, 1, 1)),
        (ReadMaxRows(2**63 - 1), (101, 11, 1)),
        (ReadMinRows(1_000, 5_000), (101, 11, 1)),
        (CompositeReadLimit((ReadMinRows(5, 5_000), ReadMaxRows(10))), (8, 1, 1)),
        (CompositeReadLimit((ReadMaxRows(10), ReadMaxRows(1_000))), (8, 1, 1)),
        (CompositeReadLimit((ReadMaxRows(10), ALL)), (101, 11, 1)),
        (CompositeReadLimit((ALL, ReadMinRows(1_000, 5_000))), (101, 11, 1)),
    ],
)
def test_a_limit_on_rows_cuts_the_first_batch(kit, limit, end):
    found = admission(kit).end_of_batch(offsets(0, 0, 0), offsets(101, 11, 1), limit)
    assert found == offsets(*end)


def test_a_limit_on_rows_over_batches(kit):
    made, latest = admission(kit), offsets(101, 11, 1)
    first = made.end_of_batch(offsets(0, 0, 0), latest, ReadMaxRows(10))
    second = made.end_of_batch(first, latest, ReadMaxRows(10))
    assert (first, second) == (offsets(8, 1, 1), offsets(17, 2, 1))


def test_a_least_number_of_rows_over_batches(kit, caplog):
    made = admission(kit)

    def end(start: int, latest: int) -> int:
        return made.end_of_batch(offsets(start), offsets(latest), AT_LEAST_15)[tp(0)]

    with caplog.at_level(logging.DEBUG, logger="pyspark_kafka"):
        assert end(0, 3) == 3
        assert end(3, 9) == 3
        assert end(3, 18) == 18
        assert end(18, 20) == 18
        kit.clock.sleep_ms(4_999)
        assert end(18, 20) == 18
        kit.clock.sleep_ms(1)
        assert end(18, 20) == 20
        assert end(20, 30) == 20
    told = [record.getMessage() for record in caplog.records]
    assert told == [WAITED, NOT_ENOUGH, NOT_ENOUGH, NOT_ENOUGH, WAITED, NOT_ENOUGH]
    assert {record.levelno for record in caplog.records} == {logging.DEBUG}
    assert {record.name for record in caplog.records} == {"pyspark_kafka"}


def test_a_batch_that_ran_for_its_rows_restarts_the_delay(kit):
    made = admission(kit)
    made.end_of_batch(offsets(0), offsets(1), AT_LEAST_15)
    kit.clock.sleep_ms(4_000)
    assert made.end_of_batch(offsets(1), offsets(16), AT_LEAST_15) == offsets(16)
    kit.clock.sleep_ms(4_000)
    assert made.end_of_batch(offsets(16), offsets(17), AT_LEAST_15) == offsets(16)


def test_limits_together_over_batches(kit):
    made, limit = admission(kit), CompositeReadLimit((AT_LEAST_15, ReadMaxRows(20)))
    latest = offsets(21, 11, 1)
    first = made.end_of_batch(offsets(0, 0, 0), latest, limit)
    assert first == offsets(12, 6, 1)
    assert made.end_of_batch(first, latest, limit) == first
    kit.clock.sleep_ms(5_000)
    assert made.end_of_batch(first, latest, limit) == latest


def test_everything_overrules_what_waits(kit, caplog):
    made = admission(kit)
    with caplog.at_level(logging.DEBUG, logger="pyspark_kafka"):
        assert made.end_of_batch(offsets(0), offsets(1), ALL) == offsets(1)
    assert caplog.records == []
    made.end_of_batch(offsets(1), offsets(2), AT_LEAST_15)
    assert made.end_of_batch(offsets(2), offsets(3), AT_LEAST_15) == offsets(2)
    limit = CompositeReadLimit((AT_LEAST_15, ALL))
    assert made.end_of_batch(offsets(2), offsets(3), limit) == offsets(3)


def test_a_new_partition_counts_from_its_beginning(kit):
    """Records of a new partition that retention deleted do not count for its share."""
    kit.produce(100)
    kit.produce(100, partition=1)
    kit.cluster.delete_records({tp(1): 80})
    end = admission(kit).end_of_batch(offsets(0), offsets(100, 100), ReadMaxRows(12))
    assert end == offsets(10, 82)


def test_a_new_partition_that_went_again_goes_to_its_end(kit):
    """A partition whose beginning Kafka does not return has no share of the limit."""
    latest = PartitionOffsets({tp(0): 100, tp(9): 50})
    end = admission(kit).end_of_batch(offsets(0), latest, ReadMaxRows(10))
    assert end == {tp(0): 10, tp(9): 50}


def test_a_partition_that_is_gone_does_not_come_back(kit):
    limit = CompositeReadLimit((ReadMaxRows(10), ReadMaxBytes(10)))
    start = PartitionOffsets({tp(0): 0, tp(7): 5})
    kit.produce(5)
    assert admission(kit).end_of_batch(start, offsets(5), limit).keys() == {tp(0)}


def test_no_beginning_is_asked_for_without_a_new_partition(kit, monkeypatch):
    def fail(*_: object) -> PartitionOffsets:
        raise AssertionError

    monkeypatch.setattr(MemoryOffsetFetcher, "earliest", fail)
    end = admission(kit).end_of_batch(offsets(0, 0), offsets(10, 10), ReadMaxRows(10))
    assert end == offsets(5, 5)


def produce(kit: Kit, count: int, size: int, partition: int = 0) -> None:
    for _ in range(count):
        kit.cluster.produce("t", b"x" * size, partition=partition)


def test_a_limit_on_bytes_reckons_with_the_size_of_records(kit):
    produce(kit, 10, 10_000)
    produce(kit, 100, 1_000, partition=1)
    end = admission(kit).end_of_batch(offsets(0, 0), offsets(10, 100), ReadMaxBytes(105_000))
    assert end[tp(0)] == 5
    assert 50 <= end[tp(1)] <= 52


def test_a_limit_on_bytes_follows_the_records(kit):
    produce(kit, 100, 100)
    produce(kit, 100, 10_000)
    made, limit = admission(kit), ReadMaxBytes(30_500)
    assert made.end_of_batch(offsets(0, 0), offsets(100, 0), limit) == offsets(100, 0)
    assert made.end_of_batch(offsets(100, 0), offsets(200, 0), limit) == offsets(103, 0)


def test_a_record_beyond_the_limit_on_bytes_is_read_alone(kit):
    produce(kit, 3, 10_000)
    produce(kit, 5, 10_000, partition=1)
    end = admission(kit).end_of_batch(offsets(0, 0), offsets(3, 5), ReadMaxBytes(1))
    assert end == offsets(0, 1)


def test_bytes_that_suffice_are_all_read(kit):
    produce(kit, 10, 1_000)
    end = admission(kit).end_of_batch(offsets(0, 0), offsets(10, 0), ReadMaxBytes(20_000))
    assert end == offsets(10, 0)


def test_the_stricter_of_two_limits_holds_for_each_partition(kit):
    produce(kit, 20, 10_000)
    produce(kit, 20, 100, partition=1)
    limits = (ReadMaxRows(10), ReadMaxBytes(25_000))
    latest = offsets(20, 20)
    made = admission(kit)
    rows, size = (made.end_of_batch(offsets(0, 0), latest, limit) for limit in limits)
    assert rows == offsets(5, 5)
    assert size[tp(0)] == 2
    assert made.end_of_batch(offsets(0, 0), latest, CompositeReadLimit(limits)) == {
        tp(0): min(rows[tp(0)], size[tp(0)]),
        tp(1): min(rows[tp(1)], size[tp(1)]),
    }


@pytest.fixture
def looking(kit):
    """Return a reader of the cluster in memory that remembers what it was asked for."""
    return Mock(wraps=kit.container().record_reader())


def looks(reader: Mock) -> list[OffsetRange]:
    return [call.args[0] for call in reader.read.call_args_list]


def test_the_mean_size_of_records(kit, looking):
    produce(kit, 10, 1_000)
    for _ in range(10):
        kit.cluster.produce("t", b"v" * 500, key=b"k" * 200, headers=(("h", b"x" * 300),))
    produce(kit, 4, 50_000, partition=1)
    sizes = RecordSizes(lambda: looking).measure(offsets(0, 0), offsets(20, 4))
    assert 1_000 <= sizes[tp(0)] <= 1_050
    assert 50_000 <= sizes[tp(1)] <= 50_050
    columns = {call.args[1] for call in looking.read.call_args_list}
    assert columns == {Projection(("key", "value", "headers"))}


def test_a_look_takes_a_hundred_offsets(kit, looking):
    produce(kit, 300, 1)
    produce(kit, 30, 1, partition=1)
    RecordSizes(lambda: looking).measure(offsets(50, 20), offsets(300, 30))
    assert looks(looking) == [OffsetRange(tp(0), 50, 150), OffsetRange(tp(1), 20, 30)]


def test_a_look_ends_after_a_megabyte(kit, looking):
    """The driver holds one batch of a reader, not a hundred records of any size."""
    produce(kit, 100, 400_000)
    taken: list[int] = []
    read = kit.container().record_reader().read

    def one_record_at_a_time(*given):
        for batch in read(*given):
            for row in range(batch.num_rows):
                taken.append(row)
                yield batch.slice(row, 1)

    looking.read.side_effect = one_record_at_a_time
    assert (
        400_000 <= RecordSizes(lambda: looking).measure(offsets(0), offsets(100))[tp(0)] < 401_000
    )
    assert len(taken) == 3


def test_a_small_partition_is_read_beside_one_that_is_refilled(kit):
    produce(kit, 3_000, 100)
    produce(kit, 2, 100, partition=1)
    limited, begin = admission(kit), offsets(0, 0)
    for _ in range(2):
        begin = limited.end_of_batch(begin, offsets(begin[tp(0)] + 3_000, 2), ReadMaxBytes(300))
    assert begin[tp(1)] >= 1


def test_partitions_without_anything_new_are_not_looked_at(kit, looking):
    """A partition that a batch will not read is not measured, nor is one without a beginning."""
    produce(kit, 5, 1)
    sizes = RecordSizes(lambda: looking)
    assert sizes.measure(offsets(5, 0), offsets(5, 0, 9)) == {}
    assert looks(looking) == []


def test_a_reader_is_made_only_to_read():
    def fail() -> RecordReader:
        raise AssertionError

    assert RecordSizes(fail).measure({}, offsets(5)) == {}


def test_few_partitions_are_looked_at_before_a_batch(kit, looking):
    kit.cluster.add_partitions("t", 10)
    for number in range(10):
        produce(kit, 3, 1, partition=number)
    sizes = RecordSizes(lambda: looking)
    begin, until = offsets(*[0] * 10), offsets(*[3] * 10)
    seen = []
    for _ in range(3):
        sizes.measure(begin, until)
        seen.append([look.partition.partition for look in looks(looking)])
        looking.read.reset_mock()
    assert seen == [[0, 1, 2, 3, 4, 5, 6, 7], [8, 9, 0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 0, 1, 2, 3]]


def test_a_later_look_takes_the_place_of_an_earlier_one(kit, looking):
    produce(kit, 2, 10)
    produce(kit, 2, 90_000)
    sizes = RecordSizes(lambda: looking)
    assert sizes.measure(offsets(0), offsets(2))[tp(0)] < 100
    assert sizes.measure(offsets(2), offsets(4))[tp(0)] > 80_000


@pytest.mark.parametrize("failure", ["the range is gone", "the broker fails"])
def test_what_cannot_be_read_keeps_its_measure(kit, looking, failure):
    """A look that fails raises no error: the batch itself reports it."""
    produce(kit, 10, 1_000)
    sizes = RecordSizes(lambda: looking)
    before = dict(sizes.measure(offsets(0), offsets(5)))
    if failure == "the broker fails":
        looking.read.side_effect = FetchTimeoutError(tp(0), 5, 1)
    else:
        kit.cluster.delete_records({tp(0): 10})
    assert sizes.measure(offsets(5), offsets(10)) == before
    assert len(looks(looking)) == 2


def test_offsets_without_records_keep_the_measure(kit):
    """Aborted transactions have no size of their own."""
    container = kit.container({"kafka.isolation.level": "read_committed"})
    produce(kit, 3, 1_000)
    transaction = kit.cluster.begin_transaction()
    kit.cluster.produce("t", b"x", transaction=transaction)
    kit.cluster.end_transaction(transaction, commit=False)
    sizes = container.record_sizes()
    before = dict(sizes.measure(offsets(0), offsets(3)))
    assert sizes.measure(offsets(3), offsets(5)) == before


def test_partitions_without_records_give_way_to_others(kit, looking):
    """A look that found nothing counts as a look, so that no other partition waits for ever."""
    kit.cluster.add_partitions("t", 9)
    for partition in range(8):
        kit.produce(5, partition)
        kit.cluster.delete_records({tp(partition): 5})
    produce(kit, 3, 1_000, partition=8)
    begin, until = offsets(*[0] * 9), offsets(*[5] * 8, 3)
    sizes = RecordSizes(lambda: looking)
    for _ in range(2):
        measured = sizes.measure(begin, until)
    assert measured[tp(8)] >= 1_000


def test_a_part_of_a_batch_counts_alone(kit, looking):
    """A reader may return slices, whose buffers they share."""
    produce(kit, 10, 1_000)
    read = kit.container().record_reader().read
    looking.read.side_effect = lambda *given: (
        batch.slice(row, 1) for batch in read(*given) for row in range(batch.num_rows)
    )
    assert RecordSizes(lambda: looking).measure(offsets(0), offsets(10))[tp(0)] <= 1_100


END = offsets(2, 0)


def test_lag_is_reported_with_each_batch(kit):
    stream = kit.container({"startingOffsets": "earliest"}).micro_batch_stream()
    start = stream.initial_offset()
    kit.produce(5)
    stream.latest_offset(start, stream.default_read_limit)
    stream.latest_offset(END, stream.default_read_limit)
    stream.commit(END)
    assert kit.events.named("lag_measured") == (
        (Lag({tp(0): 5, tp(1): 0}),),
        (Lag({tp(0): 3, tp(1): 0}),),
    )


def test_without_latest_offsets_there_is_no_lag(kit):
    kit.container().micro_batch_stream().commit(END)
    assert kit.events.named("lag_measured") == ()


def test_lag_that_nobody_takes_is_not_measured(kit, monkeypatch):
    """With thousands of partitions it would cost each batch milliseconds."""
    monkeypatch.setattr(MemorySourceEvents, "takes_lag", False)
    stream = kit.container().micro_batch_stream()
    stream.latest_offset(END, stream.default_read_limit)
    assert kit.events.named("lag_measured") == ()


def test_offsets_are_committed_to_the_group_that_is_named(kit):
    kit.container({"kafka.group.id": "other"}).micro_batch_stream().commit(END)
    kit.container({"commitOffsetsToGroup": "g"}).micro_batch_stream().commit(END)
    assert kit.cluster.committed("g") == END
    assert kit.cluster.committed("other") == {}


def test_the_last_batch_is_committed_when_the_next_is_asked_for(kit):
    """An engine without new data never commits the last batch, but keeps asking behind it."""
    stream = kit.container({"commitOffsetsToGroup": "g"}).micro_batch_stream()
    kit.produce(2)
    assert stream.latest_offset(END, stream.default_read_limit) == END
    assert kit.cluster.committed("g") == END


def test_initial_offsets_are_not_committed_to_a_group(kit):
    """Spark's wrapper for availableNow asks before it passes the offset of a restarted query."""
    kit.produce(2)
    kit.cluster.commit("g", END)
    stream = kit.container({"commitOffsetsToGroup": "g", "startingOffsets": "earliest"})
    made = stream.micro_batch_stream()
    assert made.latest_offset(made.initial_offset(), made.default_read_limit) == END
    assert kit.cluster.committed("g") == END
    made.commit(made.initial_offset())
    assert kit.cluster.committed("g") == made.initial_offset()


def test_a_commit_that_fails_is_reported_and_tried_again_later(kit, monkeypatch):
    """The stream continues, and does not try at every trigger: the group's offsets are a copy."""
    failure = KafkaRequestError("a commit", "why")
    tried: list[object] = []

    def fail(_fetcher: object, _group_id: str, offsets: object) -> None:
        tried.append(offsets)
        if len(tried) < 3:
            raise failure

    monkeypatch.setattr(MemoryOffsetFetcher, "commit", fail)
    stream = kit.container({"commitOffsetsToGroup": "g"}).micro_batch_stream()
    for _ in range(3):
        stream.commit(END)
    assert kit.events.named("group_commit_failed") == (("g", failure),)
    for _ in range(3):
        kit.clock.sleep_ms(RETRY_MS)
        stream.commit(END)
    assert tried == [END] * 3


def test_a_coordinator_that_does_not_answer_delays_no_batch_for_long(kit, monkeypatch):
    """Each attempt is short, also with new offsets, and after one that fails there is a pause."""
    allowed_s: list[float] = []

    def time_out(*_: object) -> None:
        with within(30) as deadline:
            allowed_s.append(deadline.remaining)
        raise KafkaRequestError("a commit", "why")

    monkeypatch.setattr(MemoryOffsetFetcher, "commit", time_out)
    made = kit.container({"commitOffsetsToGroup": "g"}).micro_batch_stream()
    for batch in range(1, 100):
        made.commit(offsets(batch, 0))
        kit.clock.sleep_ms(RETRY_MS // 50)
    assert len(allowed_s) == len(kit.events.named("group_commit_failed")) == 2
    assert max(allowed_s) <= MAX_REQUEST_S


GO_ON = {"failOnDataLoss": "false"}


def stream(kit: Kit, options: dict[str, str] | None = None) -> KafkaMicroBatchStream:
    return kit.container(options).micro_batch_stream()


def test_a_new_stream_begins_at_the_end(kit):
    kit.produce(3)
    assert stream(kit).initial_offset() == {tp(0): 3, tp(1): 0}
    assert kit.events.named("initial_offsets") == ((offsets(3, 0),),)


def test_a_stream_can_begin_at_the_start(kit):
    kit.produce(3)
    kit.cluster.delete_records({tp(0): 2})
    made = stream(kit, {"startingOffsets": "earliest"})
    assert made.initial_offset() == {tp(0): 2, tp(1): 0}


def test_a_stream_begins_where_it_said_first(kit):
    made = stream(kit)
    first = made.initial_offset()
    kit.produce(3)
    assert made.initial_offset() == first
    assert len(kit.events.named("initial_offsets")) == 1


def test_a_batch_ends_at_the_latest_offsets(kit):
    made = stream(kit, {"startingOffsets": "earliest"})
    start = made.initial_offset()
    assert made.report_latest_offset() is None
    kit.produce(4, partition=1)
    assert made.latest_offset(start, ReadAllAvailable()) == {tp(0): 0, tp(1): 4}
    assert made.report_latest_offset() == offsets(0, 4)


def test_an_answer_without_partitions_keeps_the_start(kit):
    made = stream(kit, {"subscribePattern": "^t$"})
    start = made.initial_offset()
    kit.cluster.delete_topic("t")
    assert made.latest_offset(start, ReadAllAvailable()) == start


def test_available_now_stops_at_what_it_found_first(kit):
    made = stream(kit, {"startingOffsets": "earliest"})
    start = made.initial_offset()
    made.prepare_for_trigger_available_now()
    kit.produce(3)
    end = made.latest_offset(start, ReadAllAvailable())
    kit.produce(3)
    assert end == {tp(0): 3, tp(1): 0}
    assert made.latest_offset(end, ReadAllAvailable()) == end


def test_each_partition_with_records_is_a_range(kit):
    start, end = offsets(2, 7), offsets(5, 7)
    assert stream(kit).plan_input_partitions(start, end) == (OffsetRange(tp(0), 2, 5),)


def test_an_added_partition_is_read_from_its_beginning(kit):
    kit.cluster.add_partitions("t", 3)
    kit.produce(4, partition=2)
    start = offsets(0, 0)
    ranges = stream(kit).plan_input_partitions(start, start.merge({tp(2): 4}))
    assert ranges == (OffsetRange(tp(2), 0, 4),)
    assert kit.events.named("partitions_added") == ((PartitionOffsets({tp(2): 0}),),)


LOSSES = [
    (offsets(0), offsets(0, 5), "ADDED_PARTITION_DOES_NOT_START_FROM_OFFSET_ZERO", (tp(1), 3, 5)),
    (offsets(0), offsets(0).merge({tp(9): 5}), "INITIAL_OFFSET_NOT_FOUND_FOR_PARTITIONS", None),
    (offsets(0).merge({tp(7): 1}), offsets(2), "PARTITIONS_DELETED", (tp(0), 0, 2)),
    (offsets(5, 3), offsets(1, 5), "PARTITION_OFFSET_CHANGED", (tp(1), 3, 5)),
]


@pytest.mark.parametrize(("start", "end", "condition", "left"), LOSSES)
def test_what_is_lost_fails_the_query_or_is_reported(kit, start, end, condition, left):
    kit.produce(5, partition=1)
    kit.cluster.delete_records({tp(1): 3})
    with pytest.raises(DataLossError) as caught:
        stream(kit).plan_input_partitions(start, end)
    assert caught.value.sub_condition == condition
    assert kit.events.named("data_lost") == ()
    assert stream(kit, GO_ON).plan_input_partitions(start, end) == (
        () if left is None else (OffsetRange(*left),)
    )
    [[loss]] = kit.events.named("data_lost")
    assert loss.condition == condition


def test_a_group_id_is_suspected_when_partitions_are_gone(kit):
    made = stream(kit, {"kafka.group.id": "mine"})
    with pytest.raises(DataLossError, match="This option is unsafe to use") as caught:
        made.plan_input_partitions(PartitionOffsets({tp(7): 1}), PartitionOffsets())
    assert caught.value.sub_condition == "PARTITIONS_DELETED_AND_GROUP_ID_CONFIG_PRESENT"


def test_a_stream_is_named_as_in_the_jvm_connector(kit):
    assert str(stream(kit)) == "KafkaV2[Subscribe[t]]"


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"startingOffsets": '{"t":{"0":3}}'}, StreamOffsetsMismatchError),
        ({"startingTimestamp": "5"}, NoOffsetForTimestampError),
    ],
)
def test_a_beginning_that_does_not_fit_is_an_error(kit, options, error):
    made = stream(kit, options)
    with pytest.raises(error):
        made.latest_offset(made.initial_offset(), ReadAllAvailable())
    assert kit.events.named("initial_offsets") == ()


def sizes(made: KafkaMicroBatchStream, start: PartitionOffsets, batches: int) -> list[list[int]]:
    found = []
    for _ in range(batches):
        end = made.latest_offset(start, made.default_read_limit)
        found.append([one.size for one in made.plan_input_partitions(start, end)])
        start = end
    return found


def test_small_ranges_share_tasks_with_max_partitions(kit):
    kit.produce(3)
    kit.produce(2, partition=1)
    ranges = OffsetRange(tp(0), 0, 3), OffsetRange(tp(1), 0, 2)
    start, end = offsets(0, 0), offsets(3, 2)
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
def test_many_small_tasks_are_reported(kit, partitions, offsets, options, *, is_reported):
    kit.cluster.add_partitions("t", partitions)
    made = stream(kit, options)
    start = PartitionOffsets({tp(number): 0 for number in range(partitions)})
    for step in (1, 2):
        end = PartitionOffsets({tp(number): step * offsets for number in range(partitions)})
        assert len(made.plan_tasks(start, end)) == partitions
        start = end
    expected = ((partitions, partitions * offsets),) if is_reported else ()
    assert kit.events.named("tasks_are_small") == expected


def test_a_query_over_what_is_available_has_batches_too(kit):
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


@pytest.mark.parametrize("fail_on_data_loss", ["true", "false"])
def test_available_now_fails_when_kafka_changes(kit, fail_on_data_loss):
    made, start, end = available_now(kit, {"failOnDataLoss": fail_on_data_loss})
    for other in (end.merge({tp(2): 0}), PartitionOffsets({tp(0): 5})):
        with pytest.raises(PartitionsNotPrefetchedError):
            made.plan_input_partitions(start, other)
    kit.produce(5)
    with pytest.raises(EndBeyondPrefetchedError):
        made.plan_input_partitions(start, end.merge({tp(0): 6}))
    kit.cluster.delete_topic("t")
    kit.cluster.create_topic("t", 1)
    with pytest.raises(LostPartitionsError):
        made.plan_input_partitions(start, end)
    kit.cluster.add_partitions("t", 2)
    with pytest.raises(EndBeyondLatestError):
        made.plan_input_partitions(start, end)


def test_what_kafka_still_has_is_read(kit):
    made, start, end = available_now(kit)
    kit.cluster.add_partitions("t", 3)
    kit.produce(5)
    kit.produce(5, partition=2)
    assert made.plan_input_partitions(start, end) == (
        OffsetRange(tp(0), 0, 5),
        OffsetRange(tp(1), 0, 5),
    )


def test_a_first_batch_that_runs_again_has_the_partitions_of_its_end(kit):
    """A partition that was added after the batch was planned is not a deleted one."""
    kit.produce(3)
    kit.cluster.add_partitions("t", 3)
    made = stream(kit, {"startingOffsets": "earliest"})
    end = offsets(3, 0)
    assert made.plan_input_partitions(made.initial_offset(), end) == (OffsetRange(tp(0), 0, 3),)


def test_a_partition_that_is_deleted_before_the_first_batch_is_lost(kit):
    """In the process that plans the first batch, a partition without an end is deleted."""
    made = stream(kit, {"startingOffsets": "earliest"})
    start = made.initial_offset()
    kit.cluster.delete_topic("t")
    kit.cluster.create_topic("t", 1)
    end = made.latest_offset(start, ReadAllAvailable())
    with pytest.raises(DataLossError, match="have been deleted"):
        made.plan_input_partitions(start, end)


def test_an_empty_batch_of_topics_that_are_gone(kit):
    """Spark plans one where the JVM connector has written the same offsets as another text."""
    kit.cluster.delete_topic("t")
    made = stream(kit, {"subscribePattern": "^t$"})
    made.prepare_for_trigger_available_now()
    start = offsets(5, 5)
    assert made.latest_offset(start, ReadAllAvailable()) == start
    assert made.plan_input_partitions(start, start) == ()


def test_a_batch_that_is_done_again_after_a_restart_is_not_checked(kit):
    """Before its first look a query has nothing to hold the end of a batch against."""
    _, start, end = available_now(kit)
    again = stream(kit)
    again.prepare_for_trigger_available_now()
    kit.cluster.add_partitions("t", 3)
    assert len(again.plan_input_partitions(start, end)) == 2
    assert again.latest_offset(end, ReadAllAvailable()).keys() == {tp(0), tp(1), tp(2)}


@pytest.mark.parametrize(
    ("options", "ends"),
    [({"minPartitions": "4"}, [3, 6, 9, 3]), ({"maxRecordsPerPartition": "5"}, [4, 9, 3])],
)
def test_a_batch_is_split_into_tasks(kit, options, ends):
    planned = stream(kit, options).plan_input_partitions(offsets(0, 0), offsets(9, 3))
    assert [one.until_offset for one in planned] == ends


def test_metrics_tell_how_far_a_query_is_behind(kit):
    kit.produce(3)
    kit.produce(6, partition=1)
    made = stream(kit)
    consumed = offsets(1, 2)
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


def test_metrics_of_a_query_without_partitions(kit):
    """When every topic of a pattern is gone there is nothing to be behind of."""
    made = stream(kit, {"subscribePattern": "^none$"})
    start = PartitionOffsets()
    assert made.latest_offset(start, ReadAllAvailable()) == start
    assert made.metrics(start) == {}
