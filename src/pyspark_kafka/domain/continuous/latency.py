"""A histogram of latencies, which tasks count and the driver merges."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from itertools import accumulate
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Self, final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_EXACT_BELOW_MS: Final = 100
_STEP: Final = 1.05
_MAX_MS: Final = 7 * 24 * 60 * 60 * 1_000


def _bounds() -> tuple[int, ...]:
    bounds = list(range(_EXACT_BELOW_MS + 1))
    while bounds[-1] < _MAX_MS:
        bounds.append(int(bounds[-1] * _STEP) + 1)
    return tuple(bounds)


BUCKETS: Final = _bounds()
"""The upper bounds of the buckets in milliseconds: exact up to 100 ms, then within 5 %."""


@final
@dataclass(frozen=True, slots=True)
class LatencyHistogram:
    """How many records had which latency; ``counts`` by the index of a bucket."""

    counts: Mapping[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if any(not 0 <= bucket < len(BUCKETS) for bucket in self.counts):
            raise ValueError("a latency is in no bucket")
        if any(count < 0 for count in self.counts.values()):
            raise ValueError("a count of latencies is negative")
        ordered = {bucket: self.counts[bucket] for bucket in sorted(self.counts)}
        object.__setattr__(self, "counts", MappingProxyType(ordered))

    def __reduce__(self) -> tuple[type[LatencyHistogram], tuple[dict[int, int]]]:
        return LatencyHistogram, (dict(self.counts),)

    @classmethod
    def of(cls, milliseconds: Iterable[int]) -> Self:
        """Return the histogram of some latencies; negative ones count as 0."""
        return cls(Counter(bucket_of(each) for each in milliseconds))

    @property
    def total(self) -> int:
        """The number of records."""
        return sum(self.counts.values())

    def merge(self, other: LatencyHistogram) -> LatencyHistogram:
        """Return both together."""
        return LatencyHistogram(Counter(self.counts) + Counter(other.counts))

    def percentile(self, percent: float) -> int | None:
        """Return a latency in milliseconds that ``percent`` of all do not exceed, or ``None``."""
        if not self.total:
            return None
        rank = max(1.0, self.total * percent / 100)
        at = bisect_left(list(accumulate(self.counts.values())), rank)
        return BUCKETS[list(self.counts)[at]]


def bucket_of(milliseconds: int) -> int:
    """Return the index of a latency's bucket."""
    return min(len(BUCKETS) - 1, bisect_left(BUCKETS, max(0, milliseconds)))
