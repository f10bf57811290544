"""Monitoring the lag of a query by its checkpoint."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, final

from ...domain.lag.trend import Direction, LagSample, LagTrend, Trend
from ..checkpoints.logs import CheckpointState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...domain.lag.lag import SourceLag
    from ...domain.topic_partition import TopicPartition
    from ...ports.clock import Clock
    from ..checkpoints.logs import QueryCheckpoint
    from .meter import LagMeter


@final
@dataclass(frozen=True, slots=True)
class LagSnapshot:
    """The lag at one time; ``sources`` are the Kafka sources of the committed batch."""

    state: CheckpointState = field(default_factory=CheckpointState)
    sources: Mapping[str, SourceLag] = field(default_factory=dict)
    trend: Trend = field(default_factory=lambda: Trend(Direction.UNKNOWN))

    @property
    def total(self) -> int:
        """The total lag of all sources."""
        return sum(source.lag.total for source in self.sources.values())

    @property
    def is_exact(self) -> bool:
        """Whether the lag counts records, not offsets, in every partition."""
        return all(source.is_exact for source in self.sources.values())

    @property
    def numbers(self) -> tuple[int, ...]:
        """The lag of each partition of each source."""
        return tuple(each.lag for one in self.sources.values() for each in one.partitions)

    @property
    def gone(self) -> tuple[TopicPartition, ...]:
        """Partitions that the query has read and that no longer exist."""
        committed = self.state.committed
        if committed is None:
            return ()
        existing = {each.partition for one in self.sources.values() for each in one.partitions}
        return tuple(sorted(set().union(*committed.offsets.values()) - existing))


@final
class LagMonitor:
    """Compares a checkpoint with Kafka, and keeps samples for the trend."""

    def __init__(self, checkpoint: QueryCheckpoint, meter: LagMeter, clock: Clock) -> None:
        self._checkpoint = checkpoint
        self._meter = meter
        self._clock = clock
        self._trend = LagTrend()

    def snapshot(self) -> LagSnapshot:
        """Return the current lag.

        :raises MetadataLogError: if the checkpoint cannot be read.
        :raises BrokerUnreachableError: if no broker answers.
        :raises KafkaRequestError: if a broker refuses the request.
        """
        state = self._checkpoint.state()
        if state.committed is None:
            return LagSnapshot(state)
        offsets = state.committed.offsets
        measured = self._meter.measure_all(offsets.values())
        sources = dict(zip(offsets, measured, strict=True))
        sample = LagSample(self._clock.now_ms(), state.committed.batch_id, sources)
        return LagSnapshot(state, sources, self._trend.add(sample))
