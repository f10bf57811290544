"""The plan of a batch query's tasks, which stays right when the topics change.

Spark keeps the plan of a Python source for as long as a DataFrame or a view is used. So it has no
offsets that change: each task binds its parts when it runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from ..topic_partition import TopicPartition
from .errors import ResolvedOffsetsError
from .ranges import OffsetRange

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .ranges import TaskRanges


@final
@dataclass(frozen=True, slots=True)
class PartitionPart:
    """The offsets ``[start, end)`` of a partition; ``None`` stands for the batch's own bound."""

    partition: TopicPartition
    start: int | None = None
    end: int | None = None

    @property
    def is_whole(self) -> bool:
        """Whether the partition is not split."""
        return self.start is None and self.end is None

    def of(self, whole: OffsetRange) -> OffsetRange:
        """Return what this part has of the partition's bound range; it may be empty."""
        start = max(whole.from_offset, self.start or 0)
        end = whole.until_offset if self.end is None else min(whole.until_offset, self.end)
        return OffsetRange(self.partition, start, max(start, end))


@final
@dataclass(frozen=True, slots=True)
class BatchTask:
    """The parts that one task reads, one after another.

    The last task also has the partitions of all tasks, ``planned``: it reads the partitions of the
    subscription that are not among them.
    """

    parts: tuple[PartitionPart, ...]
    planned: frozenset[TopicPartition] | None = None


def batch_tasks(tasks: Sequence[TaskRanges], *, keeps_starts: bool) -> tuple[BatchTask, ...]:
    """Return tasks that know where partitions are split, and no bound of the batch.

    With ``keeps_starts`` the first part of a split partition keeps its start. There is always a
    task, since an empty topic may have records later.
    """
    firsts: dict[TopicPartition, int] = {}
    lasts: dict[TopicPartition, int] = {}
    for one in (one for ranges in tasks for one in ranges):
        # A start may be open, and is then less than the starts of the parts after it.
        firsts[one.partition] = min(firsts.get(one.partition, one.from_offset), one.from_offset)
        lasts[one.partition] = max(lasts.get(one.partition, one.from_offset), one.from_offset)

    def part(one: OffsetRange) -> PartitionPart:
        is_first = one.from_offset == firsts[one.partition]
        is_last = one.from_offset == lasts[one.partition]
        is_open = is_first and (is_last or not keeps_starts)
        return PartitionPart(
            one.partition,
            None if is_open else one.from_offset,
            None if is_last else one.until_offset,
        )

    parts = [tuple(map(part, ranges)) for ranges in tasks] or [()]
    return (*map(BatchTask, parts[:-1]), BatchTask(parts[-1], frozenset(firsts)))


def batch_range(partition: TopicPartition, start: int, end: int) -> OffsetRange:
    """Return the range of a partition, whose ends may be open.

    :raises ResolvedOffsetsError: if the start is known to be greater than the end.
    """
    if 0 <= end < start:
        raise ResolvedOffsetsError(partition, start, end)
    return OffsetRange(partition, start, end)
