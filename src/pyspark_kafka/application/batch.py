"""A batch query: which ranges it reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from ..domain.offset_limits import Earliest, Latest, Specific
from ..domain.offset_range import OffsetRange
from ..domain.partition_offsets import EARLIEST, LATEST, PartitionOffsets
from .offset_reader import require_same_partitions

if TYPE_CHECKING:
    from ..domain.offset_limits import OffsetLimit
    from ..domain.options import SourceOptions
    from ..domain.topic_partition import TopicPartition
    from .offset_reader import KafkaOffsetReader


@final
class KafkaBatch:
    """Spark's ``KafkaBatch``: the driver's side of a batch query."""

    def __init__(self, offset_reader: KafkaOffsetReader, options: SourceOptions) -> None:
        self._offset_reader = offset_reader
        self._options = options

    def plan_input_partitions(self) -> tuple[OffsetRange, ...]:
        """Give a range for every partition.

        Open ends stay open and are bound by the tasks, so that a DataFrame that is used twice
        sees what came in between, as the JVM connector's does.

        :raises StartingOffsetsError: if offsets are given for other partitions than there are.
        """
        partitions = self._offset_reader.partitions()
        starts = _unresolved(self._options.starting_offsets, partitions)
        ends = _unresolved(self._options.ending_offsets, partitions)
        ranges = []
        for partition in sorted(partitions):
            start, end = starts[partition], ends[partition]
            if start == EARLIEST or end == LATEST or start < end:
                ranges.append(OffsetRange(partition, start, end))
        return tuple(ranges)


def _unresolved(limit: OffsetLimit, partitions: frozenset[TopicPartition]) -> PartitionOffsets:
    match limit:
        case Earliest():
            return PartitionOffsets((partition, EARLIEST) for partition in partitions)
        case Latest():
            return PartitionOffsets((partition, LATEST) for partition in partitions)
        case Specific(offsets):
            require_same_partitions(offsets, partitions)
            return offsets
