"""The offsets that a command names for the partitions of a checkpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from ...domain.errors import partition_set
from ...domain.partition_offsets import EARLIEST, LATEST, PartitionOffsets
from ...domain.reading.offset_limits import Specific
from ..errors import UnusableOffsetsError

if TYPE_CHECKING:
    from ...domain.reading.offset_limits import StartingOffsets
    from ..reading.offset_reader import KafkaOffsetReader


@final
class OffsetTargets:
    """Resolves offsets in Kafka, of the partitions that a reader has assigned."""

    def __init__(self, offset_reader: KafkaOffsetReader) -> None:
        self._offset_reader = offset_reader

    def resolve(self, limit: StartingOffsets) -> PartitionOffsets:
        """Return the offsets of a limit, without partitions that Kafka does not have.

        ``Specific`` may name some of the partitions only.

        :raises UnusableOffsetsError: if it names other partitions, or offsets that Kafka does not
            have.
        :raises NoCommittedOffsetError: if a partition has no committed offset.
        """
        named = self._named(limit) if isinstance(limit, Specific) else self._of_all(limit)
        found = self._offset_reader.resolve_open(named)
        self._check(found)
        return found

    def _of_all(self, limit: StartingOffsets) -> PartitionOffsets:
        return self._offset_reader.unresolved(limit, "start")

    def _named(self, specific: Specific) -> PartitionOffsets:
        known = self._offset_reader.partitions()
        topics = dict(specific.topics)
        unknown = specific.offsets.keys() - known
        missing = topics.keys() - {partition.topic for partition in known}
        if unknown or missing:
            names = partition_set(unknown) if unknown else ", ".join(sorted(missing))
            raise UnusableOffsetsError(
                f"the checkpoint or Kafka does not have {names}",
                "Name only partitions that 'pyspark-kafka offsets show' lists and Kafka has",
            )
        return specific.offsets.merge(
            {partition: topics[partition.topic] for partition in known if partition.topic in topics}
        )

    def _check(self, found: PartitionOffsets) -> None:
        earliest, latest = (
            self._offset_reader.resolve_open(PartitionOffsets(dict.fromkeys(found, end)))
            for end in (EARLIEST, LATEST)
        )
        for partition, offset in found.items():
            if not earliest[partition] <= offset <= latest[partition]:
                raise UnusableOffsetsError(
                    f"offset {offset} of {partition} is not in Kafka, which has offsets "
                    f"{earliest[partition]} to {latest[partition]}",
                    "Choose an offset in between, or 'earliest' or 'latest'",
                )
