"""The lag of queries as an iterator."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Final, final

from ...ports.clock import Deadline

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ...domain.lag.lag import QueryLag

MAX_BUFFERED: Final = 100
"""For a slow reader; beyond it the oldest entries are dropped."""


@final
class LagFeed:
    """A bounded buffer between the thread that measures lag and one that reads it."""

    def __init__(self, run_id: str | None, begin: Iterable[QueryLag] = ()) -> None:
        """Take the lag of one run, or of all queries if ``None``; ``begin`` is buffered first."""
        self._run_id = run_id
        self._changed = threading.Condition()
        self._buffer = deque(begin, MAX_BUFFERED)
        self._is_ended = False

    def put(self, lag: QueryLag) -> None:
        """Add the lag of a query, if the feed is for its run."""
        if self._run_id in (None, lag.run_id):
            with self._changed:
                self._buffer.append(lag)
                self._changed.notify_all()

    def query_ended(self, run_id: str) -> None:
        """End the feed if it is for this run."""
        if self._run_id == run_id:
            self.end()

    def end(self) -> None:
        """End the feed once its buffer is empty."""
        with self._changed:
            self._is_ended = True
            self._changed.notify_all()

    def follow(self, seconds: float | None) -> Iterator[QueryLag]:
        """Yield lag until the feed ends, or for a number of seconds."""
        deadline = Deadline.after(seconds)
        while (lag := self._next(deadline)) is not None:
            yield lag

    def _next(self, deadline: Deadline) -> QueryLag | None:
        with self._changed:
            while not self._buffer:
                if self._is_ended or deadline.has_passed:
                    return None
                self._changed.wait(min(deadline.remaining, threading.TIMEOUT_MAX))
            return self._buffer.popleft()
