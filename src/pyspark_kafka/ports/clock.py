"""The time, and waiting."""

from __future__ import annotations

from abc import ABC, abstractmethod


class Clock(ABC):
    """A monotonic clock."""

    @abstractmethod
    def now_ms(self) -> int:
        """Return monotonic milliseconds; only differences have a meaning."""

    @abstractmethod
    def sleep_ms(self, milliseconds: int) -> None:
        """Wait for a number of milliseconds."""
