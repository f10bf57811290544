"""The lag of queries for whoever waits for it."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Final, final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..domain.lag import QueryLag

MAX_BUFFERED: Final = 100
"""So many wait for a slow reader; then the oldest is dropped."""


@final
class LagFeed:
    """A bounded buffer between the thread that measures and one that reads."""

    def __init__(self, run_id: str | None, begin: Iterable[QueryLag] = ()) -> None:
        """Take the lag of one run of a query, or of all queries; ``begin`` is what there is."""
        self._run_id = run_id
        self._changed = threading.Condition()
        self._buffer = deque(begin, MAX_BUFFERED)
        self._is_ended = False

    def put(self, lag: QueryLag) -> None:
        """Take what was measured, if it is wanted here."""
        if self._run_id in (None, lag.run_id):
            with self._changed:
                self._buffer.append(lag)
                self._changed.notify_all()

    def query_ended(self, run_id: str) -> None:
        """Let the feed end with a run, if it is the one that is wanted here."""
        if self._run_id == run_id:
            self.end()

    def end(self) -> None:
        """Let the feed end, once it is empty."""
        with self._changed:
            self._is_ended = True
            self._changed.notify_all()

    def follow(self, seconds: float | None) -> Iterator[QueryLag]:
        """Give what comes until the feed ends, or that many seconds have passed."""
        deadline = None if seconds is None else time.monotonic() + seconds
        while (lag := self._next(deadline)) is not None:
            yield lag

    def _next(self, deadline: float | None) -> QueryLag | None:
        with self._changed:
            while not self._buffer:
                left = None if deadline is None else deadline - time.monotonic()
                if self._is_ended or (left is not None and left <= 0):
                    return None
                self._changed.wait(left)
            return self._buffer.popleft()
