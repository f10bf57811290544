"""One deadline for all waits of a call, and short ones for repeated calls."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final, final

from ..ports.clock import Deadline

MIN_ATTEMPT_S: Final = 1.0
MAX_ATTEMPT_S: Final = 8.0
"""The longest wait of a task of a continuous query: its driver must hear from the task."""


@final
class _Calls(threading.local):
    """The calls that each thread performs."""

    deadline = Deadline.after(None)


_CALLS: Final = _Calls()


@contextmanager
def within(seconds: float) -> Iterator[Deadline]:
    """Yield the deadline of a call, which ends in ``seconds`` or with the call around it.

    A call consists of requests, connections and pauses; each may take all of the time. The call
    around it is one of the same thread, to this adapter or to another one.
    """
    outer = _CALLS.deadline
    _CALLS.deadline = min(outer, Deadline.after(seconds))
    try:
        yield _CALLS.deadline
    finally:
        _CALLS.deadline = outer


@final
class Attempts:
    """Limits the time of attempts; after one that timed out, the next has twice as long."""

    def __init__(self, max_s: float = MAX_ATTEMPT_S) -> None:
        self._max_s = max_s
        self._timed_out: Counter[Hashable] = Counter()

    @contextmanager
    def next(
        self,
        one_deadline: Callable[[float], AbstractContextManager[Deadline]],
        key: Hashable = None,
    ) -> Iterator[Deadline]:
        """Limit all waits of a block, which is the next attempt of the call with this ``key``.

        ``one_deadline`` is ``within``, or ``ErrorMapper.one_deadline``.
        """
        seconds = min(MIN_ATTEMPT_S * 2 ** self._timed_out[key], self._max_s)
        with one_deadline(seconds) as deadline:
            try:
                yield deadline
            finally:
                if deadline.has_passed:
                    self._timed_out[key] += 1
                else:
                    del self._timed_out[key]
