"""Waiting for what comes about by itself."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def await_until(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    """Wait for a condition, and fail if it does not come about."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come about"
        time.sleep(0.02)
