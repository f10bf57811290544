"""The end of the next batch under its read limits."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, final

from ...domain.partition_offsets import PartitionOffsets
from ...domain.reading.admission import (
    ReadAllAvailable,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
    TriggerDelay,
    limits_of,
    rate_limit,
    rate_limit_bytes,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ...domain.reading.admission import ReadLimit, SingleReadLimit
    from ...ports.clock import Clock
    from .offset_reader import KafkaOffsetReader
    from .record_sizes import RecordSizes

log = logging.getLogger("pyspark_kafka")


@final
class Admission:
    """Applies read limits as ``latestOffset`` of Spark's ``KafkaMicroBatchStream`` does.

    ``ReadAllAvailable`` takes precedence over the others, as Trigger.Once needs; then
    ``ReadMinRows`` may delay the batch; then the limits of rows and bytes cut it, the lower one for
    each partition.
    """

    def __init__(self, offset_reader: KafkaOffsetReader, clock: Clock, sizes: RecordSizes) -> None:
        self._offset_reader = offset_reader
        self._clock = clock
        self._sizes = sizes
        self._delay = TriggerDelay()

    def end_of_batch(
        self, start: PartitionOffsets, latest: PartitionOffsets, limit: ReadLimit
    ) -> PartitionOffsets:
        """Return the end of a batch from ``start``; ``start`` itself if the batch is delayed."""
        limits = limits_of(limit)
        if any(isinstance(single, ReadAllAvailable) for single in limits):
            return latest
        if any(self._is_delayed(start, latest, single) for single in limits):
            return start
        begin = start.merge(self._offset_reader.earliest(latest.keys() - start.keys()))
        ends = [self._cut(begin, latest, single) for single in limits]
        return _lowest([latest, *ends])

    def _is_delayed(
        self, start: PartitionOffsets, latest: PartitionOffsets, limit: SingleReadLimit
    ) -> bool:
        if not isinstance(limit, ReadMinRows):
            return False
        decision = self._delay.decide(
            self._clock.now_ms(), limit.min_rows, limit.max_trigger_delay_ms, latest, start
        )
        self._delay = decision.next
        if decision.message:
            log.debug("%s", decision.message)
        return decision.is_delayed

    def _cut(
        self, begin: PartitionOffsets, latest: PartitionOffsets, limit: SingleReadLimit
    ) -> PartitionOffsets:
        match limit:
            case ReadMaxRows(max_rows):
                return rate_limit(max_rows, begin, latest)
            case ReadMaxBytes(max_bytes):
                sizes = self._sizes.measure(begin, latest)
                return rate_limit_bytes(max_bytes, begin, latest, sizes)
            case _:
                return latest


def _lowest(ends: Iterable[PartitionOffsets]) -> PartitionOffsets:
    first, *others = ends
    return PartitionOffsets(
        (partition, min([offset, *(other[partition] for other in others)]))
        for partition, offset in first.items()
    )
