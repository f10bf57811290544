"""Joining the ranges of a batch, so that one task reads several."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Final, TypeAlias

from ..partition_offsets import EARLIEST, LATEST

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..topic_partition import TopicPartition
    from .offset_range import OffsetRange

RANGE_COST: Final = 1_000
"""What a range costs however small it is, in offsets that could be read meanwhile."""

_MANY: Final = 300
_FEW_OFFSETS: Final = 1_000

TaskRanges: TypeAlias = "tuple[OffsetRange, ...]"
"""The ranges that one task reads, one after another."""


def needs_join(ranges: Sequence[OffsetRange], max_partitions: int | None) -> bool:
    """Return whether there are more ranges than there may be tasks."""
    return max_partitions is not None and len(ranges) > max_partitions


def join_ranges(
    ranges: Sequence[OffsetRange],
    max_partitions: int | None,
    resolved: Mapping[TopicPartition, OffsetRange] | None = None,
) -> tuple[TaskRanges, ...]:
    """Return the ranges of each task: of at most ``max_partitions`` tasks, ``None`` for no limit.

    Tasks have about the same number of offsets to read. The ranges of a task are in the order of
    ``ranges``, so those of one partition ascend. ``resolved`` has the range of each partition with
    open ends, all of its parts together; an open range that it lacks counts as empty.
    """
    if max_partitions is None or not needs_join(ranges, max_partitions):
        return tuple((offset_range,) for offset_range in ranges)
    costs = [RANGE_COST + _size(offset_range, resolved or {}) for offset_range in ranges]
    tasks: list[list[int]] = [[] for _ in range(max_partitions)]
    totals = [(0, number) for number in range(max_partitions)]
    # The largest first, each to the task that has least: none has more than 4/3 of what the best
    # distribution would give it (Graham, 1969).
    for place in sorted(range(len(ranges)), key=lambda place: -costs[place]):
        total, number = totals[0]
        tasks[number].append(place)
        heapq.heapreplace(totals, (total + costs[place], number))
    return tuple(tuple(ranges[place] for place in sorted(places)) for places in tasks)


def are_small(ranges: Sequence[OffsetRange]) -> bool:
    """Return whether some hundred ranges, each read by a task, have little to read on average.

    Nothing is known of ranges with an open end.
    """
    return (
        len(ranges) > _MANY
        and all(offset_range.is_bound for offset_range in ranges)
        and sum(offset_range.size for offset_range in ranges) < _FEW_OFFSETS * len(ranges)
    )


def _size(offset_range: OffsetRange, resolved: Mapping[TopicPartition, OffsetRange]) -> int:
    if offset_range.is_bound:
        return offset_range.size
    known = resolved.get(offset_range.partition)
    if known is None:
        return 0
    start = known.from_offset if offset_range.from_offset == EARLIEST else offset_range.from_offset
    end = known.until_offset if offset_range.until_offset == LATEST else offset_range.until_offset
    return end - start
