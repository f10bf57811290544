"""Sampling the size of records, for the limit in bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from ...domain.errors import PysparkKafkaError
from ...domain.reading.ranges import OffsetRange
from ...domain.reading.records import Projection

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ...domain.partition_offsets import PartitionOffsets
    from ...domain.topic_partition import TopicPartition
    from ...ports.reading.record_reader import RecordReader

SAMPLE_SIZE: Final = 100
"""The number of offsets to read in a partition."""

MAX_SAMPLED_PARTITIONS: Final = 8
"""The number of partitions to sample before a batch; others keep their last size."""

CONTENT: Final = Projection(("key", "value", "headers"))


@final
class RecordSizes:
    """Reads a few records at the start of a batch, and keeps their average size by partition.

    The driver gets no sizes from its tasks, so it samples records itself: first partitions that
    were never sampled, then those with the oldest sample.
    """

    def __init__(self, reader: Callable[[], RecordReader]) -> None:
        """Take a factory of a reader, which only a query with a limit in bytes needs."""
        self._reader = reader
        self._bytes_per_record: dict[TopicPartition, float] = {}
        # In insertion order: the oldest sample is first.
        self._sampled: dict[TopicPartition, None] = {}

    def measure(
        self, begin: Mapping[TopicPartition, int], until: PartitionOffsets
    ) -> Mapping[TopicPartition, float]:
        """Return the average bytes per record of each partition that was ever sampled."""
        waiting = [part for part, end in until.items() if part in begin and begin[part] < end]
        age = {part: position for position, part in enumerate(self._sampled)}
        for part in sorted(waiting, key=lambda part: age.get(part, -1))[:MAX_SAMPLED_PARTITIONS]:
            self._sample(
                OffsetRange(part, begin[part], min(begin[part] + SAMPLE_SIZE, until[part]))
            )
        return self._bytes_per_record

    def _sample(self, offset_range: OffsetRange) -> None:
        self._sampled.pop(offset_range.partition, None)
        self._sampled[offset_range.partition] = None
        try:
            batches = list(self._reader().read(offset_range, CONTENT))
        except PysparkKafkaError:
            # The batch itself reports what cannot be read.
            return
        rows = sum(batch.num_rows for batch in batches)
        if rows:
            size = sum(batch.nbytes for batch in batches)
            self._bytes_per_record[offset_range.partition] = size / rows
