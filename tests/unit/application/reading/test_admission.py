"""How much of what Kafka has the next batch takes."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from pyspark_kafka.adapters.memory.offset_fetcher import MemoryOffsetFetcher
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.reading.admission import (
    CompositeReadLimit,
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
)

from ..conftest import Kit, tp

if TYPE_CHECKING:
    from pyspark_kafka.application.reading.admission import Admission

ALL = ReadAllAvailable()
AT_LEAST_15 = ReadMinRows(15, 5_000)
WAITED = "Maximum wait time is passed, triggering batch"
NOT_ENOUGH = "Delaying batch as number of records available is less than minOffsetsPerTrigger"


def admission(kit: Kit) -> Admission:
    made: Admission = kit.container().admission()
    return made


def offsets(*ends: int) -> PartitionOffsets:
    return PartitionOffsets((tp(number), end) for number, end in enumerate(ends))


@pytest.mark.parametrize(
    ("limit", "end"),
    [
        (ALL, (101, 11, 1)),
        (ReadMaxRows(10), (8, 1, 1)),
        (ReadMaxRows(1_000), (101, 11, 1)),
        (ReadMaxRows(2**63 - 1), (101, 11, 1)),
        (ReadMinRows(1_000, 5_000), (101, 11, 1)),
        (CompositeReadLimit((ReadMinRows(5, 5_000), ReadMaxRows(10))), (8, 1, 1)),
        (CompositeReadLimit((ReadMaxRows(10), ReadMaxRows(1_000))), (8, 1, 1)),
        (CompositeReadLimit((ReadMaxRows(10), ALL)), (101, 11, 1)),
        (CompositeReadLimit((ALL, ReadMinRows(1_000, 5_000))), (101, 11, 1)),
    ],
)
def test_a_first_batch(kit: Kit, limit: ReadLimit, end: tuple[int, ...]) -> None:
    """A limit on rows cuts the first batch, which waits for nothing."""
    assert admission(kit).end_of_batch(offsets(0, 0, 0), offsets(101, 11, 1), limit) == offsets(
        *end
    )


def test_a_limit_on_rows_over_batches(kit: Kit) -> None:
    """Ten at a time of 101, 11 and 1 offsets are 8, 1 and 1, then 9, 1 and none."""
    made, latest = admission(kit), offsets(101, 11, 1)
    first = made.end_of_batch(offsets(0, 0, 0), latest, ReadMaxRows(10))
    second = made.end_of_batch(first, latest, ReadMaxRows(10))
    assert (first, second) == (offsets(8, 1, 1), offsets(17, 2, 1))


def test_a_least_number_of_rows_over_batches(kit: Kit, caplog: pytest.LogCaptureFixture) -> None:
    """A batch waits for its least number of rows, but never longer than it may."""
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


def test_a_batch_that_ran_for_its_rows_restarts_the_delay(kit: Kit) -> None:
    """The delay counts from the last batch, even if it ran for its rows."""
    made = admission(kit)
    made.end_of_batch(offsets(0), offsets(1), AT_LEAST_15)
    kit.clock.sleep_ms(4_000)
    assert made.end_of_batch(offsets(1), offsets(16), AT_LEAST_15) == offsets(16)
    kit.clock.sleep_ms(4_000)
    assert made.end_of_batch(offsets(16), offsets(17), AT_LEAST_15) == offsets(16)


def test_limits_together_over_batches(kit: Kit) -> None:
    """At least 15 and at most 20 of 33 rows make 19, then wait, then run when it is time."""
    made, limit = admission(kit), CompositeReadLimit((AT_LEAST_15, ReadMaxRows(20)))
    latest = offsets(21, 11, 1)
    first = made.end_of_batch(offsets(0, 0, 0), latest, limit)
    assert first == offsets(12, 6, 1)
    assert made.end_of_batch(first, latest, limit) == first
    kit.clock.sleep_ms(5_000)
    assert made.end_of_batch(first, latest, limit) == latest


def test_everything_overrules_what_waits(kit: Kit, caplog: pytest.LogCaptureFixture) -> None:
    """Trigger.Once reads all that there is, and the delay hears nothing of it."""
    made = admission(kit)
    with caplog.at_level(logging.DEBUG, logger="pyspark_kafka"):
        assert made.end_of_batch(offsets(0), offsets(1), ALL) == offsets(1)
    assert caplog.records == []
    made.end_of_batch(offsets(1), offsets(2), AT_LEAST_15)
    assert made.end_of_batch(offsets(2), offsets(3), AT_LEAST_15) == offsets(2)
    limit = CompositeReadLimit((AT_LEAST_15, ALL))
    assert made.end_of_batch(offsets(2), offsets(3), limit) == offsets(3)


def test_a_new_partition_counts_from_its_beginning(kit: Kit) -> None:
    """Records of a new partition that retention deleted do not count for its share."""
    kit.produce(100)
    kit.produce(100, partition=1)
    kit.cluster.delete_records({tp(1): 80})
    end = admission(kit).end_of_batch(offsets(0), offsets(100, 100), ReadMaxRows(12))
    assert end == offsets(10, 82)


def test_a_new_partition_that_went_again_goes_to_its_end(kit: Kit) -> None:
    """A partition whose beginning Kafka does not tell has no share of the limit."""
    latest = PartitionOffsets({tp(0): 100, tp(9): 50})
    end = admission(kit).end_of_batch(offsets(0), latest, ReadMaxRows(10))
    assert end == {tp(0): 10, tp(9): 50}


def test_a_partition_that_is_gone_does_not_come_back(kit: Kit) -> None:
    """A batch ends in the partitions that there are now."""
    limit = CompositeReadLimit((ReadMaxRows(10), ReadMaxBytes(10)))
    start = PartitionOffsets({tp(0): 0, tp(7): 5})
    kit.produce(5)
    assert admission(kit).end_of_batch(start, offsets(5), limit).keys() == {tp(0)}


def test_no_beginning_is_asked_for_without_a_new_partition(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker is not asked what the start of the batch tells."""

    def fail(*_: object) -> PartitionOffsets:
        raise AssertionError

    monkeypatch.setattr(MemoryOffsetFetcher, "earliest", fail)
    end = admission(kit).end_of_batch(offsets(0, 0), offsets(10, 10), ReadMaxRows(10))
    assert end == offsets(5, 5)


def produce(kit: Kit, count: int, size: int, partition: int = 0) -> None:
    for _ in range(count):
        kit.cluster.produce("t", b"x" * size, partition=partition)


def test_a_limit_on_bytes_reckons_with_the_size_of_records(kit: Kit) -> None:
    """Records that are ten times as large are read a tenth as often."""
    produce(kit, 10, 10_000)
    produce(kit, 100, 1_000, partition=1)
    end = admission(kit).end_of_batch(offsets(0, 0), offsets(10, 100), ReadMaxBytes(105_000))
    assert end[tp(0)] == 5
    assert 50 <= end[tp(1)] <= 52


def test_a_limit_on_bytes_follows_the_records(kit: Kit) -> None:
    """A stream of small records that become large ones takes fewer of them."""
    produce(kit, 100, 100)
    produce(kit, 100, 10_000)
    made, limit = admission(kit), ReadMaxBytes(30_500)
    assert made.end_of_batch(offsets(0, 0), offsets(100, 0), limit) == offsets(100, 0)
    assert made.end_of_batch(offsets(100, 0), offsets(200, 0), limit) == offsets(103, 0)


def test_a_record_beyond_the_limit_on_bytes_is_read_alone(kit: Kit) -> None:
    """A stream goes on after a record of any size."""
    produce(kit, 3, 10_000)
    produce(kit, 5, 10_000, partition=1)
    end = admission(kit).end_of_batch(offsets(0, 0), offsets(3, 5), ReadMaxBytes(1))
    assert end == offsets(0, 1)


def test_bytes_that_suffice_are_all_read(kit: Kit) -> None:
    """Below the limit nothing is cut."""
    produce(kit, 10, 1_000)
    end = admission(kit).end_of_batch(offsets(0, 0), offsets(10, 0), ReadMaxBytes(20_000))
    assert end == offsets(10, 0)


def test_the_stricter_of_two_limits_holds_for_each_partition(kit: Kit) -> None:
    """Rows bound the partition of small records, bytes the partition of large ones."""
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
