"""A stream of micro-batches: which offsets the next one spans and how it is split into tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from ..domain.available_now import check_available_now
from ..domain.lag import Lag
from .errors import StreamOffsetsMismatchError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..domain.offset_range import OffsetRange
    from ..domain.options import SourceOptions
    from ..domain.partition_offsets import PartitionOffsets
    from ..domain.read_limits import ReadLimit
    from .admission import Admission
    from .initial_offsets import InitialOffsets
    from .offset_reader import KafkaOffsetReader
    from .progress_reports import ProgressReports
    from .range_planner import RangePlanner


@final
class KafkaMicroBatchStream:
    """Spark's ``KafkaMicroBatchStream``: the driver's side of a streaming query.

    It keeps no offsets of its own that a restart could lose: the engine writes what
    ``latest_offset`` returns into its log and hands it back.
    """

    def __init__(
        self,
        offset_reader: KafkaOffsetReader,
        admission: Admission,
        planner: RangePlanner,
        initial_offsets: InitialOffsets,
        progress: ProgressReports,
        options: SourceOptions,
    ) -> None:
        self._offset_reader = offset_reader
        self._admission = admission
        self._planner = planner
        self._initial_offsets = initial_offsets
        self._progress = progress
        self._options = options
        self._latest: PartitionOffsets | None = None
        self._stops_at_first_latest = False
        self._all_for_available_now: PartitionOffsets | None = None

    def __str__(self) -> str:
        return f"KafkaV2[{self._offset_reader}]"

    @property
    def default_read_limit(self) -> ReadLimit:
        """The limit that the options ask for."""
        return self._options.read_limit

    def initial_offset(self) -> PartitionOffsets:
        """Give the offsets at which a query without a checkpoint begins (``startingOffsets``).

        The answer does not change before the first batch is committed: ``InitialOffsets``.
        """
        return self._initial_offsets.get(self._starting_offsets)

    def latest_offset(self, start: PartitionOffsets, limit: ReadLimit) -> PartitionOffsets:
        """Give the offsets at which the next batch ends; ``start`` itself if there is none.

        An answer without any partition must not reach the offset log, where it would make a
        later batch begin anew at the earliest offsets (SPARK-41375).

        An engine asks when all batches up to ``start`` are committed, and of the last one that may
        be its only word for long: Spark calls ``commit`` when it plans the batch after it.
        """
        self._latest = self._fetch_latest(start)
        self._progress.done(start, self._latest)
        if not self._latest:
            return start
        return self._admission.end_of_batch(start, self._latest, limit)

    def report_latest_offset(self) -> PartitionOffsets | None:
        """Give the offsets that were the latest when the last batch was made, for progress."""
        return self._latest

    def metrics(self, consumed: PartitionOffsets | None) -> Mapping[str, str]:
        """Give min-, max- and avgOffsetsBehindLatest of what a query has consumed, as text."""
        if not self._latest or consumed is None:
            return {}
        return Lag.between(self._latest, consumed).metrics()

    def prepare_for_trigger_available_now(self) -> None:
        """Let the query end with what the next ``latest_offset`` finds."""
        self._stops_at_first_latest = True

    def plan_input_partitions(
        self, start: PartitionOffsets, end: PartitionOffsets
    ) -> tuple[OffsetRange, ...]:
        """Split the offsets between two ends of batches into ranges, one for each task.

        :raises DataLossError: if something between them is gone and ``failOnDataLoss`` is true.
        :raises AvailableNowError: if Kafka changed under a query with Trigger.AvailableNow.
        """
        if self._all_for_available_now is not None:
            latest = self._offset_reader.latest(end)
            check_available_now(self._all_for_available_now, end, latest)
        return self._planner.plan(start, end)

    def commit(self, end: PartitionOffsets) -> None:
        """Take notice that the engine has committed a batch that ends at ``end``."""
        self._progress.done(end, self._latest)

    def _starting_offsets(self) -> PartitionOffsets:
        limit = self._options.starting_offsets
        return self._offset_reader.resolve_open(
            self._offset_reader.unresolved(limit, "start", StreamOffsetsMismatchError)
        )

    def _fetch_latest(self, start: PartitionOffsets) -> PartitionOffsets:
        if not self._stops_at_first_latest:
            return self._offset_reader.latest(start)
        if self._all_for_available_now is None:
            self._all_for_available_now = self._offset_reader.latest(start)
        return self._all_for_available_now
