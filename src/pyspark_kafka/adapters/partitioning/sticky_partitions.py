"""The partition of each topic to which rows without a key go."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..kernels.arrays import Int64Array


@final
class StickyPartitions:
    """Stays with a partition until a batch is full or sent, so that batches are few and large.

    As Java's producer does (KIP-480 and KIP-794).
    """

    def __init__(self, batch_size: int) -> None:
        """Begin with any partition; ``batch_size`` are the bytes after which it changes."""
        self._batch_size = batch_size
        self._turn = random.randrange(1 << 16)  # noqa: S311  # no secret
        self._changes: dict[str, int] = {}
        self._bytes: dict[str, int] = {}

    def choose(self, topics: Sequence[str], counts: Int64Array) -> Int64Array:
        """Return the partition of each topic; ``counts`` are their numbers of partitions."""
        changes = np.array([self._changes.get(topic, 0) for topic in topics], np.int64)
        return (self._turn + changes) % counts

    def add(self, sizes: Iterable[tuple[str, int]]) -> None:
        """Count bytes that were written to topics."""
        for topic, size in sizes:
            total = self._bytes.get(topic, 0) + size
            if total >= self._batch_size:
                self._changes[topic] = self._changes.get(topic, 0) + 1
                total = 0
            self._bytes[topic] = total

    def change(self) -> None:
        """Let all topics go on with another partition: their batches were sent."""
        self._turn += 1
        self._bytes.clear()
