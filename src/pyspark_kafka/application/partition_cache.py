"""A cache of partitions with a time to live."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..domain.topic_partition import TopicPartition
    from ..ports.clock import Clock


@final
class PartitionCache:
    """Caches partitions for ``ttl_ms`` milliseconds; a negative time disables it (SPARK-49442)."""

    def __init__(self, ttl_ms: int, clock: Clock) -> None:
        self._ttl_ms = ttl_ms
        self._clock = clock
        self._cached: frozenset[TopicPartition] | None = None
        self._since_ms = 0

    def get(self, fetch: Callable[[], frozenset[TopicPartition]]) -> frozenset[TopicPartition]:
        """Return the cached partitions, or else fetch them."""
        now_ms = self._clock.now_ms()
        if self._cached is None or now_ms - self._since_ms >= self._ttl_ms:
            self._cached, self._since_ms = fetch(), now_ms
        return self._cached

    def clear(self) -> None:
        """Clear the cache."""
        self._cached = None
