"""The source of a continuous query, on the driver's side: Spark's ``KafkaContinuousStream``."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from ...domain.partition_offsets import PartitionOffsets

if TYPE_CHECKING:
    from ...domain.options.source import SourceOptions
    from ...domain.topic_partition import TopicPartition
    from ..reading.offsets import InitialOffsets, KafkaOffsetReader
    from ..reading.planner import RangePlanner
    from ..reading.stream import ProgressReports


@final
class KafkaContinuousStream:
    """Knows where partitions begin, and when there are others than the query reads."""

    def __init__(
        self,
        offset_reader: KafkaOffsetReader,
        planner: RangePlanner,
        initial_offsets: InitialOffsets,
        progress: ProgressReports,
        options: SourceOptions,
    ) -> None:
        self._offset_reader = offset_reader
        self._planner = planner
        self._initial_offsets = initial_offsets
        self._progress = progress
        self._options = options
        self._known: frozenset[TopicPartition] = frozenset()

    def __str__(self) -> str:
        return f"KafkaContinuous[{self._offset_reader}]"

    def initial_offset(self) -> PartitionOffsets:
        """Return the offsets at which a query without a checkpoint starts (``startingOffsets``).

        They are stored before they are returned, so that a restart begins there as well.
        """
        return self._initial_offsets.get()

    def plan_input_partitions(self, start: PartitionOffsets) -> PartitionOffsets:
        """Return the offsets from which the current partitions are read.

        New partitions begin at their earliest offset, which is reported if it is not 0; deleted
        ones are left out.

        :raises DataLossError: if partitions were deleted, or records of new ones are gone, and
            ``failOnDataLoss`` is true.
        """
        current = self._offset_reader.partitions()
        self._known = current
        added = self._planner.start_of_added(start, current)
        self._planner.report_deleted(start, current)
        return start.restrict(current).merge(added)

    def needs_reconfiguration(self) -> bool:
        """Return whether there are other partitions than those that were planned last."""
        return self._offset_reader.partitions() != self._known

    def latest_offset(self) -> PartitionOffsets:
        """Return the latest offset of every partition of the subscription."""
        return self._offset_reader.latest(PartitionOffsets())

    def commit(self, end: PartitionOffsets, latest: PartitionOffsets | None = None) -> None:
        """Report that an epoch that ends at ``end`` is committed."""
        self._progress.done(end, latest)

    @property
    def fails_on_data_loss(self) -> bool:
        """Whether a loss of data fails the query (``failOnDataLoss``)."""
        return self._options.fail_on_data_loss

    def stop(self) -> None:
        """Close the connections to Kafka. A second call does nothing."""
        self._offset_reader.close()
