"""The driver's side of a streaming query: the offsets of each batch and its ranges."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from ...domain.lag.lag import Lag
from ...domain.reading.available_now import check_available_now
from ..errors import StreamOffsetsMismatchError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...domain.options.source import SourceOptions
    from ...domain.partition_offsets import PartitionOffsets
    from ...domain.reading.admission import ReadLimit
    from ...domain.reading.ranges import OffsetRange, TaskRanges
    from .admission import Admission
    from .initial_offsets import InitialOffsets
    from .offset_reader import KafkaOffsetReader
    from .progress_reports import ProgressReports
    from .range_planner import RangePlanner
    from .task_planner import TaskPlanner


@final
class KafkaMicroBatchStream:
    """Spark's ``KafkaMicroBatchStream``.

    It has no state that a restart loses: the engine logs the offsets that ``latest_offset`` returns
    and passes them back.
    """

    def __init__(
        self,
        offset_reader: KafkaOffsetReader,
        admission: Admission,
        *,
        planner: RangePlanner,
        initial_offsets: InitialOffsets,
        progress: ProgressReports,
        task_planner: TaskPlanner,
        options: SourceOptions,
    ) -> None:
        self._offset_reader = offset_reader
        self._admission = admission
        self._planner = planner
        self._initial_offsets = initial_offsets
        self._progress = progress
        self._task_planner = task_planner
        self._options = options
        self._latest: PartitionOffsets | None = None
        self._stops_at_first_latest = False
        self._prefetched: PartitionOffsets | None = None

    def __str__(self) -> str:
        return f"KafkaV2[{self._offset_reader}]"

    @property
    def default_read_limit(self) -> ReadLimit:
        """The read limit of the options."""
        return self._options.read_limit

    def initial_offset(self) -> PartitionOffsets:
        """Return the offsets at which a query without a checkpoint starts (``startingOffsets``).

        They do not change before the first batch is committed: ``InitialOffsets``.
        """
        return self._initial_offsets.get(self._starting_offsets)

    def latest_offset(self, start: PartitionOffsets, limit: ReadLimit) -> PartitionOffsets:
        """Return the end of the next batch; ``start`` itself if there is none.

        Offsets without partitions must not reach the offset log: a later batch would start at the
        earliest offsets again (SPARK-41375).

        When an engine calls this, all batches up to ``start`` are committed: Spark calls ``commit``
        only when it plans the following batch, which may be much later.
        """
        self._latest = self._fetch_latest(start)
        self._progress.done(start, self._latest)
        if not self._latest:
            return start
        return self._admission.end_of_batch(start, self._latest, limit)

    def report_latest_offset(self) -> PartitionOffsets | None:
        """Return the latest offsets when the last batch was planned, for progress reports."""
        return self._latest

    def metrics(self, consumed: PartitionOffsets | None) -> Mapping[str, str]:
        """Return min-, max- and avgOffsetsBehindLatest of a query's consumed offsets, as text."""
        if not self._latest or consumed is None:
            return {}
        return Lag.between(self._latest, consumed).metrics()

    def prepare_for_trigger_available_now(self) -> None:
        """Stop the query at the offsets that the next ``latest_offset`` returns."""
        self._stops_at_first_latest = True

    def plan_input_partitions(
        self, start: PartitionOffsets, end: PartitionOffsets
    ) -> tuple[OffsetRange, ...]:
        """Split the offsets of a batch into ranges, one for each task.

        :raises DataLossError: if records in between are gone and ``failOnDataLoss`` is true.
        :raises AvailableNowError: if partitions changed under Trigger.AvailableNow.
        """
        # Spark plans an empty batch if another connector has written the same offsets differently.
        if self._prefetched is not None and start != end:
            latest = self._offset_reader.latest(end)
            check_available_now(self._prefetched, end, latest)
        return self._planner.plan(self._start_as_of(end, start), end)

    def plan_tasks(self, start: PartitionOffsets, end: PartitionOffsets) -> tuple[TaskRanges, ...]:
        """Return the ranges of each task; raise as ``plan_input_partitions`` does."""
        return self._task_planner.plan(self.plan_input_partitions(start, end))

    def commit(self, end: PartitionOffsets) -> None:
        """Notify that a batch that ends at ``end`` is committed."""
        self._progress.done(end, self._latest)

    def _start_as_of(self, end: PartitionOffsets, start: PartitionOffsets) -> PartitionOffsets:
        """Return the start of a batch without partitions that were added after ``end`` was planned.

        Spark does not log where its first batch starts. If a new process runs that batch again, the
        start is determined again: partitions that only it has are new, and not deleted.
        """
        if self._latest is None and start == self._initial_offsets.found:
            return start.restrict(end)
        return start

    def _starting_offsets(self) -> PartitionOffsets:
        limit = self._options.starting_offsets
        return self._offset_reader.resolve_open(
            self._offset_reader.unresolved(limit, "start", StreamOffsetsMismatchError)
        )

    def _fetch_latest(self, start: PartitionOffsets) -> PartitionOffsets:
        if not self._stops_at_first_latest:
            return self._offset_reader.latest(start)
        if self._prefetched is None:
            self._prefetched = self._offset_reader.latest(start)
        return self._prefetched
