"""When metadata are too old, and when another broker must be asked for them."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Final, final

if TYPE_CHECKING:
    from ..topic_partition import TopicPartition

MIN_AGE_S: Final = 0.1
"""The Java client refreshes metadata no more often (``retry.backoff.ms``)."""

REFRESH_AGAIN_S: Final = 10.0
"""When metadata that were too old and could not be refreshed are requested again."""


@final
class MetadataAge:
    """Notes when metadata were received, and what they were wrong about.

    Times are seconds of one monotonic clock.
    """

    def __init__(self, max_age_s: float) -> None:
        """Take the longest age, Java's ``metadata.max.age.ms``."""
        self._max_age_s = max(max_age_s, MIN_AGE_S)
        self._outdated_at = math.inf
        self._another_at = math.inf
        self._stale: set[TopicPartition] = set()
        self._refused: Counter[TopicPartition] = Counter()
        """How often each leader was wrong in the metadata of the broker that was asked last."""

    def is_outdated(self, now: float) -> bool:
        """Return whether the last metadata are too old; false before there were any."""
        return now >= self._outdated_at

    def invalidate(self, partition: TopicPartition) -> None:
        """Note that a partition's leader is wrong."""
        self._stale.add(partition)
        self._refused[partition] += 1

    def is_stale(self, partition: TopicPartition) -> bool:
        """Return whether a partition's leader was wrong, and no metadata were received since."""
        return partition in self._stale

    def asks(self, now: float) -> bool:
        """Note a request; return whether it must go to another broker than the last one.

        A broker that is cut off from the cluster keeps answering with what it knew before.
        """
        is_wrong_again = any(self._refused[each] > 1 for each in self._stale)
        asks_another = self.is_outdated(now) or now >= self._another_at or is_wrong_again
        if asks_another:
            self._refused.clear()
            self._another_at = math.inf
        # Another attempt soon: an old leader may answer fetches for as long as it is asked.
        self._outdated_at = now + min(self._max_age_s, REFRESH_AGAIN_S)
        return asks_another

    def received(self, now: float) -> None:
        """Note that the cluster's metadata were received."""
        self._outdated_at = now + self._max_age_s
        self._another_at = min(self._another_at, self._outdated_at)
        self._stale.clear()
