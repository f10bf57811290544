"""Measuring how many bytes records have, for the limit in bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from ..domain.errors import PysparkKafkaError
from ..domain.offset_range import OffsetRange
from ..domain.projection import Projection

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..domain.partition_offsets import PartitionOffsets
    from ..domain.topic_partition import TopicPartition
    from ..ports.record_reader import RecordReader

SAMPLE: Final = 100
"""How many offsets of a partition are looked at."""

MAX_SAMPLES: Final = 8
"""How many partitions are looked at before one batch; the others keep their last measure."""

CONTENT: Final = Projection(("key", "value", "headers"))


@final
class RecordSizes:
    """Reads a few records at the start of a batch, and remembers their mean size by partition.

    The driver learns nothing of what its tasks read, so it looks for itself. A partition that
    was never looked at comes first, then the one at which the last look is oldest.
    """

    def __init__(self, reader: Callable[[], RecordReader]) -> None:
        """Take a way to a reader, which only a query with a limit in bytes needs."""
        self._reader = reader
        self._bytes_per_record: dict[TopicPartition, float] = {}
        # A dictionary keeps the order in which its keys came: the oldest look is first.
        self._looked: dict[TopicPartition, None] = {}

    def measure(
        self, begin: Mapping[TopicPartition, int], until: PartitionOffsets
    ) -> Mapping[TopicPartition, float]:
        """Give the bytes of a record in each partition that was ever measured."""
        waiting = [part for part, end in until.items() if part in begin and begin[part] < end]
        age = {part: position for position, part in enumerate(self._looked)}
        for part in sorted(waiting, key=lambda part: age.get(part, -1))[:MAX_SAMPLES]:
            self._look(OffsetRange(part, begin[part], min(begin[part] + SAMPLE, until[part])))
        return self._bytes_per_record

    def _look(self, offset_range: OffsetRange) -> None:
        self._looked.pop(offset_range.partition, None)
        self._looked[offset_range.partition] = None
        try:
            batches = list(self._reader().read(offset_range, CONTENT))
        except PysparkKafkaError:
            # What cannot be read is for the batch itself to report.
            return
        rows = sum(batch.num_rows for batch in batches)
        if rows:
            size = sum(batch.get_total_buffer_size() for batch in batches)
            self._bytes_per_record[offset_range.partition] = size / rows
