"""How far a range is read, when to give up, and which ranges come next.

The rules of Spark's ``InternalKafkaConsumer``. Times are monotonic, in seconds.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, final

from .errors import FetchTimeoutError, OffsetOutOfRangeError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..topic_partition import TopicPartition
    from .ranges import OffsetRange


@final
class RangeProgress:
    """How far a range is read; ``position`` is the offset to fetch from."""

    def __init__(self, offset_range: OffsetRange, poll_timeout_ms: int) -> None:
        self.position = offset_range.from_offset
        self._range = offset_range
        self._poll_timeout_ms = poll_timeout_ms
        self._deadline = math.inf

    @property
    def is_finished(self) -> bool:
        """Whether nothing of the range is left."""
        return self.position >= self._range.until_offset

    def poll(self, now: float) -> None:
        """Begin to wait for the next records; the time until then does not count."""
        self._deadline = now + self._poll_timeout_ms / 1_000

    def advance(self, next_offset: int) -> bool:
        """Move to where a fetch ended, and return whether that is any further."""
        has_moved = next_offset > self.position
        self.position = max(self.position, next_offset)
        return has_moved

    def needs_watermarks(self, now: float, *, is_missing: bool) -> bool:
        """Return whether ``check`` is due after a fetch that did not move.

        It is due if the broker does not hold the offset, or nothing came in time.
        """
        return is_missing or now > self._deadline

    def check(self, earliest: int, latest: int, now: float) -> None:
        """Return if another fetch may move on; the broker holds ``[earliest, latest)``.

        :raises OffsetOutOfRangeError: if the offset is not among them.
        :raises FetchTimeoutError: if it is, and nothing came in time.
        """
        partition = self._range.partition
        if not earliest <= self.position < latest:
            raise OffsetOutOfRangeError(partition, self.position, earliest=earliest, latest=latest)
        if now > self._deadline:
            raise FetchTimeoutError(partition, self.position, self._poll_timeout_ms)


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

        They are no longer expected. A range that was not expected changes nothing.
        """
        place = self._places.get((partition, offset), -1)
        if place < self._begun:
            return ()
        passed = self._ranges[self._begun : place]
        self._begun = place + 1
        return passed
