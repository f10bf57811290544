"""The partition of each row by the hash of its key, as Java's producer computes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ..kafka_format.encode_kernel import NO_ROW, value_span
from ..kafka_format.producer_columns import checked, kernel_rows
from ..kernels.arrays import read_only
from ..kernels.compiled import compiled, force_inlined
from ..kernels.intrinsics import borrowed

if TYPE_CHECKING:
    from ..kafka_format.producer_columns import ProducerColumns
    from ..kernels.arrays import Int32Array, Int64Array

MAX_PARTITIONS: Final = 1_000_000
"""More than any cluster has: the memory for counting rows by partition is bounded by it."""

_SEED: Final = np.uint32(0x9747B28C)
_M: Final = np.uint32(0x5BD1E995)
_POSITIVE: Final = np.uint32(0x7FFFFFFF)


def murmur2_partitions(
    columns: ProducerColumns, rows: Int64Array, partitions: int, sticky: int
) -> Int32Array:
    """Return the partition of each of the rows, ``sticky`` for those without a key.

    The same as ``BuiltInPartitioner.partitionForKey`` for a topic with so many ``partitions``.

    :raises IndexError: if a row does not exist.
    """
    hashed: Int32Array = np.empty(len(rows), np.int32)
    checked(_partition_keys(columns.arrays[1], kernel_rows(rows), partitions, sticky, hashed))
    return hashed


def group_by_partition(partitions: Int32Array, rows: Int64Array) -> list[tuple[int, Int64Array]]:
    """Return the partitions, ascending, each with its rows in their order.

    ``partitions`` has one for each of the rows.

    :raises ValueError: if a partition is negative or too large for any cluster.
    """
    rows = kernel_rows(rows)
    partitions = read_only(partitions)
    if len(rows) != len(partitions):
        raise ValueError(f"there are {len(rows)} rows and {len(partitions)} partitions")
    if not len(rows):
        return []
    lowest, highest = int(partitions.min()), int(partitions.max())
    if lowest < 0 or highest >= MAX_PARTITIONS:
        raise ValueError(f"there is no partition {lowest if lowest < 0 else highest}")
    if lowest == highest:
        return [(lowest, rows)]
    ends: Int64Array = np.zeros(highest - lowest + 1, np.int64)
    grouped: Int64Array = np.empty(len(rows), np.int64)
    _sort_rows(partitions, rows, lowest, ends, grouped)
    grouped = read_only(grouped)
    groups = []
    start = 0
    for partition, end in enumerate(ends.tolist(), lowest):
        if start < end:
            groups.append((partition, grouped[start:end]))
        start = end
    return groups


@compiled
def _partition_keys(keys: Any, rows: Any, partitions: int, sticky: int, hashed: Any) -> int:
    keys, rows, hashed = borrowed((keys, rows, hashed))
    count = np.uint32(partitions)
    for place in range(len(rows)):
        row = rows[place]
        if not 0 <= row < len(keys[2]):
            return NO_ROW
        start, length = value_span(keys, row)
        if length < 0:
            hashed[place] = sticky
        else:
            hashed[place] = np.uint32(_murmur2(keys[1], start, length) & _POSITIVE) % count
    return 0


@compiled
def _sort_rows(partitions: Any, rows: Any, lowest: int, ends: Any, grouped: Any) -> None:
    """Write rows by their partitions, and where the rows of each partition end."""
    partitions, rows, ends, grouped = borrowed((partitions, rows, ends, grouped))
    for partition in partitions:
        ends[partition - lowest] += 1
    total = 0
    for place in range(len(ends)):
        total, ends[place] = total + ends[place], total
    for place in range(len(rows)):
        index = partitions[place] - lowest
        grouped[ends[index]] = rows[place]
        ends[index] += 1


@force_inlined
def _murmur2(data: Any, start: Any, length: Any) -> Any:
    """Return ``Utils.murmur2`` of bytes, as an unsigned number."""
    hashed = _SEED ^ np.uint32(length)
    place = start
    end = start + length
    while place + 4 <= end:
        at = np.uint64(place)
        word = (
            np.uint32(data[at])
            | np.uint32(data[at + np.uint64(1)]) << np.uint32(8)
            | np.uint32(data[at + np.uint64(2)]) << np.uint32(16)
            | np.uint32(data[at + np.uint64(3)]) << np.uint32(24)
        )
        word = np.uint32(word * _M)
        word = np.uint32((word ^ (word >> np.uint32(24))) * _M)
        hashed = np.uint32(np.uint32(hashed * _M) ^ word)
        place += 4
    if place < end:
        shift = np.uint32(0)
        while place < end:
            hashed ^= np.uint32(np.uint32(data[np.uint64(place)]) << shift)
            shift += np.uint32(8)
            place += 1
        hashed = np.uint32(hashed * _M)
    hashed = np.uint32((hashed ^ (hashed >> np.uint32(13))) * _M)
    return np.uint32(hashed ^ (hashed >> np.uint32(15)))
