"""The small ranges that are fetched by one request, and wait until they are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from kafka import errors as kafka_errors

from ...domain.reading.range_queue import RangeQueue
from .wire import FetchedData

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from ...domain.reading.ranges import OffsetRange
    from ...domain.topic_partition import TopicPartition
    from .wire import FetchPosition

MAX_TOGETHER: Final = 128
"""How many ranges a request names besides the one that is read."""

_BEFORE_SIZE: Final = 12
"""The bytes of a batch before those that its size counts: its offset, and the size."""

RANGE_BYTES: Final = 32 * 1024
"""How much of each is asked for: together they take 4 MB at most, but for single large batches."""


@final
@dataclass(frozen=True, slots=True)
class HeldData:
    """What a broker sent of a range that is read later."""

    position: FetchPosition
    data: FetchedData
    is_by_id: bool


@final
class ExpectedRanges:
    """The ranges that are read next, in order, and what was fetched of them."""

    def __init__(self) -> None:
        self._expected = RangeQueue()
        self._held: dict[TopicPartition, HeldData] = {}

    def expect(self, ranges: Collection[OffsetRange]) -> None:
        """Forget what was expected before."""
        self._expected = RangeQueue(ranges)
        self._held = {}

    def begin(self, partition: TopicPartition, offset: int) -> None:
        """Note that a range is read from its start on: none before it is expected any more."""
        self._expected.begin(partition, offset)

    def next_on(self, is_there: Callable[[TopicPartition], bool]) -> Iterator[OffsetRange]:
        """Yield ranges of different partitions on one broker, which one request may name."""
        seen: set[TopicPartition] = set()
        for one in self._expected:
            if len(seen) == MAX_TOGETHER:
                return
            if one.partition not in seen and one.partition not in self._held:
                seen.add(one.partition)
                if is_there(one.partition):
                    yield one

    def hold(
        self,
        partitions: Mapping[TopicPartition, FetchedData],
        positions: Mapping[TopicPartition, FetchPosition],
        *,
        is_by_id: bool,
    ) -> None:
        """Keep a copy of what was sent of expected ranges; what failed is fetched again alone."""
        for partition, position in positions.items():
            data = partitions.get(partition)
            if data is not None and data.error is kafka_errors.NoError and _is_whole(data.records):
                self._held[partition] = HeldData(position, _copy(data), is_by_id)

    def take(self, partition: TopicPartition) -> HeldData | None:
        """Return what is held of a partition, once."""
        return self._held.pop(partition, None)


def _is_whole(records: memoryview) -> bool:
    """Return whether the first batch is complete: only one partition's is, beyond the limits."""
    size = int.from_bytes(records[8:12], "big", signed=True)
    return len(records) >= _BEFORE_SIZE + size > _BEFORE_SIZE


def _copy(data: FetchedData) -> FetchedData:
    """Return data that stay when the memory of the response is used again."""
    records = memoryview(bytes(data.records))
    return FetchedData(data.error, data.preferred_replica, data.aborted, records, data.diverging)
