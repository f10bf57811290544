"""Splitting the offsets of a batch into ranges, one for each task.

Same rules and same rounding in doubles as Spark's ``KafkaOffsetRangeCalculator`` and, for batch
queries, ``KafkaOffsetReaderAdmin``.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from .offset_range import OffsetRange

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ..topic_partition import TopicPartition
    from .task_limits import TaskLimits


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
    """Split the ranges of a batch query, one per partition, if ``needs_split`` says so.

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
    # Ranges that are not split do not count in the proportion in which the others are.
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
