"""Which epochs there are, from what tasks report.

A task reports the offset below which all output is acknowledged. So an epoch is complete as soon as
it exists: no marker travels through the tasks, and no record waits for one, unlike in Spark's
``EpochCoordinator``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from ..partition_offsets import PartitionOffsets

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from ..topic_partition import TopicPartition
    from .messages import TaskId


@final
@dataclass(frozen=True, slots=True)
class Epoch:
    """The offsets of all partitions at the end of an epoch."""

    number: int
    offsets: PartitionOffsets


@final
class EpochCoordinator:
    """Knows the acknowledged offsets of all partitions, and the task that reads each."""

    def __init__(self, last: Epoch, planned: Epoch | None = None) -> None:
        """Take the last epoch of the log, and one that was planned and not committed.

        A planned epoch is a batch that another kind of query began: it is committed once everything
        up to its end is acknowledged, and then numbered epochs follow.
        """
        self._last = last
        self._planned = planned
        self._offsets = dict(last.offsets)
        self._readers: dict[TopicPartition, TaskId] = {}

    @property
    def last(self) -> Epoch:
        """The last epoch that was committed."""
        return self._last

    @property
    def planned(self) -> Epoch | None:
        """The epoch that another kind of query planned, until it is committed."""
        return self._planned

    @property
    def offsets(self) -> PartitionOffsets:
        """The acknowledged offsets."""
        return PartitionOffsets(self._offsets)

    def assign(self, task: TaskId, partitions: Iterable[TopicPartition]) -> PartitionOffsets:
        """Let a task read partitions from now on, and return where it begins.

        Reports of the task that read them before are ignored from now on.
        """
        assigned = list(partitions)
        self._readers.update(dict.fromkeys(assigned, task))
        return self.offsets.restrict(assigned)

    def release(self) -> None:
        """Take all partitions away from their tasks, whose reports are ignored from now on."""
        self._readers.clear()

    def report(self, task: TaskId, offsets: PartitionOffsets) -> bool:
        """Take the acknowledged offsets of a task; return whether all were of its partitions."""
        accepted = {
            partition: offset
            for partition, offset in offsets.items()
            if self._readers.get(partition) == task
        }
        self._offsets |= accepted
        return len(accepted) == len(offsets)

    def add(self, offsets: PartitionOffsets) -> None:
        """Add partitions, with the offsets at which they begin."""
        self._offsets |= offsets

    def remove(self, partitions: Collection[TopicPartition]) -> None:
        """Forget partitions, which are deleted."""
        for partition in partitions:
            self._offsets.pop(partition, None)
            self._readers.pop(partition, None)

    def next_epoch(self) -> Epoch | None:
        """Return the epoch to log and to commit, if anything was acknowledged since the last."""
        if self._planned is not None:
            return self._planned if self._has_passed(self._planned) else None
        if self._offsets == self._last.offsets:
            return None
        return Epoch(self._last.number + 1, self.offsets)

    def committed(self, epoch: Epoch) -> None:
        """Go on to the epoch after one that is logged and committed."""
        self._last = epoch
        self._planned = None

    def _has_passed(self, epoch: Epoch) -> bool:
        return all(
            self._offsets[partition] >= offset
            for partition, offset in epoch.offsets.items()
            if partition in self._offsets
        )
