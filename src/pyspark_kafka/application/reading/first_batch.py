"""The bounds of a stream's first batch, also after a restart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from ...domain.partition_offsets import PartitionOffsets
from ...domain.reading.data_loss import first_batch_start_unknown
from ...domain.reading.errors import (
    NoCommittedOffsetError,
    NoOffsetForTimestampError,
    OffsetsMismatchError,
    TimestampsMismatchError,
    TopicOffsetsMismatchError,
)
from ...domain.reading.offset_limits import (
    ByTimestamp,
    CommittedOffsets,
    GlobalTimestamp,
    OnNoMatch,
    can_move,
    starts_at_latest,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Set as AbstractSet

    from ...domain.options.source import SourceOptions
    from ...domain.topic_partition import TopicPartition
    from .offsets import InitialOffsets, KafkaOffsetReader
    from .planner import RangePlanner

_REFUSALS: Final = (
    NoCommittedOffsetError,
    NoOffsetForTimestampError,
    OffsetsMismatchError,
    TimestampsMismatchError,
    TopicOffsetsMismatchError,
)


@final
class FirstBatch:
    """Where a stream's first batch starts and ends.

    Spark logs the end of each batch, but not the start of the first one. If the first batch fails
    and there is no log of initial offsets, a new process has to derive the start from the end. So:

    - A partition that starts at its latest offset also ends there in the first batch.
    - A partition that is added while the first batch is planned is left to the next batch. If there
      is no other, the first batch ends where the added ones begin.
    - Other starts are determined again, from the partitions of the logged end alone.
    """

    def __init__(
        self,
        initial_offsets: InitialOffsets,
        offset_reader: KafkaOffsetReader,
        planner: RangePlanner,
        options: SourceOptions,
    ) -> None:
        self._initial_offsets = initial_offsets
        self._offset_reader = offset_reader
        self._planner = planner
        self._limit = options.starting_offsets
        self._refusal: Exception | None = None
        self._end: PartitionOffsets | None = None

    def start(self) -> PartitionOffsets:
        """Return the initial offsets; no offsets if the options no longer match the partitions.

        An engine also asks for them to run a logged first batch again, which such options do not
        prevent: ``check`` raises the error if the batch is new.
        """
        self._refusal = None
        try:
            return self._initial_offsets.get()
        except _REFUSALS as error:
            self._refusal = error
            return PartitionOffsets()

    def check(self, start: PartitionOffsets) -> None:
        """Raise the error of ``start()`` if a new batch is to begin at what it returned."""
        if self._refusal is not None and not start:
            raise self._refusal

    def starts_at(self, start: PartitionOffsets) -> bool:
        """Return whether a batch from ``start`` may be the first one: none may be committed yet."""
        return start == self._initial_offsets.found

    def end(self, start: PartitionOffsets, end: PartitionOffsets) -> PartitionOffsets:
        """Return the end of a new batch; a first one without a stored start may end sooner."""
        is_first = self._end is None and self.starts_at(start)
        if is_first and not self._initial_offsets.are_stored:
            at_end = self._initial_offsets.at_end
            kept = PartitionOffsets(
                (partition, start[partition] if partition in at_end else offset)
                for partition, offset in end.items()
                if partition in start
            )
            end = kept or self._offset_reader.earliest(end.keys())
        # An engine logs no batch without partitions: the next one is the first.
        self._end = end or None
        return end

    def start_as_of(self, start: PartitionOffsets, end: PartitionOffsets) -> PartitionOffsets:
        """Return the start of a batch; derive it for a first batch that another process planned.

        :raises DataLossError: if it cannot be derived and ``failOnDataLoss`` is true.
        """
        is_first = start == (PartitionOffsets() if self._refusal else self._initial_offsets.known)
        if end == self._end or not is_first:
            return start
        begin = self._found_again(start, end)
        moved = self._moved(begin, end)
        self._report_unknown(begin, end, moved)
        return begin.merge(end.restrict(moved))

    def _report_unknown(
        self, begin: PartitionOffsets, end: PartitionOffsets, moved: AbstractSet[TopicPartition]
    ) -> None:
        group_id: str | None = None
        match self._limit:
            case CommittedOffsets(group_id):
                unknown = moved - self._initial_offsets.at_end
            case GlobalTimestamp(on_no_match=on_no_match) | ByTimestamp(on_no_match=on_no_match):
                unknown = self._deleted(begin, end, on_no_match)
            case _:
                return
        if unknown:
            self._planner.report(first_batch_start_unknown(unknown, group_id))

    def _deleted(
        self, begin: PartitionOffsets, end: PartitionOffsets, on_no_match: OnNoMatch
    ) -> AbstractSet[TopicPartition]:
        """Return the partitions whose first record since a time may have been deleted.

        No record before the end of the batch matches the time now. One did when the batch was
        planned if that was required. Otherwise the batch may have been empty. The records that are
        left before its end show that: deleted ones are older still.
        """
        if not self._is_found_again:
            return frozenset()
        suspects = [part for part, until in end.items() if 0 < until <= begin.get(part, until)]
        earliest = self._offset_reader.earliest(suspects)
        is_required = on_no_match is OnNoMatch.ERROR
        return {part for part, at in earliest.items() if at >= (1 if is_required else end[part])}

    def _found_again(self, start: PartitionOffsets, end: PartitionOffsets) -> PartitionOffsets:
        if self._refusal is not None:
            return self._offset_reader.start_of(end.keys())
        # Partitions that only this process has found are new, and not deleted.
        return start.restrict(end) if self._initial_offsets.found is not None else start

    def _moved(
        self, begin: Mapping[TopicPartition, int], end: PartitionOffsets
    ) -> AbstractSet[TopicPartition]:
        """Return the partitions that the options no longer start where the batch started.

        Those that start at their latest offset never do: that offset was the end of the batch, and
        is lower now if a broker lags or the topic was created again.
        """
        at_end = {partition for partition in end if self._starts_at_end(partition)}
        moved = {
            partition
            for partition, until in end.items()
            if partition not in at_end and self._has_moved(partition, begin, until)
        }
        if moved and not (self._is_found_again and self._is_in_log):
            # An offset that the log does not reach is of a topic that was created again since, and
            # the planner reports partitions that are gone.
            known = PartitionOffsets((each, begin.get(each, 0)) for each in moved)
            latest = self._offset_reader.latest(known)
            moved = {each for each in moved & latest.keys() if known[each] <= latest[each]}
        return at_end | moved

    @property
    def _is_in_log(self) -> bool:
        """Whether the log decides where the options start."""
        return not isinstance(self._limit, CommittedOffsets)

    def _starts_at_end(self, partition: TopicPartition) -> bool:
        return self._is_found_again and (
            starts_at_latest(self._limit, partition) or partition in self._initial_offsets.at_end
        )

    def _has_moved(
        self, partition: TopicPartition, begin: Mapping[TopicPartition, int], until: int
    ) -> bool:
        """Return whether the options no longer lead to where the batch started, but behind it."""
        offset = begin.get(partition)
        is_behind = self._refusal is not None if offset is None else offset > until
        # Only retention moves the earliest offset, and the planner reports that loss.
        is_earliest = partition in self._initial_offsets.at_start
        return is_behind and not is_earliest and can_move(self._limit, partition)

    @property
    def _is_found_again(self) -> bool:
        """Whether this process has determined the start, which is not read from the log."""
        return self._refusal is not None or self._initial_offsets.found is not None
