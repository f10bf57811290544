"""Measuring how many bytes records have."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from pyspark_kafka.adapters.memory.record_reader import MemoryRecordReader
from pyspark_kafka.application.reading.record_sizes import RecordSizes
from pyspark_kafka.domain.errors import FetchTimeoutError
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.reading.ranges import OffsetRange
from pyspark_kafka.domain.reading.records import Projection
from pyspark_kafka.ports.reading.record_reader import RecordReader

from ..conftest import Kit, tp

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa


@dataclass
class Looking(RecordReader):
    """Reads from a cluster in memory, and remembers what it was asked for."""

    reader: RecordReader
    looks: list[OffsetRange] = field(default_factory=list)
    columns: set[Projection] = field(default_factory=set)
    fails: bool = False

    def read(self, offset_range: OffsetRange, projection: Projection) -> Iterator[pa.RecordBatch]:
        self.looks.append(offset_range)
        self.columns.add(projection)
        if self.fails:
            raise FetchTimeoutError(offset_range.partition, offset_range.from_offset, 1)
        return self.reader.read(offset_range, projection)

    def close(self) -> None:
        """Do nothing."""


@pytest.fixture
def looking(kit: Kit) -> Looking:
    """Return a reader that records its calls."""
    reader = kit.container().record_reader()
    assert isinstance(reader, MemoryRecordReader)
    return Looking(reader)


def offsets(*ends: int) -> PartitionOffsets:
    return PartitionOffsets((tp(number), end) for number, end in enumerate(ends))


def produce(kit: Kit, partition: int, count: int, size: int) -> None:
    for _ in range(count):
        kit.cluster.produce("t", b"x" * size, partition=partition)


def test_the_mean_size_of_records(kit: Kit, looking: Looking) -> None:
    """A record's keys, values and headers count, and little beside them."""
    produce(kit, 0, 10, 1_000)
    for _ in range(10):
        kit.cluster.produce("t", b"v" * 500, key=b"k" * 200, headers=(("h", b"x" * 300),))
    produce(kit, 1, 4, 50_000)
    sizes = RecordSizes(lambda: looking).measure(offsets(0, 0), offsets(20, 4))
    assert 1_000 <= sizes[tp(0)] <= 1_050
    assert 50_000 <= sizes[tp(1)] <= 50_050
    assert looking.columns == {Projection(("key", "value", "headers"))}


def test_a_look_takes_a_hundred_offsets(kit: Kit, looking: Looking) -> None:
    """The first hundred offsets of a long backlog are read, and all offsets of a short one."""
    produce(kit, 0, 300, 1)
    produce(kit, 1, 30, 1)
    RecordSizes(lambda: looking).measure(offsets(50, 20), offsets(300, 30))
    assert looking.looks == [OffsetRange(tp(0), 50, 150), OffsetRange(tp(1), 20, 30)]


def test_partitions_without_anything_new_are_not_looked_at(kit: Kit, looking: Looking) -> None:
    """What a batch will not read is not measured, and neither what has no beginning."""
    produce(kit, 0, 5, 1)
    sizes = RecordSizes(lambda: looking)
    assert sizes.measure(offsets(5, 0), offsets(5, 0, 9)) == {}
    assert looking.looks == []


def test_a_reader_is_made_only_to_read() -> None:
    """Without a measurement no reader is created."""

    def fail() -> RecordReader:
        raise AssertionError

    assert RecordSizes(fail).measure({}, offsets(5)) == {}


def test_few_partitions_are_looked_at_before_a_batch(kit: Kit, looking: Looking) -> None:
    """Eight partitions are looked at; then come those that were not, then the oldest measures."""
    kit.cluster.add_partitions("t", 10)
    for number in range(10):
        produce(kit, number, 3, 1)
    sizes = RecordSizes(lambda: looking)
    begin, until = offsets(*[0] * 10), offsets(*[3] * 10)
    seen = []
    for _ in range(3):
        sizes.measure(begin, until)
        seen.append([look.partition.partition for look in looking.looks])
        looking.looks.clear()
    assert seen == [
        [0, 1, 2, 3, 4, 5, 6, 7],
        [8, 9, 0, 1, 2, 3, 4, 5],
        [6, 7, 8, 9, 0, 1, 2, 3],
    ]


def test_a_later_look_takes_the_place_of_an_earlier_one(kit: Kit, looking: Looking) -> None:
    """The records at the start of the next batch are measured."""
    produce(kit, 0, 2, 10)
    produce(kit, 0, 2, 90_000)
    sizes = RecordSizes(lambda: looking)
    assert sizes.measure(offsets(0), offsets(2))[tp(0)] < 100
    assert sizes.measure(offsets(2), offsets(4))[tp(0)] > 80_000


@pytest.mark.parametrize("failure", ["the range is gone", "the broker fails"])
def test_what_cannot_be_read_keeps_its_measure(kit: Kit, looking: Looking, failure: str) -> None:
    """A look that fails raises no error: the batch itself reports it."""
    produce(kit, 0, 10, 1_000)
    sizes = RecordSizes(lambda: looking)
    before = dict(sizes.measure(offsets(0), offsets(5)))
    if failure == "the broker fails":
        looking.fails = True
    else:
        kit.cluster.delete_records({tp(0): 10})
    assert sizes.measure(offsets(5), offsets(10)) == before
    assert len(looking.looks) == 2


def test_offsets_without_records_keep_the_measure(kit: Kit) -> None:
    """Aborted transactions have no size of their own."""
    container = kit.container({"kafka.isolation.level": "read_committed"})
    produce(kit, 0, 3, 1_000)
    transaction = kit.cluster.begin_transaction()
    kit.cluster.produce("t", b"x", transaction=transaction)
    kit.cluster.end_transaction(transaction, commit=False)
    sizes = container.record_sizes()
    before = dict(sizes.measure(offsets(0), offsets(3)))
    assert sizes.measure(offsets(3), offsets(5)) == before


def test_partitions_without_records_give_way_to_others(kit: Kit, looking: Looking) -> None:
    """A look that found nothing counts as a look, so that no other partition waits for ever."""
    kit.cluster.add_partitions("t", 9)
    for partition in range(8):
        kit.produce(5, partition)
        kit.cluster.delete_records({tp(partition): 5})
    produce(kit, 8, 3, 1_000)
    begin, until = offsets(*[0] * 9), offsets(*[5] * 8, 3)
    sizes = RecordSizes(lambda: looking)
    for _ in range(2):
        measured = sizes.measure(begin, until)
    assert measured[tp(8)] >= 1_000


def test_a_part_of_a_batch_counts_alone(kit: Kit, looking: Looking) -> None:
    """A reader may return slices, whose buffers they share."""
    produce(kit, 0, 10, 1_000)
    read = looking.reader.read
    looking.reader.read = lambda *given: (  # type: ignore[method-assign]
        batch.slice(row, 1) for batch in read(*given) for row in range(batch.num_rows)
    )
    assert RecordSizes(lambda: looking).measure(offsets(0), offsets(10))[tp(0)] <= 1_100
