"""The time that the expiry of tokens is compared with."""

from __future__ import annotations

import time


def now_ms() -> int:
    """Return milliseconds since the epoch."""
    return time.time_ns() // 1_000_000
