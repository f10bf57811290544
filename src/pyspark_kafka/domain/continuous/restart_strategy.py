"""When a failed job is started again, and when a query gives up.

Flink's failure-rate and exponential-delay strategies in one.
"""

from __future__ import annotations

import sys
from collections import deque
from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True, slots=True)
class RestartLimits:
    """At most ``max_restarts`` within ``within_s`` seconds, with a growing pause before each."""

    max_restarts: int = 10
    within_s: float = 600.0
    first_delay_s: float = 0.1
    max_delay_s: float = 30.0

    def __post_init__(self) -> None:
        if self.max_restarts < 0 or self.within_s <= 0:
            raise ValueError("restarts are limited by a count and a time")


@final
class RestartStrategy:
    """Counts failures; times are monotonic, in seconds."""

    def __init__(self, limits: RestartLimits) -> None:
        self._limits = limits
        self._restarts: deque[float] = deque()

    def delay_after_failure(self, now: float) -> float | None:
        """Return the seconds to wait before the next start, or ``None`` to give up."""
        limits = self._limits
        while self._restarts and self._restarts[0] <= now - limits.within_s:
            self._restarts.popleft()
        if len(self._restarts) >= limits.max_restarts:
            return None
        self._restarts.append(now)
        doublings = min(len(self._restarts) - 1, sys.float_info.max_exp - 1)
        return min(limits.max_delay_s, limits.first_delay_s * 2.0**doublings)
