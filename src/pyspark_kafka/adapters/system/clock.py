"""The system clock."""

from __future__ import annotations

import time
from typing import final

from ...ports.clock import Clock


@final
class SystemClock(Clock):
    """Monotonic time of the operating system."""

    def now_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def sleep_ms(self, milliseconds: int) -> None:
        time.sleep(milliseconds / 1_000)
