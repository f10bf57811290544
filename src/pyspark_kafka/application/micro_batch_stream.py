"""A stream of micro-batches: which offsets the next one spans and how it is split into tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from ..domain import data_loss
from ..domain.offset_range import OffsetRange
from ..domain.partition_offsets import PartitionOffsets

if TYPE_CHECKING:
    from ..domain.data_loss import DataLoss
    from ..domain.options import SourceOptions
    from ..ports.source_events import SourceEvents
    from .offset_reader import KafkaOffsetReader


@final
class KafkaMicroBatchStream:
    """Spark's ``KafkaMicroBatchStream``: the driver's side of a streaming query.

    It keeps no offsets of its own that a restart could lose: the engine writes what
    ``latest_offset`` returns into its log and hands it back.
    """

    def __init__(
        self, offset_reader: KafkaOffsetReader, options: SourceOptions, events: SourceEvents
    ) -> None:
        self._offset_reader = offset_reader
        self._options = options
        self._events = events
        self._latest: PartitionOffsets | None = None
        self._stops_at_first_latest = False
        self._all_for_available_now: PartitionOffsets | None = None

    def __str__(self) -> str:
        return f"KafkaV2[{self._offset_reader}]"

    def initial_offset(self) -> PartitionOffsets:
        """Give the offsets at which a query without a checkpoint begins (``startingOffsets``)."""
        offsets = self._offset_reader.resolve(self._options.starting_offsets)
        self._events.initial_offsets(offsets)
        return offsets

    def latest_offset(self, start: PartitionOffsets) -> PartitionOffsets:
        """Give the offsets at which the next batch ends; ``start`` itself if there are none.

        An answer without any partition must not reach the offset log, where it would make a
        later batch begin anew at the earliest offsets (SPARK-41375).
        """
        self._latest = self._fetch_latest(start)
        return self._latest or start

    def report_latest_offset(self) -> PartitionOffsets | None:
        """Give the offsets that were the latest when the last batch was made, for progress."""
        return self._latest

    def prepare_for_trigger_available_now(self) -> None:
        """Let the query end with what the next ``latest_offset`` finds."""
        self._stops_at_first_latest = True

    def plan_input_partitions(
        self, start: PartitionOffsets, end: PartitionOffsets
    ) -> tuple[OffsetRange, ...]:
        """Split the offsets between two ends of batches into ranges, one for each task.

        :raises DataLossError: if something between them is gone and ``failOnDataLoss`` is true.
        """
        added = self._start_of_added(start, end)
        deleted = start.keys() - end.keys()
        if deleted:
            self._report(
                data_loss.partitions_deleted(
                    deleted, group_id_is_set=self._options.group_id is not None
                )
            )
        begin = start.merge(added)
        ranges = []
        for partition, until in end.items():
            offset = begin.get(partition)
            if offset is None:
                continue
            if until < offset:
                self._report(data_loss.partition_offset_changed(partition, offset, until))
            elif until > offset:
                ranges.append(OffsetRange(partition, offset, until))
        return tuple(ranges)

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
