"""Which ranges each task of a batch reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from ...domain.reading.ranges import are_small, join_ranges, needs_join

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ...domain.options.source import SourceOptions
    from ...domain.reading.ranges import OffsetRange, TaskRanges
    from ...domain.topic_partition import TopicPartition
    from ...ports.reading.source_events import SourceEvents


@final
class TaskPlanner:
    """Joins ranges as ``maxPartitions`` says, and reports once that the option would help."""

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
