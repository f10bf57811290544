"""Remembering which partitions there are, for as long as an option allows."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..domain.topic_partition import TopicPartition
    from ..ports.clock import Clock


@final
class PartitionCache:
    """Keeps an answer for ``ttl_ms`` milliseconds; a negative time keeps none (SPARK-49442)."""

    def __init__(self, ttl_ms: int, clock: Clock) -> None:
        self._ttl_ms = ttl_ms
        self._clock = clock
        self._kept: frozenset[TopicPartition] | None = None
        self._since_ms = 0

    def get(self, ask: Callable[[], frozenset[TopicPartition]]) -> frozenset[TopicPartition]:
        """Give what is kept, or ask."""
        now_ms = self._clock.now_ms()
        if self._kept is None or now_ms - self._since_ms >= self._ttl_ms:
            self._kept, self._since_ms = ask(), now_ms
        return self._kept

    def forget(self) -> None:
        """Let the next ``get`` ask."""
        self._kept = None
