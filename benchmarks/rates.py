"""Records per second, over a limited time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def records_per_second(counts: Iterable[int], seconds: float) -> float:
    """Consume counts until the end or for some seconds, and return the rate."""
    records = 0
    began = time.perf_counter()
    for count in counts:
        records += count
        if time.perf_counter() - began > seconds:
            break
    return records / (time.perf_counter() - began)
