"""Telling records that were deleted while they were to be read from offsets without a record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...domain.errors import MissingOffsetsError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ...domain.topic_partition import TopicPartition


def before_deleted(
    partition: TopicPartition,
    position: int,
    records: Sequence[Any],
    watermarks: Callable[[], tuple[int, int]],
) -> tuple[int, MissingOffsetsError | None]:
    """Count the records before the first offsets that were deleted, and give the error for these.

    A gap is such a loss only if the log now starts behind it; else it is what compaction,
    aborted transactions and control batches leave. The log's start only moves forward, so one
    look serves every gap.
    """
    if not records or records[-1].offset - position + 1 == len(records):
        return len(records), None
    earliest, _ = watermarks()
    expected = position
    for index, record in enumerate(records):
        if expected < min(record.offset, earliest):
            return index, MissingOffsetsError(partition, expected, min(record.offset, earliest))
        expected = record.offset + 1
    return len(records), None
