"""Checks of where a batch query starts and ends.

The texts are from ``KafkaSourceProvider.validateBatchOptions`` and, for both ends, from the
conditions that SPARK-52096 brought into ``kafka-error-conditions.json``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..partition_offsets import EARLIEST, LATEST
from ..reading.offset_limits import (
    ByTimestamp,
    CommittedOffsets,
    Earliest,
    Latest,
    OnMissingCommit,
    Specific,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..reading.offset_limits import OffsetLimit, StartingOffsets
    from ..topic_partition import TopicPartition


def starting_problems(starting: StartingOffsets) -> list[str]:
    """Return why a batch query cannot start there."""
    if isinstance(starting, CommittedOffsets):
        if starting.on_missing_commit is not OnMissingCommit.LATEST:
            return []
        return ["startingOffsetsGroupFallback can't be latest for batch queries on Kafka"]
    if isinstance(starting, Latest):
        return ["starting offset can't be latest for batch queries on Kafka"]
    return [
        f"startingOffsets for {name} can't be latest for batch queries on Kafka"
        for name in _names_at(LATEST, starting)
    ]


def ending_problems(ending: OffsetLimit) -> list[str]:
    """Return why a batch query cannot end there."""
    if isinstance(ending, Earliest):
        return ["ending offset can't be earliest for batch queries on Kafka"]
    return [
        f"ending offset for {name} can't be earliest for batch queries on Kafka"
        for name in _names_at(EARLIEST, ending)
    ]


def mismatches(starting: StartingOffsets, ending: OffsetLimit) -> list[str]:
    """Return how a start and an end of the same kind contradict each other."""
    match starting, ending:
        case Specific(starts, ()), Specific(ends, ()):
            return _mismatches("offset", starts, ends)
        case ByTimestamp(first), ByTimestamp(last):
            return _mismatches("timestamp", dict(first), dict(last))
        case _:
            return []


def _mismatches(
    kind: str, starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
) -> list[str]:
    if starts.keys() != ends.keys():
        return [_other_partitions(starts, ends)]
    return [
        f"The specified start {kind} {start} is greater than the end {kind} {ends[partition]} "
        f"for topic {partition.topic} partition {partition.partition}."
        for partition, start in starts.items()
        if 0 <= ends[partition] < start
    ]


def _other_partitions(
    starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
) -> str:
    return (
        "The specified start offset and end offset should have the same topic-partitions.\n"
        f"Topic-partitions for start offset: {_listed(starts)}, "
        f"topic-partitions for end offset: {_listed(ends)}."
    )


def _names_at(offset: int, limit: OffsetLimit) -> list[str]:
    if not isinstance(limit, Specific):
        return []
    partitions = [str(partition) for partition, given in limit.offsets.items() if given == offset]
    return partitions + [f"topic {topic}" for topic, given in limit.topics if given == offset]


def _listed(partitions: Mapping[TopicPartition, int]) -> str:
    return ", ".join(map(str, sorted(partitions)))
