"""Records a second, over a limited time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def records_a_second(counts: Iterable[int], seconds: float) -> float:
    """Let records come until there are no more or the time is over; return the rate."""
    records = 0
    began = time.perf_counter()
    for count in counts:
        records += count
        if time.perf_counter() - began > seconds:
            break
    return records / (time.perf_counter() - began)
