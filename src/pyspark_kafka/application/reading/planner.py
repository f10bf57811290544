"""The ranges that the tasks of a batch read, and those of a batch query."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, final

from ...domain.partition_offsets import PartitionOffsets
from ...domain.reading import data_loss
from ...domain.reading.batch_tasks import batch_range, batch_tasks
from ...domain.reading.ranges import (
    OffsetRange,
    are_small,
    join_ranges,
    needs_join,
    needs_split,
    split_ranges,
    split_unbound,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from ...domain.options.source import SourceOptions
    from ...domain.reading.batch_tasks import BatchTask
    from ...domain.reading.data_loss import DataLoss
    from ...domain.reading.ranges import TaskRanges
    from ...domain.topic_partition import TopicPartition
    from ...ports.reading import SourceEvents
    from .offsets import KafkaOffsetReader


@final
class RangePlanner:
    """Plans ranges as Spark's ``getOffsetRangesFromResolvedOffsets``, in both of its sources."""

    def __init__(
        self,
        offset_reader: KafkaOffsetReader,
        options: SourceOptions,
        events: SourceEvents,
        offset_changed: Callable[[TopicPartition, int, int], DataLoss] = (
            data_loss.partition_offset_changed
        ),
    ) -> None:
        """Take the loss of a partition that ends before its start: its text differs by source."""
        self._offset_reader = offset_reader
        self._options = options
        self._events = events
        self._offset_changed = offset_changed

    def plan(self, start: PartitionOffsets, end: PartitionOffsets) -> tuple[OffsetRange, ...]:
        """Split the offsets of a batch into ranges, one for each task.

        :raises DataLossError: if records in between are gone and ``failOnDataLoss`` is true.
        """
        begin = start.merge(self.start_of_added(start, end.keys()))
        self.report_deleted(start, end.keys())
        return split_ranges(
            list(self._ranges(begin, end)),
            self._options.task_limits,
        )

    def report(self, loss: DataLoss) -> None:
        """Raise a data loss, or only report it, depending on ``failOnDataLoss``."""
        if self._options.fail_on_data_loss:
            raise loss.as_error()
        self._events.data_lost(loss)

    def start_of_added(
        self, start: PartitionOffsets, current: Collection[TopicPartition]
    ) -> PartitionOffsets:
        """Return the earliest offset of each current partition that ``start`` does not have.

        :raises DataLossError: if their first records are gone and ``failOnDataLoss`` is true.
        """
        added = set(current) - start.keys()
        if not added:
            return PartitionOffsets()
        earliest = self._offset_reader.earliest(added)
        if earliest.keys() != added:
            self.report(data_loss.earliest_offsets_not_found(added - earliest.keys()))
        self._events.partitions_added(earliest)
        for partition, offset in earliest.items():
            if offset != 0:
                self.report(data_loss.added_partition_starts_late(partition, offset))
        return earliest

    def report_deleted(self, start: PartitionOffsets, current: Collection[TopicPartition]) -> None:
        """Report the loss of partitions that ``start`` has and that no longer exist.

        :raises DataLossError: if there are any and ``failOnDataLoss`` is true.
        """
        deleted = start.keys() - set(current)
        if deleted:
            group_id_is_set = self._options.group_id is not None
            self.report(data_loss.partitions_deleted(deleted, group_id_is_set=group_id_is_set))

    def _ranges(self, begin: PartitionOffsets, end: PartitionOffsets) -> Iterator[OffsetRange]:
        for partition, until in end.items():
            offset = begin.get(partition)
            if offset is not None and until < offset:
                self.report(self._offset_changed(partition, offset, until))
            elif offset is not None:
                yield OffsetRange(partition, offset, until)


@final
class TaskPlanner:
    """Joins ranges by ``maxPartitions``, and reports once that the option would help."""

    def __init__(self, options: SourceOptions, events: SourceEvents) -> None:
        self._max_partitions = options.max_partitions
        self._events = events
        self._has_reported = False

    def plan(
        self,
        ranges: Sequence[OffsetRange],
        resolve: Callable[[], Mapping[TopicPartition, OffsetRange]] = dict,
    ) -> tuple[TaskRanges, ...]:
        """Return the ranges of each task; ``resolve`` is called if ranges are joined.

        It returns the range of each partition with open ends, all of its parts together.
        """
        resolved = resolve() if needs_join(ranges, self._max_partitions) else {}
        tasks = join_ranges(ranges, self._max_partitions, resolved)
        if self._max_partitions is None and not self._has_reported and are_small(ranges):
            self._has_reported = True
            self._events.tasks_are_small(len(ranges), sum(one.size for one in ranges))
        return tasks


@final
class KafkaBatch:
    """The driver's side of a batch query: Spark's ``KafkaBatch``."""

    def __init__(
        self, offset_reader: KafkaOffsetReader, options: SourceOptions, task_planner: TaskPlanner
    ) -> None:
        self._offset_reader = offset_reader
        self._options = options
        self._task_planner = task_planner

    def plan_tasks(self) -> tuple[BatchTask, ...]:
        """Return the parts of each task; raise as ``plan_input_partitions`` does.

        ``BatchBinding`` binds them to offsets, so that a plan can be used again later.
        """
        ranges = self._ranges()
        resolve = cache(lambda: self._bound(ranges))
        planned = self._task_planner.plan(self._split(ranges, resolve), resolve)
        return batch_tasks(planned, ranges, self._options.starting_offsets)

    def plan_input_partitions(self) -> tuple[OffsetRange, ...]:
        """Return the ranges of the batch; open ends stay open, and reading binds them.

        :raises OffsetsMismatchError: if the options name offsets for other partitions.
        :raises ResolvedOffsetsError: if a start is known to be greater than its end.
        """
        ranges = self._ranges()
        return self._split(ranges, lambda: self._bound(ranges))

    def _ranges(self) -> list[OffsetRange]:
        """Return the range of each partition."""
        starts = self._offset_reader.unresolved(self._options.starting_offsets, "start")
        ends = self._offset_reader.unresolved(self._options.ending_offsets, "end")
        return [
            batch_range(partition, start, ends[partition])
            for partition, start in starts.items()
            if partition in ends
        ]

    def _split(
        self,
        ranges: Sequence[OffsetRange],
        resolve: Callable[[], Mapping[TopicPartition, OffsetRange]],
    ) -> tuple[OffsetRange, ...]:
        limits = self._options.task_limits
        resolved = resolve() if needs_split(ranges, limits) else {}
        return tuple(
            one
            for one in split_unbound(ranges, resolved, limits)
            if not one.is_bound or one.size > 0
        )

    def _bound(self, ranges: Sequence[OffsetRange]) -> Mapping[TopicPartition, OffsetRange]:
        starts = self._offset_reader.resolve_open(
            PartitionOffsets((one.partition, one.from_offset) for one in ranges)
        )
        ends = self._offset_reader.resolve_open(
            PartitionOffsets((one.partition, one.until_offset) for one in ranges)
        )
        return {
            partition: batch_range(partition, start, ends[partition])
            for partition, start in starts.items()
        }
