"""How the offsets of a batch are cut into ranges, one for each task.

The rules are those of Spark's ``KafkaOffsetRangeCalculator`` and, for batch queries, of
``KafkaOffsetReaderAdmin``, with their rounding in doubles.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from .offset_range import OffsetRange

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from .topic_partition import TopicPartition


def split_ranges(
    ranges: Sequence[OffsetRange],
    min_partitions: int | None,
    max_records_per_partition: int | None,
) -> tuple[OffsetRange, ...]:
    """Cut ranges whose ends are bound; empty ones vanish.

    First no part has more than ``max_records_per_partition`` offsets; then, if these are fewer
    than ``min_partitions``, large parts are cut again, to about that many. Both are positive, and
    ``None`` if not asked for.
    """
    parts = _without_empty(ranges)
    if max_records_per_partition is not None:
        parts = _cut_to_size(parts, max_records_per_partition)
    if min_partitions is not None and min_partitions > len(parts):
        parts = _cut_to_number(parts, min_partitions)
    return tuple(parts)


def needs_split(
    ranges: Sequence[OffsetRange],
    min_partitions: int | None,
    max_records_per_partition: int | None,
) -> bool:
    """Tell whether the ranges of a batch query, whose ends may be open, are to be cut.

    Sizes are taken of the numbers as they stand, -2 and -1 for open ends: a range from earliest
    to latest has size 1 and is never too large.
    """
    return (min_partitions is not None and min_partitions > len(ranges)) or (
        max_records_per_partition is not None
        and any(
            stretch.until_offset - stretch.from_offset > max_records_per_partition
            for stretch in ranges
        )
    )


def split_unbound(
    ranges: Sequence[OffsetRange],
    resolved: Mapping[TopicPartition, OffsetRange],
    min_partitions: int | None,
    max_records_per_partition: int | None,
) -> tuple[OffsetRange, ...]:
    """Cut the ranges of a batch query, one of each partition, if ``needs_split`` says so.

    The cuts are those of the ``resolved`` ranges. Open ends stay open in the first and the last
    part of a partition; a partition that is empty once resolved vanishes. ``resolved`` is not
    looked at if there is nothing to cut.
    """
    if not needs_split(ranges, min_partitions, max_records_per_partition):
        return tuple(ranges)
    parts: dict[TopicPartition, list[OffsetRange]] = {}
    bound = [resolved[stretch.partition] for stretch in ranges]
    for part in split_ranges(bound, min_partitions, max_records_per_partition):
        parts.setdefault(part.partition, []).append(part)
    return tuple(
        part
        for stretch in ranges
        if stretch.partition in parts
        for part in _with_ends_of(stretch, parts[stretch.partition])
    )


def _with_ends_of(stretch: OffsetRange, parts: list[OffsetRange]) -> list[OffsetRange]:
    opened = [replace(parts[0], from_offset=stretch.from_offset), *parts[1:]]
    opened[-1] = replace(opened[-1], until_offset=stretch.until_offset)
    return opened


def _cut_to_size(ranges: Iterable[OffsetRange], most: int) -> list[OffsetRange]:
    return [
        part
        for stretch in ranges
        for part in _cut(stretch, math.ceil(float(stretch.size) / float(most)))
    ]


def _cut_to_number(ranges: Sequence[OffsetRange], wanted: int) -> list[OffsetRange]:
    total = _total(ranges)
    # What stays whole is left out of the proportion in which the others are cut.
    whole = [stretch for stretch in ranges if _parts(stretch, total, wanted) == 1]
    whole_partitions = {stretch.partition for stretch in whole}
    total_to_cut = total - _total(whole)
    wanted_of_cut = max(wanted - len(whole), 1)
    return [
        part
        for stretch in ranges
        for part in _cut(
            stretch,
            1
            if stretch.partition in whole_partitions
            else _parts(stretch, total_to_cut, wanted_of_cut),
        )
    ]


def _parts(stretch: OffsetRange, total: int, wanted: int) -> int:
    # Scala's math.round rounds a half up, which Python's round does not.
    return max(math.floor(float(stretch.size) / float(total) * wanted + 0.5), 1)


def _cut(stretch: OffsetRange, parts: int) -> list[OffsetRange]:
    cuts = [stretch.from_offset]
    for left in range(parts, 0, -1):
        cuts.append(cuts[-1] + (stretch.until_offset - cuts[-1]) // left)
    return _without_empty(
        OffsetRange(stretch.partition, start, end) for start, end in pairwise(cuts)
    )


def _total(ranges: Iterable[OffsetRange]) -> int:
    return sum(stretch.size for stretch in ranges)


def _without_empty(ranges: Iterable[OffsetRange]) -> list[OffsetRange]:
    return [stretch for stretch in ranges if stretch.size > 0]
