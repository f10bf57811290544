"""Messages that one thread puts for another to take."""

from __future__ import annotations

from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Generic, TypeVar, final

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")


@final
class Inbox(Generic[T]):
    """A queue whose content is taken at once."""

    __slots__ = ("_queue",)

    def __init__(self) -> None:
        self._queue: SimpleQueue[T] = SimpleQueue()

    def put(self, message: T) -> None:
        """Append a message."""
        self._queue.put(message)

    def take(self, timeout_s: float = 0.0) -> Sequence[T]:
        """Return all messages in order as soon as there are any, or none in time."""
        taken: list[T] = []
        with suppress(Empty):
            # A negative time-out is a ValueError.
            taken.append(self._queue.get(timeout=max(0.0, timeout_s)))
            while True:
                taken.append(self._queue.get_nowait())
        return taken
