"""The start of a stream of the legacy source, checked against the brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from ...domain.partition_offsets import EARLIEST, LATEST, PartitionOffsets
from ...domain.reading import data_loss
from ...domain.reading.errors import StreamOffsetsMismatchError
from ...domain.reading.offset_limits import Specific

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...domain.options.source import SourceOptions
    from ...domain.topic_partition import TopicPartition
    from .offsets import InitialOffsets, KafkaOffsetReader
    from .planner import RangePlanner


@final
class VerifiedStart:
    """The start of a stream: ``initialPartitionOffsets`` of Spark's ``KafkaSource``."""

    def __init__(
        self,
        offset_reader: KafkaOffsetReader,
        planner: RangePlanner,
        initial_offsets: InitialOffsets,
        options: SourceOptions,
    ) -> None:
        self._offset_reader = offset_reader
        self._planner = planner
        self._initial_offsets = initial_offsets
        self._options = options

    def get(self) -> PartitionOffsets:
        """Return the stored offsets, or else resolve, store and return ``startingOffsets``.

        :raises DataLossError: as ``fetch_and_verify``.
        :raises MetadataLogError: if the log of initial offsets cannot be read or written.
        """
        return self._initial_offsets.get(self._find)

    def fetch_and_verify(self, specific: PartitionOffsets) -> PartitionOffsets:
        """Resolve -2 and -1, and reset offsets that no broker holds to the earliest one.

        As a consumer with ``auto.offset.reset=earliest``, which Spark's driver has.

        :raises DataLossError: if an offset is reset and ``failOnDataLoss`` is true.
        """
        found = self._offset_reader.resolve_open(specific)
        reset = PartitionOffsets(self._not_held(specific))
        for partition, earliest in reset.items():
            loss = data_loss.start_offset_reset(partition, specific[partition], earliest)
            self._planner.report(loss)
        return found.merge(reset)

    def _find(self) -> PartitionOffsets:
        limit = self._options.starting_offsets
        offsets = self._offset_reader.unresolved(limit, "start", StreamOffsetsMismatchError)
        if isinstance(limit, Specific):
            return self.fetch_and_verify(offsets)
        return self._offset_reader.resolve_open(offsets)

    def _not_held(self, specific: PartitionOffsets) -> Iterator[tuple[TopicPartition, int]]:
        """Yield the earliest offset of each partition that does not hold the given one."""
        given = {partition: offset for partition, offset in specific.items() if offset >= 0}
        earliest, latest = (
            self._offset_reader.resolve_open(PartitionOffsets(dict.fromkeys(given, end)))
            for end in (EARLIEST, LATEST)
        )
        for partition, offset in given.items():
            # Under read_committed the latest offset is the last stable one: there are records of
            # open transactions after it.
            is_after_end = offset > latest[partition] and not self._options.reads_committed_only
            if offset < earliest[partition] or is_after_end:
                yield partition, earliest[partition]
