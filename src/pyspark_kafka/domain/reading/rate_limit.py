"""The end of a micro-batch under a limit of offsets or bytes."""

from __future__ import annotations

import math
from fractions import Fraction
from statistics import fmean
from typing import TYPE_CHECKING, Final

from ..partition_offsets import PartitionOffsets

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..topic_partition import TopicPartition

DEFAULT_BYTES_PER_RECORD: Final = 1024
"""The assumed size of a record before any was measured."""


def rate_limit(
    limit: int, begin: Mapping[TopicPartition, int], until: PartitionOffsets
) -> PartitionOffsets:
    """Return the end of a batch of about ``limit`` offsets, shared in proportion to the backlogs.

    ``rateLimit`` of Spark's ``KafkaMicroBatchStream``, with its doubles: a share below one offset
    is rounded up, so that small partitions do not starve, and any other down. The sum may therefore
    exceed the limit, and a limit that is just enough may leave an offset unread. A partition
    without ``begin``, or with one at or after its end, is read to its end. ``limit`` is at least 1.
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
    """Return the end of a batch of about ``limit_bytes``, shared in proportion to the backlogs.

    A partition's backlog is its offsets times its ``bytes_per_record``; a partition that was not
    measured gets the average of the others, or else ``DEFAULT_BYTES_PER_RECORD``. Shares are
    rounded down to records, so that the estimate stays within the limit. If every share is below a
    record, the (first) partition with the largest backlog advances by one record: a stream never
    stalls. ``limit_bytes`` is at least 1. The JVM connector has no such limit.
    """
    sizes = _sizes(begin, until)
    default = fmean(bytes_per_record.values()) if bytes_per_record else DEFAULT_BYTES_PER_RECORD
    total = sum(
        size * bytes_per_record.get(partition, default) for partition, size in sizes.items()
    )
    if total <= limit_bytes:
        return until
    # A share of the limit in proportion to a partition's bytes, divided by its bytes per record,
    # is the same fraction of every partition's offsets.
    fraction = limit_bytes / Fraction(total)
    advances = {partition: math.floor(size * fraction) for partition, size in sizes.items()}
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
