"""The offsets of a batch query's tasks, which are bound when a task runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from ...domain.reading.batch_tasks import PartitionPart, batch_range
from ...domain.reading.data_loss import planned_offsets_not_read

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from ...domain.options.source import SourceOptions
    from ...domain.partition_offsets import PartitionOffsets
    from ...domain.reading.batch_tasks import BatchTask
    from ...domain.reading.ranges import OffsetRange, TaskRanges
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

        Open ends stay open: reading binds them. Only times are looked up, by each part: in a topic
        that was created again they are at other offsets.

        :raises ResolvedOffsetsError: if a start is greater than its end.
        :raises PysparkKafkaError: as ``KafkaOffsetReader``.
        """
        parts = (*task.parts, *map(PartitionPart, self._added(task)))
        starts = self._starts(parts)
        ends = self._offset_reader.offsets_of(
            self._options.ending_offsets, {part.partition for part in parts}
        )
        return tuple(
            self._bound(part, starts[part.partition], ends[part.partition]) for part in parts
        )

    def _starts(self, parts: Sequence[PartitionPart]) -> PartitionOffsets:
        # Tasks that start at other times, or are tried again, must agree on a group's offsets.
        kept = {part.partition: part.batch_start for part in parts if part.batch_start is not None}
        moving = {part.partition for part in parts} - kept.keys()
        return self._offset_reader.offsets_of(self._options.starting_offsets, moving).merge(kept)

    def _bound(self, part: PartitionPart, start: int, end: int) -> OffsetRange:
        whole = batch_range(part.partition, start, end)
        if part.start is not None and start > part.start:
            self._report_deleted(part, part.start, start)
        return part.of(whole.from_offset, whole.until_offset)

    def _report_deleted(self, part: PartitionPart, planned: int, start: int) -> None:
        """Report the records from ``planned`` to ``start`` that are deleted.

        The first part may have been read before that. A start at a time that no record matched
        moves without a loss when one does.
        """
        skipped_to = start if part.end is None else min(start, part.end)
        earliest = self._offset_reader.earliest([part.partition]).get(part.partition, skipped_to)
        if planned < earliest:
            until = min(skipped_to, earliest)
            self._events.data_lost(planned_offsets_not_read(part.partition, planned, until))

    def _added(self, task: BatchTask) -> Collection[TopicPartition]:
        """Return the partitions that this task reads although they were not planned.

        Those without a bound are left out: an error would fail an action because a topic was added
        while it ran.
        """
        if task.planned is None:
            return ()
        added = self._offset_reader.partitions() - task.planned
        covered = set(added)
        for limit in (self._options.starting_offsets, self._options.ending_offsets):
            covered &= self._offset_reader.covered(limit, covered).keys()
        if covered != added:
            self._events.partitions_left_out(added - covered)
        return sorted(covered)
