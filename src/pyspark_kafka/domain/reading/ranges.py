"""The offset ranges that tasks read, and how a batch is divided among tasks."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, TypeAlias, final

from ..partition_offsets import EARLIEST, LATEST
from ..topic_partition import TopicPartition


@final
@dataclass(frozen=True, slots=True)
class OffsetRange:
    """The offsets ``[from_offset, until_offset)`` of a partition.

    The ends of a batch query may be open: ``EARLIEST`` (-2) as start, ``LATEST`` (-1) as end. The
    task binds them when it runs, as in Spark's ``KafkaSourceRDD``.

    A range that ``may_be_outdated`` was planned earlier: offsets that the log does not hold when
    reading begins are reported and skipped, regardless of ``failOnDataLoss``.
    """

    partition: TopicPartition
    from_offset: int
    until_offset: int
    may_be_outdated: bool = False

    def __post_init__(self) -> None:
        if self.from_offset < 0 and self.from_offset != EARLIEST:
            raise ValueError(f"not a valid starting offset: {self.from_offset}")
        if self.until_offset < 0 and self.until_offset != LATEST:
            raise ValueError(f"not a valid ending offset: {self.until_offset}")
        if self.is_bound and self.from_offset > self.until_offset:
            raise ValueError(f"{self} ends before it starts")

    @property
    def is_bound(self) -> bool:
        """Whether both ends are offsets of the log."""
        return self.from_offset >= 0 and self.until_offset >= 0

    @property
    def size(self) -> int:
        """The number of offsets, an upper bound of its visible records.

        :raises ValueError: if an end is open.
        """
        if not self.is_bound:
            raise ValueError(f"{self} has no size before its ends are bound")
        return self.until_offset - self.from_offset

    def starting_at(self, offset: int) -> OffsetRange:
        """Return the rest of the range from ``offset`` on."""
        return replace(self, from_offset=offset)

    def __str__(self) -> str:
        return f"{self.partition}[{self.from_offset}, {self.until_offset})"


@final
@dataclass(frozen=True, slots=True)
class TaskLimits:
    """How the offsets of a batch are divided among tasks. Each is positive, ``None`` is no limit.

    Spark does not have ``max_partitions``. With it, small ranges are joined later, so that the
    number of ranges is not the number of tasks.
    """

    min_partitions: int | None = None
    max_partitions: int | None = None
    max_records_per_partition: int | None = None

    @property
    def splits_largest(self) -> bool:
        """Whether ranges are split that are larger than a task's share, however many there are."""
        return self.min_partitions is not None and self.max_partitions is not None


def split_ranges(ranges: Sequence[OffsetRange], limits: TaskLimits) -> tuple[OffsetRange, ...]:
    """Split bound ranges; empty ones are dropped.

    First into ranges of at most ``max_records_per_partition`` offsets; if these are fewer than
    ``min_partitions``, large ones are split again, into about that many. With ``max_partitions``,
    all are split that are larger than one of ``min_partitions`` equal parts.
    """
    parts = _without_empty(ranges)
    wanted = limits.min_partitions
    if limits.max_records_per_partition is not None:
        parts = _split_to_size(parts, limits.max_records_per_partition)
    if wanted is not None and limits.splits_largest and parts:
        parts = _split_to_size(parts, math.ceil(_total(parts) / wanted))
    elif wanted is not None and wanted > len(parts):
        parts = _split_to_count(parts, wanted)
    return tuple(parts)


def needs_split(ranges: Sequence[OffsetRange], limits: TaskLimits) -> bool:
    """Return whether to split the ranges of a batch query, whose ends may be open.

    Open ends count as the numbers -2 and -1: a range from earliest to latest has size 1 and is
    never too large.
    """
    wanted, max_size = limits.min_partitions, limits.max_records_per_partition
    return (
        limits.splits_largest
        or (wanted is not None and wanted > len(ranges))
        or (
            max_size is not None
            and any(one.until_offset - one.from_offset > max_size for one in ranges)
        )
    )


def split_unbound(
    ranges: Sequence[OffsetRange],
    resolved: Mapping[TopicPartition, OffsetRange],
    limits: TaskLimits,
) -> tuple[OffsetRange, ...]:
    """Split the ranges of a batch query, one per partition, if ``needs_split`` is true for them.

    The ``resolved`` ranges determine where. Open ends stay open in the first and the last part of a
    partition; a partition that is empty once resolved is dropped. ``resolved`` is not used if there
    is nothing to split.
    """
    if not needs_split(ranges, limits):
        return tuple(ranges)
    parts: dict[TopicPartition, list[OffsetRange]] = {}
    bound = [resolved[offset_range.partition] for offset_range in ranges]
    for part in split_ranges(bound, limits):
        parts.setdefault(part.partition, []).append(part)
    return tuple(
        part
        for offset_range in ranges
        if offset_range.partition in parts
        for part in _with_ends_of(offset_range, parts[offset_range.partition])
    )


def _with_ends_of(offset_range: OffsetRange, parts: list[OffsetRange]) -> list[OffsetRange]:
    opened = [replace(parts[0], from_offset=offset_range.from_offset), *parts[1:]]
    opened[-1] = replace(opened[-1], until_offset=offset_range.until_offset)
    return opened


def _split_to_size(ranges: Iterable[OffsetRange], max_size: int) -> list[OffsetRange]:
    return [
        part
        for offset_range in ranges
        for part in _split(offset_range, math.ceil(float(offset_range.size) / float(max_size)))
    ]


def _split_to_count(ranges: Sequence[OffsetRange], wanted: int) -> list[OffsetRange]:
    total = _total(ranges)
    # Ranges that are not split are left out of the total that the others are a part of.
    unsplit = [offset_range for offset_range in ranges if _parts(offset_range, total, wanted) == 1]
    unsplit_partitions = {offset_range.partition for offset_range in unsplit}
    total_to_split = total - _total(unsplit)
    wanted_of_split = max(wanted - len(unsplit), 1)
    return [
        part
        for offset_range in ranges
        for part in _split(
            offset_range,
            1
            if offset_range.partition in unsplit_partitions
            else _parts(offset_range, total_to_split, wanted_of_split),
        )
    ]


def _parts(offset_range: OffsetRange, total: int, wanted: int) -> int:
    # Scala's math.round rounds a half up, which Python's round does not.
    return max(math.floor(float(offset_range.size) / float(total) * wanted + 0.5), 1)


def _split(offset_range: OffsetRange, parts: int) -> list[OffsetRange]:
    bounds = [offset_range.from_offset]
    for left in range(parts, 0, -1):
        bounds.append(bounds[-1] + (offset_range.until_offset - bounds[-1]) // left)
    return _without_empty(
        OffsetRange(offset_range.partition, start, end) for start, end in pairwise(bounds)
    )


def _total(ranges: Iterable[OffsetRange]) -> int:
    return sum(offset_range.size for offset_range in ranges)


def _without_empty(ranges: Iterable[OffsetRange]) -> list[OffsetRange]:
    return [offset_range for offset_range in ranges if offset_range.size > 0]


RANGE_COST: Final = 1_000
"""The cost of any range, however small, in offsets that could be read meanwhile."""

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

    Ranges with an open end have an unknown size.
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
