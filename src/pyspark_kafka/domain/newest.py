"""A buffer that keeps the newest items within bounds."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, Generic, TypeVar, final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

T = TypeVar("T")

MAX_ITEMS: Final = 100
"""Also the default of ``spark.sql.streaming.numRecentProgressUpdates``."""

MAX_PARTITIONS: Final = 100_000
"""The partitions of all items: the lag or the offsets of one take a fifth of a kilobyte."""


@final
class Newest(Generic[T]):
    """Reports in order; the newest are kept, as many as the bounds allow, at least one."""

    def __init__(self, partitions_of: Callable[[T], int], items: Iterable[T] = ()) -> None:
        """Take the number of partitions in an item, and the first items."""
        self._partitions_of = partitions_of
        self._items: deque[T] = deque()
        self._partitions = 0
        for item in items:
            self.append(item)

    def __bool__(self) -> bool:
        return bool(self._items)

    def __iter__(self) -> Iterator[T]:
        return iter(self._items)

    def append(self, item: T) -> None:
        """Add the newest item; the oldest ones may go."""
        self._items.append(item)
        self._partitions += self._partitions_of(item)
        while len(self._items) > 1 and self._is_full:
            self.popleft()

    def popleft(self) -> T:
        """Remove and return the oldest item."""
        item = self._items.popleft()
        self._partitions -= self._partitions_of(item)
        return item

    @property
    def _is_full(self) -> bool:
        return len(self._items) > MAX_ITEMS or self._partitions > MAX_PARTITIONS
