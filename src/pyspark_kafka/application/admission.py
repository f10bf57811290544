"""How much of what Kafka has the next batch takes."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, final

from ..domain.partition_offsets import PartitionOffsets
from ..domain.rate_limit import rate_limit, rate_limit_bytes
from ..domain.read_limits import (
    ReadAllAvailable,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
    limits_of,
)
from ..domain.trigger_delay import TriggerDelay

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..domain.read_limits import ReadLimit, SingleReadLimit
    from ..ports.clock import Clock
    from .offset_reader import KafkaOffsetReader
    from .record_sizes import RecordSizes

log = logging.getLogger("pyspark_kafka")


@final
class Admission:
    """Applies read limits as ``KafkaMicroBatchStream.latestOffset`` does.

    ``ReadAllAvailable`` overrules the others, as Trigger.Once needs; then ``ReadMinRows`` may
    hold the batch back; then the limits on rows and bytes cut it, the stricter for each partition.
    """

    def __init__(self, offset_reader: KafkaOffsetReader, clock: Clock, sizes: RecordSizes) -> None:
        self._offset_reader = offset_reader
        self._clock = clock
        self._sizes = sizes
        self._delay = TriggerDelay()

    def end_of_batch(
        self, start: PartitionOffsets, latest: PartitionOffsets, limit: ReadLimit
    ) -> PartitionOffsets:
        """Give where a batch from ``start`` ends; ``start`` itself if it has to wait."""
        limits = limits_of(limit)
        if any(isinstance(single, ReadAllAvailable) for single in limits):
            return latest
        if any(self._has_to_wait(start, latest, single) for single in limits):
            return start
        begin = start.merge(self._offset_reader.earliest(latest.keys() - start.keys()))
        ends = [self._cut(begin, latest, single) for single in limits]
        return _strictest([latest, *ends])

    def _has_to_wait(
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
            case ReadMaxRows(rows):
                return rate_limit(rows, begin, latest)
            case ReadMaxBytes(most):
                return rate_limit_bytes(most, begin, latest, self._sizes.measure(begin, latest))
            case _:
                return latest


def _strictest(ends: Iterable[PartitionOffsets]) -> PartitionOffsets:
    first, *others = ends
    return PartitionOffsets(
        (partition, min([offset, *(other[partition] for other in others)]))
        for partition, offset in first.items()
    )
