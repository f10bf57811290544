"""The plan of a batch query's tasks, which stays right when the topics change.

Spark keeps the plan of a Python source for as long as a DataFrame or a view is used. So it has no
offsets that change: each task binds its parts when it runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from ..partition_offsets import EARLIEST, LATEST
from ..topic_partition import TopicPartition
from .errors import ResolvedOffsetsError
from .offset_limits import ByTimestamp, CommittedOffsets, GlobalTimestamp
from .ranges import OffsetRange

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .offset_limits import StartingOffsets
    from .ranges import TaskRanges


@final
@dataclass(frozen=True, slots=True)
class PartitionPart:
    """The offsets ``[start, end)`` of a partition; ``None`` stands for the batch's own bound.

    ``may_be_outdated`` parts are those of split partitions whose start moves with the log.
    """

    partition: TopicPartition
    start: int | None = None
    end: int | None = None
    may_be_outdated: bool = False
    batch_start: int | None = None
    """Where the batch starts, if that was decided with the plan."""

    def of(self, start: int, end: int) -> OffsetRange:
        """Return this part's share of the batch's range; it may be empty.

        The ends of the batch may be open. Only adjacent parts know where they meet: a bound that
        has moved since another task began would leave out the records in between.
        """
        first = start if self.start is None else max(start, self.start)
        until = end if self.end is None else self.end if end == LATEST else min(end, self.end)
        if self.start is not None or self.end is not None:
            first = first if until == LATEST else min(first, until)
        return OffsetRange(self.partition, first, until, self.may_be_outdated)


@final
@dataclass(frozen=True, slots=True)
class BatchTask:
    """The parts that one task reads, one after another.

    The last task also has the partitions of all tasks, ``planned``: it reads the partitions of the
    subscription that are not among them.
    """

    parts: tuple[PartitionPart, ...]
    planned: frozenset[TopicPartition] | None = None


def batch_tasks(
    tasks: Sequence[TaskRanges], ranges: Sequence[OffsetRange], limit: StartingOffsets
) -> tuple[BatchTask, ...]:
    """Return tasks that know where partitions are split, and no bound of the batch.

    Offsets of a group are kept, since it may commit while tasks run. ``ranges`` are those of all
    partitions: the last task reads those that were empty, and may have records later.
    """
    starts: dict[TopicPartition, list[int]] = {}
    for one in (one for of_task in tasks for one in of_task):
        starts.setdefault(one.partition, []).append(one.from_offset)
    keeps_start = isinstance(limit, CommittedOffsets)
    is_time = isinstance(limit, GlobalTimestamp | ByTimestamp)

    def part(one: OffsetRange) -> PartitionPart:
        # A start may be open, and is then less than the starts of the parts after it.
        of_partition = starts.get(one.partition, [one.from_offset])
        is_first = one.from_offset == min(of_partition)
        is_last = one.from_offset == max(of_partition)
        moves = is_time or min(of_partition) == EARLIEST
        return PartitionPart(
            one.partition,
            None if is_first and not keeps_start else one.from_offset,
            None if is_last else one.until_offset,
            may_be_outdated=len(of_partition) > 1 and moves,
            batch_start=min(of_partition) if keeps_start else None,
        )

    parts = [tuple(map(part, of_task)) for of_task in tasks] or [()]
    empty = (part(one) for one in ranges if one.partition not in starts)
    planned = frozenset(one.partition for one in ranges)
    return (*map(BatchTask, parts[:-1]), BatchTask((*parts[-1], *empty), planned))


def batch_range(partition: TopicPartition, start: int, end: int) -> OffsetRange:
    """Return the range of a partition, whose ends may be open.

    :raises ResolvedOffsetsError: if the start is known to be greater than the end.
    """
    if 0 <= end < start:
        raise ResolvedOffsetsError(partition, start, end)
    return OffsetRange(partition, start, end)
