"""The time, waiting, and the time at which a call stops waiting."""

from __future__ import annotations

import math
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, TypeVar, final


class Clock(ABC):
    """A monotonic clock."""

    @abstractmethod
    def now_ms(self) -> int:
        """Return monotonic milliseconds; only differences have a meaning."""

    @abstractmethod
    def sleep_ms(self, milliseconds: int) -> None:
        """Wait for a number of milliseconds."""


def epoch_ms() -> int:
    """Return milliseconds since the epoch, by the machine's clock, which may be wrong or change."""
    return time.time_ns() // 1_000_000


class _Waits(threading.local):
    """The function that each thread calls while it waits."""

    @staticmethod
    def call() -> None:
        """Do nothing."""


_WAITS: Final = _Waits()


@contextmanager
def while_waiting(call: Callable[[], None]) -> Iterator[None]:
    """Let long waits of a block call a function about once a second, in the block's thread.

    The function must not raise: it would seem to be an error of what is waited for.
    """
    outer = _WAITS.call
    _WAITS.call = call  # type: ignore[method-assign]
    try:
        yield
    finally:
        _WAITS.call = outer  # type: ignore[method-assign]


def still_waiting() -> None:
    """Call the function of ``while_waiting``; whoever waits for long does so once a second."""
    _WAITS.call()


WAIT_S: Final = 1.0
"""How long a wait may last before ``still_waiting`` is called."""


T = TypeVar("T")


@final
@dataclass(frozen=True, slots=True, order=True)
class Deadline:
    """A time of ``time.monotonic``, in seconds."""

    at: float

    @classmethod
    def after(cls, seconds: float | None) -> Deadline:
        """Return the deadline of a call that begins now; ``None`` waits forever."""
        return cls(math.inf if seconds is None else time.monotonic() + seconds)

    @property
    def remaining(self) -> float:
        """The seconds that are left, at least 0."""
        return max(0.0, self.at - time.monotonic())

    @property
    def has_passed(self) -> bool:
        """Whether no time is left."""
        return time.monotonic() >= self.at

    def poll(self, ask: Callable[[], T], pause_seconds: float) -> T:
        """Return the first true answer of ``ask``, or its last one when the time is up."""
        while not (answer := ask()) and not self.has_passed:
            time.sleep(min(pause_seconds, self.remaining))
        return answer
