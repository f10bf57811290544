"""A stream of micro-batches: which offsets the next one spans and how it is split into tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from ..domain import data_loss
from ..domain.available_now import check_available_now
from ..domain.errors import StreamOffsetsMismatchError
from ..domain.lag import offsets_behind_latest
from ..domain.offset_range import OffsetRange
from ..domain.partition_offsets import PartitionOffsets
from ..domain.range_calculator import split_ranges

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..domain.data_loss import DataLoss
    from ..domain.options import SourceOptions
    from ..domain.read_limits import ReadLimit
    from ..ports.source_events import SourceEvents
    from .admission import Admission
    from .offset_reader import KafkaOffsetReader


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
        options: SourceOptions,
        events: SourceEvents,
    ) -> None:
        self._offset_reader = offset_reader
        self._admission = admission
        self._options = options
        self._events = events
        self._initial: PartitionOffsets | None = None
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

        An engine asks until its first batch is committed (Spark's ``MicroBatchExecution`` does so
        more than once), and gets the same answer: later ends of the log would skip records.
        """
        if self._initial is None:
            limit = self._options.starting_offsets
            self._initial = self._offset_reader.resolve_open(
                self._offset_reader.unresolved(limit, "start", StreamOffsetsMismatchError)
            )
            self._events.initial_offsets(self._initial)
        return self._initial

    def latest_offset(self, start: PartitionOffsets, limit: ReadLimit) -> PartitionOffsets:
        """Give the offsets at which the next batch ends; ``start`` itself if there is none.

        An answer without any partition must not reach the offset log, where it would make a
        later batch begin anew at the earliest offsets (SPARK-41375).
        """
        self._latest = self._fetch_latest(start)
        if not self._latest:
            return start
        return self._admission.end_of_batch(start, self._latest, limit)

    def report_latest_offset(self) -> PartitionOffsets | None:
        """Give the offsets that were the latest when the last batch was made, for progress."""
        return self._latest

    def metrics(self, consumed: PartitionOffsets | None) -> Mapping[str, str]:
        """Give min-, max- and avgOffsetsBehindLatest of what a query has consumed, as text."""
        return offsets_behind_latest(self._latest, consumed)

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
        begin = start.merge(self._start_of_added(start, end))
        deleted = start.keys() - end.keys()
        if deleted:
            group_id_is_set = self._options.group_id is not None
            self._report(data_loss.partitions_deleted(deleted, group_id_is_set=group_id_is_set))
        return split_ranges(
            self._ranges(begin, end),
            self._options.min_partitions,
            self._options.max_records_per_partition,
        )

    def _ranges(self, begin: PartitionOffsets, end: PartitionOffsets) -> list[OffsetRange]:
        ranges = []
        for partition, until in end.items():
            offset = begin.get(partition)
            if offset is not None and until < offset:
                self._report(data_loss.partition_offset_changed(partition, offset, until))
            elif offset is not None:
                ranges.append(OffsetRange(partition, offset, until))
        return ranges

    def _start_of_added(self, start: PartitionOffsets, end: PartitionOffsets) -> PartitionOffsets:
        added = end.keys() - start.keys()
        if not added:
            return PartitionOffsets()
        earliest = self._offset_reader.earliest(added)
        if earliest.keys() != added:
            self._report(data_loss.earliest_offsets_not_found(added - earliest.keys()))
        self._events.partitions_added(earliest)
        for partition, offset in earliest.items():
            if offset != 0:
                self._report(data_loss.added_partition_starts_late(partition, offset))
        return earliest

    def _fetch_latest(self, start: PartitionOffsets) -> PartitionOffsets:
        if not self._stops_at_first_latest:
            return self._offset_reader.latest(start)
        if self._all_for_available_now is None:
            self._all_for_available_now = self._offset_reader.latest(start)
        return self._all_for_available_now

    def _report(self, loss: DataLoss) -> None:
        if self._options.fail_on_data_loss:
            raise loss.as_error()
        self._events.data_lost(loss)
