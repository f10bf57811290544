from collections.abc import Iterator

import pyarrow as pa
import pytest

from pyspark_kafka.application.lag.meter import LagMeter
from pyspark_kafka.domain.lag.lag import Lag, PartitionLag
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.reading.errors import FetchTimeoutError
from pyspark_kafka.domain.reading.ranges import OffsetRange
from pyspark_kafka.domain.reading.records import Projection
from pyspark_kafka.ports.reading import RecordReader

from ..conftest import Kit, tp

COMMITTED = {"kafka.isolation.level": "read_committed"}


class WatchedReader(RecordReader):
    """Wraps a reader, keeps the ranges that are read, and may fail or take time."""

    def __init__(self, kit: Kit, reader: RecordReader) -> None:
        self.ranges: list[str] = []
        self.error: Exception | None = None
        self.milliseconds = 0
        self._kit = kit
        self._reader = reader

    def read(self, offset_range: OffsetRange, projection: Projection) -> Iterator[pa.RecordBatch]:
        self.ranges.append(str(offset_range))
        assert projection.columns == ("offset",)
        for batch in self._reader.read(offset_range, projection):
            self._kit.clock.sleep_ms(self.milliseconds)
            yield batch
            if self.error is not None:
                raise self.error

    def close(self) -> None:
        self._reader.close()


def metered(kit: Kit, assign: str = "", **bounds: int) -> tuple[LagMeter, WatchedReader]:
    container = kit.container({**COMMITTED, **({"assign": assign} if assign else {})})
    watched = WatchedReader(kit, container.record_reader())
    container.record_reader.override(watched)
    return container.lag_meter(**bounds), watched


def meter(kit: Kit, **bounds: int) -> LagMeter:
    return metered(kit, "", **bounds)[0]


def transaction(kit: Kit, records: int, *, commit: bool = True) -> None:
    """Write records in a transaction to the first partition."""
    number = kit.cluster.begin_transaction()
    for _ in range(records):
        kit.cluster.produce("t", b"v", transaction=number)
    kit.cluster.end_transaction(number, commit=commit)


def consumed(first: int = 0, second: int = 0) -> PartitionOffsets:
    return PartitionOffsets({tp(0): first, tp(1): second})


def test_markers_do_not_count(kit):
    transaction(kit, 3)
    transaction(kit, 2, commit=False)
    lag = meter(kit).measure(consumed(3))
    assert lag.partitions[0] == PartitionLag(tp(0), 3, 7, lag=0, is_exact=True)
    assert lag.is_exact


def test_records_are_counted_where_few_offsets_are_left(kit):
    transaction(kit, 9)
    kit.produce(11, partition=1)
    lag = meter(kit, max_counted=10).measure(consumed())
    assert [(each.lag, each.is_exact) for each in lag.partitions] == [(9, True), (11, False)]
    assert not lag.is_exact


def test_counting_can_be_left_out(kit):
    kit.produce(2)
    measuring, reader = metered(kit, max_counted=0)
    lag = measuring.measure(consumed())
    assert [(each.lag, each.is_exact) for each in lag.partitions] == [(2, False), (0, True)]
    assert reader.ranges == []


def test_new_partitions_count_from_their_first_offset(kit):
    kit.produce(5, partition=1)
    kit.cluster.delete_records({tp(1): 2})
    lag = meter(kit).measure(PartitionOffsets({tp(0): 0}))
    assert lag.partitions[1] == PartitionLag(tp(1), 2, 5, lag=3, is_exact=True)


def test_partitions_that_are_not_assigned_do_not_count(kit):
    kit.cluster.create_topic("u", 2)
    kit.cluster.create_topic("unread")
    for partition in range(2):
        kit.produce(5, partition=partition)
        kit.produce(5, partition=partition, topic="u")
    measuring, _ = metered(kit, '{"t":[1,7],"unread":[0]}')
    assert measuring.measure(PartitionOffsets({tp(1): 2})).lag == Lag({tp(1): 3})
    both = PartitionOffsets({tp(1): 2, tp(0, "u"): 5})
    assert measuring.measure(both).lag == Lag({tp(1): 3, tp(0, "u"): 0, tp(1, "u"): 5})


def test_deleted_records_are_not_waited_for(kit):
    kit.produce(5)
    kit.cluster.delete_records({tp(0): 4})
    lag = meter(kit).measure(consumed(1))
    assert lag.partitions[0] == PartitionLag(tp(0), 1, 5, lag=1, is_exact=True, expired=3)


def test_topics_that_are_gone_are_left_out(kit):
    kit.produce(5)
    gone = PartitionOffsets({tp(0, "gone"): 3})
    assert meter(kit).measure(consumed().merge(gone)).lag == Lag({tp(0): 5, tp(1): 0})
    assert meter(kit).measure(gone).lag == Lag({})
    assert meter(kit).measure(PartitionOffsets()).lag == Lag({})


def test_several_sources_are_measured_at_once(kit):
    kit.produce(5)
    lags = meter(kit).measure_all([consumed(2), consumed(5)])
    assert [lag.lag.total for lag in lags] == [3, 0]


def test_a_count_is_kept_while_nothing_moves(kit):
    transaction(kit, 1)
    measuring, reader = metered(kit)
    for _ in range(3):
        assert measuring.measure(consumed(1)).is_exact
    assert reader.ranges == ["t-0[1, 2)"]
    kit.produce(1)
    assert measuring.measure(consumed(1)).lag.total == 1
    assert measuring.measure(consumed(2)).lag.total == 1
    assert reader.ranges[1:] == ["t-0[1, 3)", "t-0[2, 3)"]


def test_the_records_of_all_batches_count(kit, monkeypatch):
    """A reader returns a span in as many batches as it likes."""
    kit.produce(5)
    measuring, reader = metered(kit)
    whole = reader.read

    def one_by_one(offset_range: OffsetRange, projection: Projection) -> Iterator[pa.RecordBatch]:
        for batch in whole(offset_range, projection):
            yield from (batch.slice(row, 1) for row in range(batch.num_rows))

    monkeypatch.setattr(reader, "read", one_by_one)
    assert measuring.measure(consumed(2)).partitions[0] == PartitionLag(
        tp(0), 2, 5, lag=3, is_exact=True
    )


def test_what_cannot_be_counted_is_given_in_offsets(kit):
    """A read that fails half-way costs the exactness of its partition, and is tried again."""
    transaction(kit, 3)
    measuring, reader = metered(kit)
    reader.error = FetchTimeoutError(tp(0), 1, 5_000)
    assert measuring.measure(consumed()).partitions[0] == PartitionLag(tp(0), 0, 4, lag=4)
    reader.error = None
    assert measuring.measure(consumed()).partitions[0].lag == 3


@pytest.mark.parametrize("milliseconds", [50, 99])
def test_counting_ends_with_its_time(kit, milliseconds):
    kit.produce(3)
    kit.produce(3, partition=1)
    measuring, reader = metered(kit, count_timeout_ms=50)
    assert measuring.measure(consumed()).is_exact
    kit.produce(1)
    kit.produce(1, partition=1)
    reader.milliseconds = milliseconds
    reader.ranges.clear()
    assert [each.is_exact for each in measuring.measure(consumed()).partitions] == [False, False]
    assert reader.ranges == ["t-0[0, 4)"]


def test_the_time_of_counting_begins_with_the_first_batch(kit):
    """Before it, a process may compile for many seconds what decodes batches."""
    kit.produce(3)
    kit.produce(3, partition=1)
    measuring, reader = metered(kit, count_timeout_ms=50)
    reader.milliseconds = 40
    assert measuring.measure(consumed()).is_exact
