"""The partition of each row by the hash of its key, as Java's producer computes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from ..kafka_format.encode_kernel import NO_ROW, value_span
from ..kafka_format.producer_columns import checked
from ..kernels.kernel import kernel
from ..kernels.kinds import FIELD, ROWS, WIDE_FIELD
from ..kernels.parts import inlined

if TYPE_CHECKING:
    from ..kafka_format.producer_columns import ProducerColumns
    from ..kernels.arrays import Int32Array, Int64Array

MAX_PARTITIONS: Final = 1_000_000
"""More than any cluster has: it bounds the memory for counting rows by partition."""

_SEED: Final = np.uint32(0x9747B28C)
_M: Final = np.uint32(0x5BD1E995)
_POSITIVE: Final = np.uint32(0x7FFFFFFF)


def murmur2_partitions(
    columns: ProducerColumns, topics: Int32Array, counts: Int64Array, sticky: Int64Array
) -> Int32Array:
    """Return the partition of each row, its topic's ``sticky`` for those without a key.

    The same as ``BuiltInPartitioner.partitionForKey``. ``topics`` has a number for each row, which
    is the place of its topic in ``counts``, the numbers of partitions, and in ``sticky``.

    :raises IndexError: if a row or its topic does not exist.
    """
    hashed: Int32Array = np.empty(columns.num_rows, np.int32)
    checked(partition_keys(columns.arrays[1], topics, counts, sticky, hashed))
    return hashed


@final
@dataclass(frozen=True, slots=True)
class RowGroups:
    """The rows of a batch by topic and partition, in their order within each group."""

    rows: Int64Array
    """All rows, one group after the other: by topic, then by partition."""

    ends: Int64Array
    """Where each group ends in ``rows``."""

    @classmethod
    def of(cls, topics: Int32Array, partitions: Int32Array) -> RowGroups:
        """Group rows with these numbers of topics and partitions, one of each for a row.

        :raises ValueError: if a partition is less than -1 or too large for any cluster.
        """
        count = len(partitions)
        if count != len(topics):
            raise ValueError(f"there are {len(topics)} topics and {count} partitions")
        rows: Int64Array = np.arange(count)
        if not count:
            return cls(rows, np.empty(0, np.int64))
        lowest, highest = int(partitions.min()), int(partitions.max())
        if lowest < -1 or highest >= MAX_PARTITIONS:
            raise ValueError(f"there is no partition {lowest if lowest < -1 else highest}")
        # Each sort keeps the order of equal rows.
        rows = _sorted_rows(partitions, rows, lowest, highest)
        rows = _sorted_rows(topics, rows, int(topics.min()), int(topics.max()))
        ends: Int64Array = np.empty(count, np.int64)
        groups = find_ends(topics, partitions, rows, ends)
        return cls(rows, ends[:groups])

    @property
    def first_rows(self) -> Int64Array:
        """The first row of each group."""
        first: Int64Array = self.rows[np.append(0, self.ends[:-1])] if len(self.ends) else self.rows
        return first


def _sorted_rows(numbers: Int32Array, rows: Int64Array, lowest: int, highest: int) -> Int64Array:
    if lowest == highest:
        return rows
    ends: Int64Array = np.zeros(highest - lowest + 1, np.int64)
    ordered: Int64Array = np.empty(len(rows), np.int64)
    sort_rows(numbers, rows, lowest, ends, ordered)
    return ordered


_HASHED: Final = ("const int32[]", ROWS, ROWS, "int32[]")


@kernel(FIELD, *_HASHED, wide=(WIDE_FIELD, *_HASHED))
def partition_keys(keys: Any, topics: Any, counts: Any, sticky: Any, hashed: Any) -> int:
    """Write the partition of each row, or return ``NO_ROW``."""
    if len(topics) != len(keys[2]) or len(sticky) != len(counts):
        return NO_ROW
    for row in range(len(topics)):
        topic = topics[row]
        if not 0 <= topic < len(counts):
            return NO_ROW
        start, length = value_span(keys, row)
        if length < 0:
            hashed[row] = sticky[topic]
        else:
            hashed[row] = np.uint32(_murmur2(keys[1], start, length) & _POSITIVE) % np.uint32(
                counts[topic]
            )
    return 0


@kernel("const int32[]", ROWS, "int64", "int64[]", "int64[]")
def sort_rows(numbers: Any, rows: Any, lowest: int, ends: Any, ordered: Any) -> None:
    """Write rows by their numbers; ``ends`` has a zero for each possible number."""
    for number in numbers:
        ends[number - lowest] += 1
    total = 0
    for place in range(len(ends)):
        total, ends[place] = total + ends[place], total
    for row in rows:
        index = numbers[row] - lowest
        ordered[ends[index]] = row
        ends[index] += 1


@kernel("const int32[]", "const int32[]", ROWS, "int64[]")
def find_ends(topics: Any, partitions: Any, rows: Any, ends: Any) -> int:
    """Write where the rows of a topic and partition end, and return how many ends there are."""
    count = 0
    for place in range(1, len(rows)):
        last, row = rows[place - 1], rows[place]
        if topics[last] != topics[row] or partitions[last] != partitions[row]:
            ends[count] = place
            count += 1
    ends[count] = len(rows)
    return count + 1


@inlined
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
