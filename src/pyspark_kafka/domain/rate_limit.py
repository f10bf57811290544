"""Where a micro-batch ends when it may not read everything."""

from __future__ import annotations

import math
from fractions import Fraction
from statistics import fmean
from typing import TYPE_CHECKING, Final

from .partition_offsets import PartitionOffsets

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .topic_partition import TopicPartition

DEFAULT_BYTES_PER_RECORD: Final = 1024
"""What a record is taken to hold, in bytes, before any was measured."""


def rate_limit(
    limit: int, begin: Mapping[TopicPartition, int], until: PartitionOffsets
) -> PartitionOffsets:
    """Share ``limit`` offsets, at least 1, among the partitions in proportion to what they hold.

    ``rateLimit`` of Spark's ``KafkaMicroBatchStream``, in its doubles: a share below one offset is
    rounded up, so that small partitions do not starve, and any other down. The sum may therefore
    exceed the limit, and a limit that is just enough may leave an offset behind. A partition that
    has no ``begin``, or begins at or after its end, goes to its end.
    """
    sizes = _sizes(begin, until)
    total = float(sum(sizes.values()))
    if total < 1:
        return until
    return until.merge(
        {
            partition: min(
                until[partition], begin[partition] + _whole_offsets(limit * (size / total))
            )
            for partition, size in sizes.items()
        }
    )


def rate_limit_bytes(
    limit_bytes: int,
    begin: Mapping[TopicPartition, int],
    until: PartitionOffsets,
    bytes_per_record: Mapping[TopicPartition, float],
) -> PartitionOffsets:
    """Share ``limit_bytes``, at least 1, in proportion to the bytes that partitions may hold.

    A partition's bytes are its offsets times its ``bytes_per_record``; without a measure of its own
    it has the mean of those that were measured, and without any, ``DEFAULT_BYTES_PER_RECORD``.
    Shares are rounded down to records, so that the estimate stays within the limit. If no share
    makes a record, the partition that has most offsets to read, the first of them if several
    have, advances by one: a record beyond the limit is read alone, and a stream never stalls.
    The JVM connector has no such limit.
    """
    sizes = _sizes(begin, until)
    usual = fmean(bytes_per_record.values()) if bytes_per_record else DEFAULT_BYTES_PER_RECORD
    total = sum(size * bytes_per_record.get(partition, usual) for partition, size in sizes.items())
    if total <= limit_bytes:
        return until
    # A share of the limit in proportion to a partition's bytes, divided by its bytes per record,
    # is the same part of every partition's offsets.
    part = limit_bytes / Fraction(total)
    advances = {partition: math.floor(size * part) for partition, size in sizes.items()}
    if not any(advances.values()):
        advances[max(sizes, key=lambda partition: sizes[partition])] = 1
    return until.merge(
        {
            partition: min(until[partition], begin[partition] + advance)
            for partition, advance in advances.items()
        }
    )


def _sizes(
    begin: Mapping[TopicPartition, int], until: PartitionOffsets
) -> dict[TopicPartition, int]:
    return {
        partition: end - begin[partition]
        for partition, end in until.items()
        if partition in begin and end > begin[partition]
    }


def _whole_offsets(share: float) -> int:
    return math.ceil(share) if share < 1 else math.floor(share)
