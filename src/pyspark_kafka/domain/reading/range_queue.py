"""The ranges that a reader is told to expect."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..topic_partition import TopicPartition
    from .ranges import OffsetRange


@final
class RangeQueue:
    """The ranges that are read next, in this order."""

    def __init__(self, ranges: Iterable[OffsetRange] = ()) -> None:
        self._ranges = tuple(ranges)
        starts = ((one.partition, one.from_offset) for one in self._ranges)
        self._places = {start: place for place, start in enumerate(starts)}
        self._begun = 0

    def __iter__(self) -> Iterator[OffsetRange]:
        return (self._ranges[place] for place in range(self._begun, len(self._ranges)))

    def first(self, count: int) -> tuple[OffsetRange, ...]:
        """Return the ranges that are read next, ``count`` at most."""
        return self._ranges[self._begun : self._begun + count]

    def begin(self, partition: TopicPartition, offset: int) -> tuple[OffsetRange, ...]:
        """Note that a range is read from its start on, and return those that were passed over.

        They are not expected any more. A range that was not expected changes nothing.
        """
        place = self._places.get((partition, offset), -1)
        if place < self._begun:
            return ()
        passed = self._ranges[self._begun : place]
        self._begun = place + 1
        return passed
