"""The time, and waiting."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod


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
