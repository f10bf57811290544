from collections.abc import Collection, Iterator

import pyarrow as pa
import pytest

from pyspark_kafka.adapters.memory.reading import MemoryOffsetFetcher, MemoryRecordReader
from pyspark_kafka.domain.errors import UnknownTopicError
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.reading import data_loss
from pyspark_kafka.domain.reading.errors import (
    DataLossError,
    LogTruncatedError,
    MissingOffsetsError,
    OffsetOutOfRangeError,
    OversizedRecordError,
    ResolvedOffsetsError,
    TopicRecreatedError,
)
from pyspark_kafka.domain.reading.ranges import OffsetRange
from pyspark_kafka.domain.reading.records import Projection
from pyspark_kafka.domain.topic_partition import TopicPartition

from ..conftest import Kit, tp

OFFSET = Projection(("offset",))
GO_ON = {"failOnDataLoss": "false"}


def read(kit: Kit, offset_range: OffsetRange, **options: str) -> list[int]:
    batches = kit.container(options).range_read().read(offset_range, OFFSET)
    return [row["offset"] for batch in batches for row in batch.to_pylist()]


def test_open_ends_are_bound_when_the_task_runs(kit):
    kit.produce(5)
    kit.cluster.delete_records({tp(0): 2})
    assert read(kit, OffsetRange(tp(0), -2, -1)) == [2, 3, 4]
    assert read(kit, OffsetRange(tp(0), 3, -1)) == [3, 4]
    assert read(kit, OffsetRange(tp(0), -2, 3)) == [2]
    assert read(kit, OffsetRange(tp(1), -2, -1)) == []


def test_ranges_are_read_one_after_another(kit, monkeypatch):
    kit.produce(3)
    kit.produce(2, partition=1)
    asked: list[tuple[str, int]] = []

    def watch(name: str) -> None:
        original = getattr(MemoryOffsetFetcher, name)

        def fetch(
            self: MemoryOffsetFetcher, partitions: Collection[TopicPartition]
        ) -> PartitionOffsets:
            asked.append((name, len(partitions)))
            return original(self, partitions)

        monkeypatch.setattr(MemoryOffsetFetcher, name, fetch)

    watch("earliest")
    watch("latest")
    expected: list[Collection[OffsetRange]] = []
    monkeypatch.setattr(MemoryRecordReader, "expect", lambda _, ranges: expected.append(ranges))
    ranges = [OffsetRange(tp(0), -2, -1), OffsetRange(tp(1), 1, 1), OffsetRange(tp(1), -2, -1)]
    found = [
        (partition, [row["offset"] for batch in batches for row in batch.to_pylist()])
        for partition, batches in kit.container().range_read().read_all(ranges, OFFSET)
    ]
    assert found == [(tp(0), [0, 1, 2]), (tp(1), []), (tp(1), [0, 1])]
    assert asked == [("earliest", 2), ("latest", 2)]
    assert expected == [[OffsetRange(tp(0), 0, 3), OffsetRange(tp(1), 0, 2)], []]


def test_ranges_that_are_not_read_are_not_expected_any_more(kit, monkeypatch):
    """A task may end early: by a limit, or by an error."""
    kit.produce(3)
    expected: list[Collection[OffsetRange]] = []
    monkeypatch.setattr(MemoryRecordReader, "expect", lambda _, ranges: expected.append(ranges))
    ranges = [OffsetRange(tp(0), 0, 3), OffsetRange(tp(1), 0, 1)]
    read_all = kit.container().range_read().read_all(ranges, OFFSET)
    next(read_all)
    assert expected == [ranges]
    del read_all
    assert expected == [ranges, []]


@pytest.mark.parametrize("flag", ["true", "false"])
@pytest.mark.parametrize(("start", "end", "bound"), [(6, -1, (6, 5)), (-2, 1, (2, 1))])
def test_a_start_beyond_its_end_is_an_error(kit, start, end, bound, flag):
    kit.produce(5)
    kit.cluster.delete_records({tp(0): 2})
    expected = "start offset {} is greater than the resolved end offset {} for topic t partition 0"
    with pytest.raises(ResolvedOffsetsError, match=expected.format(*bound)):
        read(kit, OffsetRange(tp(0), start, end), failOnDataLoss=flag)
    assert read(kit, OffsetRange(tp(0), 5, -1)) == read(kit, OffsetRange(tp(0), -2, 2)) == []


def test_an_open_end_of_a_partition_that_is_gone_is_an_error(kit):
    """The topic may have been deleted since the query was planned."""
    with pytest.raises(UnknownTopicError, match=r"Topic 't' .* correct the option 'subscribe'"):
        read(kit, OffsetRange(tp(5), -2, -1))


def test_oversized_records_that_are_skipped_are_reported(kit):
    """Oversized records do not fail the query, with any ``failOnDataLoss``."""
    for size in (10, 1, 10, 10):
        kit.cluster.produce("t", bytes(size))
    skipping = {"maxRecordBytes": "9", "skipOversizedRecords": "true"}
    assert read(kit, OffsetRange(tp(0), 0, 4), **skipping) == [1]
    [[loss]] = kit.events.named("data_lost")
    assert loss.condition == "OVERSIZED_RECORDS_SKIPPED"
    assert "at 0, 2, 3" in loss.warning


def test_an_oversized_record_fails_the_query(kit):
    """Lost data may be skipped, and it still does."""
    kit.cluster.produce("t", bytes(10))
    with pytest.raises(OversizedRecordError):
        read(kit, OffsetRange(tp(0), 0, 1), maxRecordBytes="9", **GO_ON)


def test_a_deleted_start_fails_the_query(kit):
    kit.produce(10)
    kit.cluster.delete_records({tp(0): 4})
    with pytest.raises(DataLossError, match=r"Could not read records in offset \[2, 8\)") as caught:
        read(kit, OffsetRange(tp(0), 2, 8))
    assert str(caught.value).endswith("with consumer group none.")
    cause = caught.value.__cause__
    assert isinstance(cause, OffsetOutOfRangeError)
    assert (cause.offset, cause.earliest, cause.latest) == (2, 4, 10)
    with pytest.raises(DataLossError, match=r"with consumer group g\."):
        read(kit, OffsetRange(tp(0), 2, 8), **{"kafka.group.id": "g"})
    assert caught.value.sub_condition == "COULD_NOT_READ_OFFSET_RANGE"
    assert len(kit.events.named("offset_out_of_range")) == 2


def test_a_deleted_start_is_skipped_when_the_query_may_go_on(kit):
    kit.produce(10)
    kit.cluster.delete_records({tp(0): 4})
    assert read(kit, OffsetRange(tp(0), 2, 8), **GO_ON) == [4, 5, 6, 7]
    [[loss]] = kit.events.named("data_lost")
    assert loss.warning == "Skip missing records in [2, 4) of t-0"


@pytest.mark.parametrize(("start", "end", "deleted"), [(12, 20, 0), (2, 8, 9), (2, 8, 8)])
def test_a_range_that_is_gone_whole_ends(kit, start, end, deleted):
    kit.produce(10)
    kit.cluster.delete_records({tp(0): deleted})
    assert read(kit, OffsetRange(tp(0), start, end), **GO_ON) == []
    [[loss]] = kit.events.named("data_lost")
    expected = f"Skip missing records in [{start}, {end}) of t-0"
    assert loss.warning == expected


def test_a_range_of_which_the_broker_has_no_next_offset_ends(kit, monkeypatch):
    """A broker that points to the offset that it does not hold is not asked again."""
    error = OffsetOutOfRangeError(tp(0), 2, earliest=2, latest=2)
    asked: list[OffsetRange] = []

    def fail(_: MemoryRecordReader, offset_range: OffsetRange, __: Projection) -> object:
        assert not asked
        asked.append(offset_range)
        raise error

    monkeypatch.setattr(MemoryRecordReader, "read", fail)
    assert read(kit, OffsetRange(tp(0), 2, 8), **GO_ON) == []
    [[loss]] = kit.events.named("data_lost")
    assert loss.warning == "Skip missing records in [2, 8) of t-0"
    assert kit.events.named("offset_out_of_range") == ((error,),)


def test_records_that_go_while_they_are_read_are_skipped_or_fail(kit, monkeypatch):
    """A gap that retention tore is a loss; what came before it has been handed out."""
    kit.produce(10)
    whole = MemoryRecordReader.read

    def torn(
        reader: MemoryRecordReader, offset_range: OffsetRange, projection: Projection
    ) -> Iterator[pa.RecordBatch]:
        if offset_range.from_offset >= 6:
            yield from whole(reader, offset_range, projection)
            return
        yield from whole(reader, OffsetRange(tp(0), offset_range.from_offset, 3), projection)
        raise MissingOffsetsError(tp(0), 3, 6)

    monkeypatch.setattr(MemoryRecordReader, "read", torn)
    assert read(kit, OffsetRange(tp(0), 1, 9), **GO_ON) == [1, 2, 6, 7, 8]
    [[loss]] = kit.events.named("data_lost")
    assert loss.warning == "Skip missing records in [3, 6) of t-0"
    with pytest.raises(DataLossError, match=r"\[3, 9\) for topic partition t-0"):
        read(kit, OffsetRange(tp(0), 1, 9))


def truncate(monkeypatch: pytest.MonkeyPatch, *diverges_at: int) -> None:
    """Truncate the log to these offsets, one after the other, always after offset 6 was read."""
    whole = MemoryRecordReader.read
    left = list(diverges_at)

    def read_until_truncated(
        reader: MemoryRecordReader, offset_range: OffsetRange, projection: Projection
    ) -> Iterator[pa.RecordBatch]:
        if not left:
            yield from whole(reader, offset_range, projection)
            return
        until_six = OffsetRange(tp(0), offset_range.from_offset, 6)
        yield from whole(reader, until_six, projection)
        raise LogTruncatedError(tp(0), 6, left.pop(0))

    monkeypatch.setattr(MemoryRecordReader, "read", read_until_truncated)


def test_a_truncated_log_is_read_again_from_where_its_records_are_others(kit, monkeypatch):
    kit.produce(10)
    truncate(monkeypatch, 4)
    assert read(kit, OffsetRange(tp(0), 2, 9), **GO_ON) == [2, 3, 4, 5, 4, 5, 6, 7, 8]
    [[loss]] = kit.events.named("data_lost")
    assert loss == data_loss.log_truncated(tp(0), 6, 4, 4)


def test_a_log_that_was_truncated_before_the_range_is_read_from_its_start(kit, monkeypatch):
    kit.produce(10)
    truncate(monkeypatch, 5, 1)
    expected = [2, 3, 4, 5, 5, 2, 3, 4, 5, 6, 7, 8]
    assert read(kit, OffsetRange(tp(0), 2, 9), **GO_ON) == expected
    losses = [loss for [loss] in kit.events.named("data_lost")]
    assert losses == [
        data_loss.log_truncated(tp(0), 6, 5, 5),
        data_loss.log_truncated(tp(0), 6, 1, 2),
    ]


def test_a_truncated_log_fails_a_query_that_may_not_lose_data(kit, monkeypatch):
    kit.produce(10)
    truncate(monkeypatch, 4)
    with pytest.raises(DataLossError, match="t-0 was truncated to offset 4 after") as caught:
        read(kit, OffsetRange(tp(0), 2, 9))
    assert caught.value.sub_condition == "LOG_TRUNCATED"
    assert isinstance(caught.value.__cause__, LogTruncatedError)


def test_a_log_that_is_truncated_again_and_again_fails_the_task(kit, monkeypatch):
    """Otherwise a broker that lies would be read for ever."""
    kit.produce(10)
    truncate(monkeypatch, *[4] * 100)
    with pytest.raises(LogTruncatedError):
        read(kit, OffsetRange(tp(0), 2, 9), **GO_ON)
    assert len(kit.events.named("data_lost")) == 10


def recreate(kit: Kit, records: int, deleted: int = 0) -> None:
    kit.cluster.delete_topic("t")
    kit.cluster.create_topic("t", 2)
    kit.produce(records)
    kit.cluster.delete_records({tp(0): deleted})


@pytest.mark.parametrize(("deleted", "resumed_at"), [(0, 300), (300, 300), (450, 450)])
def test_a_recreated_topic_is_read_from_the_start_of_the_range(kit, deleted, resumed_at):
    kit.produce(2_000)
    batches = kit.container(GO_ON).range_read().read(OffsetRange(tp(0), 300, 1_500), OFFSET)
    assert next(batches)["offset"].to_pylist() == list(range(300, 1_300))
    recreate(kit, 2_000, deleted)
    rest = [offset for batch in batches for offset in batch["offset"].to_pylist()]
    assert rest == list(range(resumed_at, 1_500))
    [[loss]] = kit.events.named("data_lost")
    assert loss == data_loss.partition_offset_changed(tp(0), 1_300, deleted)


def half_read(kit: Kit, options: dict[str, str] | None = None) -> Iterator[pa.RecordBatch]:
    """Return the second batch and what follows, of a read of 1,500 records."""
    kit.produce(1_500)
    batches = kit.container(options).range_read().read(OffsetRange(tp(0), 0, 1_500), OFFSET)
    assert next(batches).num_rows == 1_000
    return batches


def test_a_recreated_topic_that_begins_after_the_range_has_nothing_of_it(kit):
    batches = half_read(kit, GO_ON)
    recreate(kit, 2_000, 1_500)
    assert list(batches) == []
    [[loss]] = kit.events.named("data_lost")
    assert loss == data_loss.partition_offset_changed(tp(0), 1_000, 1_500)


def test_a_recreated_topic_that_ends_before_the_range_is_read_to_its_end(kit):
    """Its missing offsets are a loss of their own."""
    batches = half_read(kit, GO_ON)
    recreate(kit, 3)
    assert [batch["offset"].to_pylist() for batch in batches] == [[0, 1, 2]]
    losses = [loss for [loss] in kit.events.named("data_lost")]
    assert losses == [
        data_loss.partition_offset_changed(tp(0), 1_000, 0),
        data_loss.offset_range_not_read(tp(0), 3, 1_500, 1_500, "none"),
    ]


def test_a_recreated_topic_fails_a_query_that_may_not_lose_data(kit):
    batches = half_read(kit)
    recreate(kit, 2_000)
    with pytest.raises(DataLossError, match="t-0 offset was changed from 1000 to 0") as caught:
        next(batches)
    assert caught.value.sub_condition == "PARTITION_OFFSET_CHANGED"
    assert isinstance(caught.value.__cause__, TopicRecreatedError)


def test_nothing_is_left_of_a_range_before_the_new_log(kit, monkeypatch):
    """Retention has deleted all of it since the topic was created again."""
    kit.produce(10)

    def fail(*_: object) -> Iterator[pa.RecordBatch]:
        raise TopicRecreatedError(tp(0), 6, earliest=48)

    monkeypatch.setattr(MemoryRecordReader, "read", fail)
    assert read(kit, OffsetRange(tp(0), 2, 9), **GO_ON) == []
    [[loss]] = kit.events.named("data_lost")
    assert loss == data_loss.partition_offset_changed(tp(0), 6, 48)


def test_a_topic_that_is_recreated_again_and_again_fails_the_task(kit, monkeypatch):
    """Otherwise a broker that lies would be read for ever."""
    kit.produce(10)
    error = TopicRecreatedError(tp(0), 6, earliest=0)

    def fail(*_: object) -> Iterator[pa.RecordBatch]:
        raise error

    monkeypatch.setattr(MemoryRecordReader, "read", fail)
    with pytest.raises(TopicRecreatedError):
        read(kit, OffsetRange(tp(0), 2, 9), **GO_ON)
    assert len(kit.events.named("data_lost")) == 10


def test_a_topic_that_is_deleted_under_a_task_is_skipped_if_data_may_be_lost(kit):
    batches = half_read(kit, GO_ON)
    kit.cluster.delete_topic("t")
    assert list(batches) == []
    [[loss]] = kit.events.named("data_lost")
    assert loss.warning == "Skip missing records in [0, 1500) of t-0"


def test_a_topic_that_is_deleted_under_a_task_is_an_error(kit):
    batches = half_read(kit)
    kit.cluster.delete_topic("t")
    with pytest.raises(UnknownTopicError, match="'t'"):
        next(batches)
