"""Which partition each row goes to, as Java's producer decides it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from ..kafka_format.encode_kernel import value_span
from ..kafka_format.producer_columns import kernel_rows
from ..kafka_format.record_blocks import read_only
from ..kernels.compiled import compiled, force_inlined
from ..kernels.intrinsics import borrowed

if TYPE_CHECKING:
    from ..kafka_format.producer_columns import ProducerColumns

    Integers: TypeAlias = np.ndarray[Any, np.dtype[np.int32]]
    Longs: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]

MAX_PARTITIONS: Final = 1_000_000
"""More than a cluster has: beyond it, counting them would take the memory of what is counted."""

_SEED: Final = np.uint32(0x9747B28C)
_M: Final = np.uint32(0x5BD1E995)
_POSITIVE: Final = np.uint32(0x7FFFFFFF)


def murmur2_partitions(columns: ProducerColumns, partitions: int, sticky: int) -> Integers:
    """Give each row's partition, of ``partitions``: ``sticky`` for those without a key.

    It is that of ``BuiltInPartitioner.partitionForKey``.
    """
    found: Integers = np.empty(columns.num_rows, np.int32)
    _partition_keys(columns.arrays[1], partitions, sticky, found)
    return found


def group_by_partition(partitions: Integers, rows: Longs) -> list[tuple[int, Longs]]:
    """Give the partitions that rows go to, ascending, each with its rows in their order.

    :raises IndexError: if there is no such row.
    :raises ValueError: if a partition is negative, or none that a cluster has.
    """
    rows = kernel_rows(rows)
    partitions = read_only(partitions)
    if not len(rows):
        return []
    least, most = _range(partitions, rows)
    if least > most:
        raise IndexError("there is no such row")
    if least < 0 or most >= MAX_PARTITIONS:
        raise ValueError(f"there is no partition {least if least < 0 else most}")
    if least == most:
        return [(least, rows)]
    ends: Longs = np.zeros(most - least + 1, np.int64)
    grouped: Longs = np.empty(len(rows), np.int64)
    _sort(partitions, rows, least, ends, grouped)
    grouped = read_only(grouped)
    found = []
    start = 0
    for number, end in enumerate(ends.tolist(), least):
        if start < end:
            found.append((number, grouped[start:end]))
        start = end
    return found


@compiled
def _partition_keys(keys: Any, partitions: int, sticky: int, found: Any) -> None:
    keys, found = borrowed((keys, found))
    count = np.uint32(partitions)
    for row in range(len(found)):
        start, length = value_span(keys, row)
        if length < 0:
            found[row] = sticky
        else:
            found[row] = np.uint32(_murmur2(keys[1], start, length) & _POSITIVE) % count


@compiled
def _range(partitions: Any, rows: Any) -> Any:
    """Give the least and the greatest partition of rows, or 1 and 0 if one of them is not there."""
    partitions, rows = borrowed((partitions, rows))
    least, most = np.int64(2**31), np.int64(-(2**31))
    for row in rows:
        if not 0 <= row < len(partitions):
            return np.int64(1), np.int64(0)
        least = min(least, np.int64(partitions[row]))
        most = max(most, np.int64(partitions[row]))
    return least, most


@compiled
def _sort(partitions: Any, rows: Any, least: int, ends: Any, grouped: Any) -> None:
    """Write rows by their partitions, and where those of each partition end."""
    partitions, rows, ends, grouped = borrowed((partitions, rows, ends, grouped))
    for row in rows:
        ends[partitions[row] - least] += 1
    total = 0
    for place in range(len(ends)):
        total, ends[place] = total + ends[place], total
    for row in rows:
        place = partitions[row] - least
        grouped[ends[place]] = row
        ends[place] += 1


@force_inlined
def _murmur2(data: Any, start: Any, length: Any) -> Any:
    """Give ``Utils.murmur2`` of bytes, as a number without a sign."""
    found = _SEED ^ np.uint32(length)
    place = start
    behind = start + length
    while place + 4 <= behind:
        at = np.uint64(place)
        word = (
            np.uint32(data[at])
            | np.uint32(data[at + np.uint64(1)]) << np.uint32(8)
            | np.uint32(data[at + np.uint64(2)]) << np.uint32(16)
            | np.uint32(data[at + np.uint64(3)]) << np.uint32(24)
        )
        word = np.uint32(word * _M)
        word = np.uint32((word ^ (word >> np.uint32(24))) * _M)
        found = np.uint32(np.uint32(found * _M) ^ word)
        place += 4
    if place < behind:
        shift = np.uint32(0)
        while place < behind:
            found ^= np.uint32(np.uint32(data[np.uint64(place)]) << shift)
            shift += np.uint32(8)
            place += 1
        found = np.uint32(found * _M)
    found = np.uint32((found ^ (found >> np.uint32(13))) * _M)
    return np.uint32(found ^ (found >> np.uint32(15)))
