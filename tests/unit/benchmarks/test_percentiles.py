import numpy as np
import pytest

from benchmarks.percentiles import percentiles_of
from benchmarks.results import Percentiles


def test_percentiles_of_latencies():
    """Percentiles are latencies that occurred, in milliseconds; their order does not matter."""
    nanoseconds = np.arange(200, 0, -1, dtype=np.int64) * 1_000_000
    assert percentiles_of(nanoseconds) == Percentiles(100, 180, 198, 200)


def test_percentiles_of_one_latency():
    """All percentiles of one latency are the same."""
    assert percentiles_of(np.array([1_500_000])) == Percentiles(1.5, 1.5, 1.5, 1.5)


def test_percentiles_of_no_latencies():
    """Without latencies there are no percentiles."""
    with pytest.raises(ValueError, match="percentiles of no latencies"):
        percentiles_of(np.array([], np.int64))
