"""Percentiles of latencies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .results import Percentiles

if TYPE_CHECKING:
    from numpy.typing import NDArray

NS_PER_MS = 1_000_000


def percentiles_of(nanoseconds: NDArray[np.int64]) -> Percentiles:
    """Return the percentiles of latencies by the nearest-rank method: each is one of them.

    :raises ValueError: if there are none.
    """
    if not len(nanoseconds):
        raise ValueError("percentiles of no latencies")
    found = np.percentile(nanoseconds, (50, 90, 99, 100), method="inverted_cdf") / NS_PER_MS
    return Percentiles(*map(float, found))
