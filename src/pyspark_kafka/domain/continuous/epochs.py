"""The epochs of a continuous query: which task reads what, and what it has acknowledged."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from ..partition_offsets import PartitionOffsets

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

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
        self._unknown = set() if planned is None else planned.offsets.keys() - last.offsets.keys()
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
    def unknown(self) -> frozenset[TopicPartition]:
        """The partitions that the planned epoch waits for, because they were not added yet."""
        return frozenset(self._unknown)

    def give_up_unknown(self) -> None:
        """Let the planned epoch wait no longer for partitions that were not added."""
        self._unknown.clear()

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
        self._unknown -= offsets.keys()

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
        """Continue with the epoch after one that is logged and committed."""
        self._last = epoch
        self._planned = None

    def _has_passed(self, epoch: Epoch) -> bool:
        return not self._unknown and all(
            self._offsets[partition] >= offset
            for partition, offset in epoch.offsets.items()
            if partition in self._offsets
        )


def spread(
    partitions: Iterable[TopicPartition], slots: Mapping[int, Collection[TopicPartition]]
) -> dict[int, list[TopicPartition]]:
    """Return the slot of each new partition: one with the fewest, the lowest of equal ones.

    ``slots`` has the partitions that each slot reads already; only slots that get new ones are
    returned. Partitions are taken in order, so that each topic is spread evenly.

    :raises ValueError: if there is no slot.
    """
    if not slots:
        raise ValueError("there is no slot to read a partition")
    counts = {slot: len(read) for slot, read in sorted(slots.items())}
    spread_over: dict[int, list[TopicPartition]] = {}
    for partition in sorted(partitions):
        slot = min(counts, key=lambda each: (counts[each], each))
        counts[slot] += 1
        spread_over.setdefault(slot, []).append(partition)
    return spread_over


@final
@dataclass(slots=True, eq=False)
class Output:
    """The output of the records up to ``next_offset``, and how many of its rows are awaited."""

    partition: TopicPartition
    next_offset: int
    unacknowledged: int

    @property
    def is_acknowledged(self) -> bool:
        """Whether all of its rows are acknowledged."""
        return not self.unacknowledged


@final
class OutputTracker:
    """Tracks the outputs of several partitions, which brokers acknowledge in any order."""

    def __init__(self) -> None:
        self._outputs: dict[TopicPartition, deque[Output]] = {}
        self._advanced: dict[TopicPartition, int] = {}

    def add(self, partition: TopicPartition, next_offset: int, rows: int) -> Output:
        """Return a new output of the records up to ``next_offset``, behind the earlier ones."""
        output = Output(partition, next_offset, rows)
        self._outputs.setdefault(partition, deque()).append(output)
        self._advance(partition)
        return output

    def acknowledge(self, output: Output, rows: int) -> None:
        """Count acknowledged rows of an output."""
        output.unacknowledged -= rows
        self._advance(output.partition)

    def acknowledge_until(self, partition: TopicPartition, offset: int) -> None:
        """Acknowledge all outputs of a partition's records up to an offset."""
        for output in self._outputs.get(partition, ()):
            if output.next_offset > offset:
                break
            output.unacknowledged = 0
        self._advance(partition)

    def forget(self, partition: TopicPartition) -> None:
        """Forget the outputs of a partition, which is read from another offset."""
        self._outputs.pop(partition, None)
        self._advanced.pop(partition, None)

    def take_acknowledged(self) -> dict[TopicPartition, int]:
        """Return the offsets of the partitions that have advanced since the last call."""
        advanced, self._advanced = self._advanced, {}
        return advanced

    def awaits(self, partitions: Iterable[TopicPartition]) -> bool:
        """Return whether an output of these partitions is waited for."""
        return not self._outputs.keys().isdisjoint(partitions)

    @property
    def has_acknowledged(self) -> bool:
        """Whether a partition has advanced since the last ``take_acknowledged``."""
        return bool(self._advanced)

    @property
    def is_settled(self) -> bool:
        """Whether no output is waited for."""
        return not self._outputs

    def _advance(self, partition: TopicPartition) -> None:
        outputs = self._outputs.get(partition)
        if outputs is None:
            # An output of before `forget` may still be acknowledged.
            return
        while outputs and outputs[0].is_acknowledged:
            self._advanced[partition] = outputs.popleft().next_offset
        if not outputs:
            del self._outputs[partition]
