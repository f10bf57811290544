"""The offset ranges of a batch query."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, final

from ...domain.partition_offsets import PartitionOffsets
from ...domain.reading.errors import ResolvedOffsetsError
from ...domain.reading.ranges import OffsetRange, needs_split, split_unbound
from ...domain.reading.records import RecordFilter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ...domain.options.source import SourceOptions
    from ...domain.reading.ranges import TaskRanges
    from ...domain.topic_partition import TopicPartition
    from .offsets import KafkaOffsetReader
    from .planner import TaskPlanner

ALL_RECORDS = RecordFilter()


@final
class KafkaBatch:
    """The driver's side of a batch query: Spark's ``KafkaBatch``."""

    def __init__(
        self, offset_reader: KafkaOffsetReader, options: SourceOptions, task_planner: TaskPlanner
    ) -> None:
        self._offset_reader = offset_reader
        self._options = options
        self._task_planner = task_planner

    def plan_tasks(self, record_filter: RecordFilter = ALL_RECORDS) -> tuple[TaskRanges, ...]:
        """Return the ranges of each task; raise as ``plan_input_partitions`` does."""
        ranges = self._narrow(self._ranges(record_filter), record_filter)
        resolve = cache(lambda: self._bound(ranges))
        return self._task_planner.plan(self._split(ranges, resolve), resolve)

    def plan_input_partitions(
        self, record_filter: RecordFilter = ALL_RECORDS
    ) -> tuple[OffsetRange, ...]:
        """Return the ranges that can have a record that a filter accepts.

        Open ends stay open: tasks bind them, so that a DataFrame that is used twice sees records
        that arrived in between, as with the JVM connector.

        :raises OffsetsMismatchError: if the options name offsets for other partitions.
        :raises ResolvedOffsetsError: if a start is known to be greater than its end.
        """
        ranges = self._narrow(self._ranges(record_filter), record_filter)
        return self._split(ranges, lambda: self._bound(ranges))

    def _ranges(self, record_filter: RecordFilter) -> list[OffsetRange]:
        """Return the range of each partition."""
        starts = self._offset_reader.unresolved(self._options.starting_offsets, "start")
        ends = self._offset_reader.unresolved(self._options.ending_offsets, "end")
        return [
            _range(partition, start, ends[partition])
            for partition, start in starts.items()
            if partition in ends and record_filter.admits_partition(partition.partition)
        ]

    def _narrow(
        self, ranges: Sequence[OffsetRange], record_filter: RecordFilter
    ) -> list[OffsetRange]:
        if not record_filter.narrows_offsets:
            return list(ranges)
        narrowed = (record_filter.narrow(bound) for bound in self._bound(ranges).values())
        kept = [one for one in narrowed if one.size > 0]
        timestamp = record_filter.min_timestamp
        # A negative timestamp has a special meaning in ListOffsets, and excludes no record.
        if timestamp is None or timestamp < 0 or not kept:
            return kept
        return self._from_timestamp(kept, timestamp)

    def _from_timestamp(self, ranges: Sequence[OffsetRange], timestamp: int) -> list[OffsetRange]:
        times = {one.partition: timestamp for one in ranges}
        found = self._offset_reader.offsets_for_timestamps(times)
        kept = []
        for one in ranges:
            first = found.get(one.partition)
            if first is not None and first < one.until_offset:
                kept.append(one.starting_at(max(first, one.from_offset)))
        return kept

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
            partition: _range(partition, start, ends[partition])
            for partition, start in starts.items()
        }


def _range(partition: TopicPartition, start: int, end: int) -> OffsetRange:
    if 0 <= end < start:
        raise ResolvedOffsetsError(partition, start, end)
    return OffsetRange(partition, start, end)
