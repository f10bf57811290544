"""The time, waiting, and the time at which a call stops waiting."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar, final


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
