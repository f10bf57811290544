"""The offsets of a batch query's tasks, which are bound when a task runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from ...domain.reading.batch_tasks import PartitionPart, batch_range
from ...domain.reading.offset_limits import CommittedOffsets

if TYPE_CHECKING:
    from collections.abc import Collection

    from ...domain.options.source import SourceOptions
    from ...domain.partition_offsets import PartitionOffsets
    from ...domain.reading.batch_tasks import BatchTask
    from ...domain.reading.offset_limits import StartingOffsets
    from ...domain.reading.ranges import TaskRanges
    from ...domain.topic_partition import TopicPartition
    from ...ports.reading import SourceEvents
    from .offsets import KafkaOffsetReader


@final
class BatchBinding:
    """Binds a task's parts as the JVM connector plans an action: by the topics as they are now."""

    def __init__(
        self, offset_reader: KafkaOffsetReader, options: SourceOptions, events: SourceEvents
    ) -> None:
        self._offset_reader = offset_reader
        self._options = options
        self._events = events

    def bind(self, task: BatchTask) -> TaskRanges:
        """Return the ranges that a task reads.

        Open ends stay open in partitions that are not split: reading them binds them.

        :raises ResolvedOffsetsError: if a start is greater than its end.
        :raises PysparkKafkaError: as ``KafkaOffsetReader``.
        """
        parts = (*task.parts, *map(PartitionPart, self._added(task)))
        whole = {part.partition for part in parts if part.is_whole}
        split = {part.partition for part in parts} - whole
        starts, ends = self._starts(whole, split), self._ends(whole, split)
        ranges = {one: batch_range(one, start, ends[one]) for one, start in starts.items()}
        return tuple(
            ranges[part.partition] if part.is_whole else part.of(ranges[part.partition])
            for part in parts
        )

    def _added(self, task: BatchTask) -> Collection[TopicPartition]:
        """Return the partitions that this task reads although they were not planned.

        Those without a bound are left out: an error would fail an action because a topic was added
        while it ran.
        """
        if task.planned is None:
            return ()
        added = self._offset_reader.partitions() - task.planned
        if not added:
            return ()
        covered = set(added)
        for limit in (self._options.starting_offsets, self._options.ending_offsets):
            covered &= self._offset_reader.covered(limit, covered).keys()
        if covered != added:
            self._events.partitions_left_out(added - covered)
        return sorted(covered)

    def _starts(self, whole: set[TopicPartition], split: set[TopicPartition]) -> PartitionOffsets:
        limit, reader = self._options.starting_offsets, self._offset_reader
        offsets = reader.offsets_of(limit, whole)
        if keeps_starts(limit):
            return offsets.merge(dict.fromkeys(split, 0))
        return offsets.merge(reader.resolve_open(reader.offsets_of(limit, split)))

    def _ends(self, whole: set[TopicPartition], split: set[TopicPartition]) -> PartitionOffsets:
        limit, reader = self._options.ending_offsets, self._offset_reader
        offsets = reader.offsets_of(limit, whole)
        return offsets.merge(reader.resolve_open(reader.offsets_of(limit, split)))


def keeps_starts(limit: StartingOffsets) -> bool:
    """Return whether split partitions keep the start that was planned.

    A group may commit while tasks run: those of one partition would not agree on its start, and
    records between their parts would be missing.
    """
    return isinstance(limit, CommittedOffsets)
