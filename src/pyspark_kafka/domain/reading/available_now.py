"""Checks of each batch's end under ``Trigger.AvailableNow``.

``verifyEndOffsetForTriggerAvailableNow`` of Spark's ``KafkaMicroBatchStream``, with the texts of
``kafka-error-conditions.json``. They apply with any ``failOnDataLoss``.

    AvailableNowError
    ├── PartitionsNotPrefetchedError   the end has other partitions than the prefetched offsets
    ├── EndBeyondPrefetchedError       the end is beyond the prefetched offsets
    ├── LostPartitionsError            partitions of the end no longer exist
    └── EndBeyondLatestError           the end is beyond the latest offsets
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..errors import Fault, PysparkKafkaError, Recovery
from .errors import partition_set

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..partition_offsets import PartitionOffsets
    from ..topic_partition import TopicPartition

_RESTART: Final = (
    "The error could be transient - restart your query, and report if you still see the same issue."
)


class AvailableNowError(PysparkKafkaError):
    """Partitions changed during a query with ``Trigger.AvailableNow``."""

    fault = Fault.CLUSTER
    recovery = Recovery.RETRIABLE


class PartitionsNotPrefetchedError(AvailableNowError):
    """A batch ends in other partitions than those at the query's start."""

    condition = "MISMATCHED_TOPIC_PARTITIONS_BETWEEN_END_OFFSET_AND_PREFETCHED"

    def __init__(self, prefetched: PartitionOffsets, end: PartitionOffsets) -> None:
        super().__init__(
            "Kafka data source in Trigger.AvailableNow should provide the same topic partitions in "
            f"pre-fetched offset to end offset for each microbatch. {_RESTART}\n"
            f"topic-partitions for pre-fetched offset: {partition_set(prefetched)}, "
            f"topic-partitions for end offset: {partition_set(end)}."
        )


class EndBeyondPrefetchedError(AvailableNowError):
    """A batch ends beyond the latest offsets at the query's start."""

    condition = "END_OFFSET_HAS_GREATER_OFFSET_FOR_TOPIC_PARTITION_THAN_PREFETCHED"

    def __init__(self, prefetched: PartitionOffsets, end: PartitionOffsets) -> None:
        super().__init__(
            "For Kafka data source with Trigger.AvailableNow, end offset should have lower or "
            f"equal offset per each topic partition than pre-fetched offset. {_RESTART}\n"
            f"pre-fetched offset: {_offset_map(prefetched)}, end offset: {_offset_map(end)}."
        )


class LostPartitionsError(AvailableNowError):
    """A batch ends in partitions that no longer exist."""

    condition = "LOST_TOPIC_PARTITIONS_IN_END_OFFSET_WITH_TRIGGER_AVAILABLENOW"

    def __init__(self, latest: PartitionOffsets, end: PartitionOffsets) -> None:
        super().__init__(
            "Some of partitions in Kafka topic(s) have been lost during running query with "
            f"Trigger.AvailableNow. {_RESTART}\n"
            f"topic-partitions for latest offset: {partition_set(latest)}, "
            f"topic-partitions for end offset: {partition_set(end)}"
        )


class EndBeyondLatestError(AvailableNowError):
    """A batch ends beyond the current latest offsets."""

    condition = (
        "END_OFFSET_HAS_GREATER_OFFSET_FOR_TOPIC_PARTITION_THAN_LATEST_WITH_TRIGGER_AVAILABLENOW"
    )

    def __init__(self, latest: PartitionOffsets, end: PartitionOffsets) -> None:
        super().__init__(
            "Some of partitions in Kafka topic(s) report available offset which is less than end "
            f"offset during running query with Trigger.AvailableNow. {_RESTART}\n"
            f"latest offset: {_offset_map(latest)}, end offset: {_offset_map(end)}"
        )


def check_available_now(
    prefetched: PartitionOffsets, end: PartitionOffsets, latest: PartitionOffsets
) -> None:
    """Check a batch's ``end``: ``prefetched`` are the latest offsets at the query's start.

    :raises AvailableNowError: the first of the tree above that applies.
    """
    if prefetched.keys() != end.keys():
        raise PartitionsNotPrefetchedError(prefetched, end)
    if _is_beyond(end, prefetched):
        raise EndBeyondPrefetchedError(prefetched, end)
    if not end.keys() <= latest.keys():
        raise LostPartitionsError(latest, end)
    if _is_beyond(end, latest):
        raise EndBeyondLatestError(latest, end)


def _is_beyond(end: PartitionOffsets, bound: PartitionOffsets) -> bool:
    return any(offset > bound[partition] for partition, offset in end.items())


def _offset_map(offsets: Mapping[TopicPartition, int]) -> str:
    entries = (f"{partition} -> {offset}" for partition, offset in sorted(offsets.items()))
    return f"Map({', '.join(entries)})"
