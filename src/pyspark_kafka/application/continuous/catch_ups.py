"""Waiting until a query has processed what exists."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, final

from ...domain.errors import PysparkKafkaError
from ...domain.partition_offsets import PartitionOffsets

if TYPE_CHECKING:
    from collections.abc import Callable


@final
@dataclass(slots=True, eq=False)
class _CatchUp:
    """Waits until the offsets that are the latest at its first look are processed."""

    done: threading.Event = field(default_factory=threading.Event)
    target: PartitionOffsets | None = None

    def is_reached(self, offsets: PartitionOffsets) -> bool:
        target = self.target or PartitionOffsets()
        return all(offsets.get(partition, 0) >= offset for partition, offset in target.items())

    def look(self, offsets: PartitionOffsets, latest: Callable[[], PartitionOffsets]) -> None:
        """Find out what to wait for; partitions that were deleted since are not waited for."""
        if self.target is None:
            self.target = latest()
        elif self.target.keys() - offsets.keys():
            self.target = self.target.restrict(latest())


@final
class CatchUps:
    """The threads that wait in ``processAllAvailable``."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[_CatchUp] = []

    def add(self) -> threading.Event:
        """Return an event that is set once all records that exist now are processed and logged."""
        added = _CatchUp()
        with self._lock:
            self._waiting.append(added)
        return added.done

    def check(self, offsets: PartitionOffsets, latest: Callable[[], PartitionOffsets]) -> None:
        """Set the events whose records end before these committed offsets.

        While no broker tells the latest offsets, they wait on.
        """
        with self._lock:
            waiting = list(self._waiting)
        for each in waiting:
            try:
                each.look(offsets, latest)
            except PysparkKafkaError:
                return
            if each.is_reached(offsets):
                each.done.set()
                with self._lock:
                    self._waiting.remove(each)
