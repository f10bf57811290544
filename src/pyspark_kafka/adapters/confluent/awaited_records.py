"""Records without an acknowledgement, and the time since their partitions' last one."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, final

import numpy as np

from ..partitioning.topic_rows import NO_PARTITION

if TYPE_CHECKING:
    from .partitioned_rows import PartitionedRows

_PAUSE_S: Final = 0.1
"""How often partitions are checked."""


@final
class AwaitedRecords:
    """Counts queued records by partition, and finds one that has accepted none for too long.

    librdkafka's own time-out begins when a record is queued: on a slow partition, records would
    time out while they wait behind others that it accepts.

    Records whose partition librdkafka chooses are counted by their topic.
    """

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._counts: dict[tuple[str, int], int] = {}
        self._since: dict[tuple[str, int], float] = {}
        self._due = 0.0

    def add(self, rows: PartitionedRows, start: int, end: int) -> None:
        """Count rows that were queued, by their places."""
        now = time.monotonic()
        for topic, topic_end in zip(rows.topics, rows.topic_ends.tolist(), strict=True):
            stop = min(topic_end, end)
            if start >= stop:
                continue
            counts = np.bincount(rows.partitions[start:stop] - NO_PARTITION)
            for place in np.flatnonzero(counts).tolist():
                key = topic, place + NO_PARTITION
                self._counts[key] = self._counts.get(key, 0) + int(counts[place])
                self._since.setdefault(key, now)
            start = stop

    def acknowledge(self, topic: str, partition: int, count: int) -> None:
        """Count records that a partition has accepted."""
        for key in ((topic, partition), (topic, NO_PARTITION)):
            awaited = self._counts.pop(key, 0)
            if awaited > count:
                self._counts[key], self._since[key] = awaited - count, time.monotonic()
                return
            self._since.pop(key, None)
            count -= awaited

    def stalled(self) -> tuple[str, int] | None:
        """Return a topic and its partition that has accepted no record for too long."""
        now = time.monotonic()
        if now < self._due:
            return None
        self._due = now + _PAUSE_S
        return next((k for k, since in self._since.items() if now - since > self._timeout_s), None)
