"""The need to know the time and to wait."""

from __future__ import annotations

from abc import ABC, abstractmethod


class Clock(ABC):
    """Time, as the use cases see it."""

    @abstractmethod
    def now_ms(self) -> int:
        """Give milliseconds that never go back; their origin means nothing."""

    @abstractmethod
    def sleep_ms(self, milliseconds: int) -> None:
        """Wait that long."""
