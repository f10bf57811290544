"""Small ranges that are fetched together: the requested ones, and the data sent of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic, TypeVar, final

from .range_progress import RangeQueue

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from ..topic_partition import TopicPartition
    from .ranges import OffsetRange

H = TypeVar("H")

MAX_TOGETHER: Final = 128
"""How many ranges are held, and named by a request in addition to the one that is read."""


@final
class ExpectedRanges(Generic[H]):
    """The ranges that are read next, in order, and what was fetched of them."""

    def __init__(self) -> None:
        self._expected = RangeQueue()
        self._held: dict[TopicPartition, H] = {}
        self._refused: set[TopicPartition] = set()

    def expect(self, ranges: Collection[OffsetRange]) -> None:
        """Forget what was expected before."""
        self._expected = RangeQueue(ranges)
        self._held, self._refused = {}, set()

    def begin(self, partition: TopicPartition, offset: int) -> None:
        """Note that a range is read from its start on: earlier ones are no longer expected."""
        self._expected.begin(partition, offset)

    def next_on(self, is_there: Callable[[TopicPartition], bool]) -> Iterator[OffsetRange]:
        """Yield ranges of different partitions on one broker, which one request may name.

        They are among the next ``MAX_TOGETHER`` partitions, also while one range takes many
        requests: no more than these are held.
        """
        seen: set[TopicPartition] = set()
        for one in self._expected:
            if len(seen) == MAX_TOGETHER:
                return
            if one.partition not in seen:
                seen.add(one.partition)
                is_open = one.partition not in self._refused and one.partition not in self._held
                if is_open and is_there(one.partition):
                    yield one

    def hold(self, partition: TopicPartition, data: H) -> None:
        """Keep what was sent of an expected range."""
        self._held[partition] = data

    def refuse(self, partition: TopicPartition) -> None:
        """Leave a partition out of requests for others: a broker with an error does not wait.

        Where the other partitions have no records yet, requests would follow without a pause.
        """
        self._refused.add(partition)

    def take(self, partition: TopicPartition) -> H | None:
        """Return what is held of a partition, once."""
        return self._held.pop(partition, None)
