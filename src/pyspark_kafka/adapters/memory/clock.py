"""A clock for tests."""

from __future__ import annotations

import threading
from typing import final

from ...ports.clock import Clock


@final
class MemoryClock(Clock):
    """Advances only when something sleeps."""

    def __init__(self, now_ms: int = 0) -> None:
        self._lock = threading.Lock()
        self._now_ms = now_ms

    def now_ms(self) -> int:
        with self._lock:
            return self._now_ms

    def sleep_ms(self, milliseconds: int) -> None:
        with self._lock:
            self._now_ms += milliseconds
