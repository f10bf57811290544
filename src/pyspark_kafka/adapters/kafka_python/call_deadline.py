"""One deadline for all that a call waits for."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, final

from ...ports.deadline import Deadline

if TYPE_CHECKING:
    from collections.abc import Iterator


@final
class CallDeadline(threading.local):
    """The deadline of the call that an adapter performs, by thread.

    A call consists of requests, connections and pauses; each may take all of the time.
    Within another call, the earlier deadline counts.
    """

    def __init__(self) -> None:
        self._current: Deadline | None = None

    @contextmanager
    def within(self, seconds: float) -> Iterator[Deadline]:
        """Yield the deadline of a call, which ends in ``seconds`` or with the call around it."""
        outer, own = self._current, Deadline.after(seconds)
        self._current = own if outer is None else min(outer, own)
        try:
            yield self._current
        finally:
            self._current = outer
