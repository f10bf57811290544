"""Measuring how many records are left to read, without what no reader ever gets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from ..domain.errors import PysparkKafkaError, UnknownTopicError
from ..domain.lag import PartitionLag, SourceLag
from ..domain.offset_range import OffsetRange
from ..domain.projection import Projection
from ..domain.subscription import Assign, Subscribe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ..domain.partition_offsets import PartitionOffsets
    from ..domain.subscription import Subscription
    from ..domain.topic_partition import TopicPartition
    from ..ports.clock import Clock
    from ..ports.offset_fetcher import OffsetFetcher
    from ..ports.record_reader import RecordReader

MAX_COUNTED: Final = 1_000
"""Up to so many offsets that are left in a partition, its records are counted."""

COUNTING_MS: Final = 5_000
"""How long one measurement counts; what is left over then is given in offsets."""

_OFFSETS_ONLY: Final = Projection(("offset",))

_Span = tuple[int, int]


@final
class LagMeter:
    """Asks Kafka how far a query is behind.

    A transaction's markers take offsets, and so do the records of an aborted one: who has read
    everything is still some offsets behind. Where few offsets are left, the records among them are
    counted by reading them; a count is kept for as long as both ends stay where they are. One
    thread at a time may use it.
    """

    def __init__(
        self,
        fetcher: OffsetFetcher,
        reader: Callable[[], RecordReader],
        clock: Clock,
        subscription: Subscription,
        most_counted: int = MAX_COUNTED,
        counting_ms: int = COUNTING_MS,
    ) -> None:
        """Take a fetcher, and a way to a reader, which only counting needs.

        ``subscription`` matters where it assigns partitions: others of these topics are not read.
        ``most_counted`` is in offsets by partition, 0 counts nowhere; ``counting_ms`` bounds one
        measurement, but for what a broker takes to answer the last request.
        """
        self._fetcher = fetcher
        self._reader = reader
        self._clock = clock
        self._assigned = (
            subscription.partitions if isinstance(subscription, Assign) else frozenset()
        )
        self._most_counted = most_counted
        self._counting_ms = counting_ms
        self._counts: Mapping[TopicPartition, tuple[_Span, int]] = {}

    def measure(self, consumed: PartitionOffsets) -> SourceLag:
        """Measure the lag of a query that has read up to the offsets ``consumed``.

        Partitions that its topics have besides are taken to be read from their first offset on,
        unless partitions are assigned. Those that do not exist any more are left out.

        :raises BrokerUnreachableError: if no broker answers.
        :raises KafkaRequestError: if a broker does not tell the offsets.
        """
        [lag] = self.measure_all([consumed])
        return lag

    def measure_all(self, consumed: Iterable[PartitionOffsets]) -> list[SourceLag]:
        """Measure the lag of several sources at once, as ``measure`` does."""
        deadline = self._clock.now_ms() + self._counting_ms
        counts: dict[TopicPartition, tuple[_Span, int]] = {}
        lags = [
            SourceLag.of(self._counted(each, deadline, counts) for each in self._in_offsets(one))
            for one in consumed
        ]
        self._counts = counts
        return lags

    def _in_offsets(self, consumed: PartitionOffsets) -> list[PartitionLag]:
        partitions = self._partitions(consumed)
        if not partitions:
            return []
        earliest = self._fetcher.earliest(partitions)
        latest = self._fetcher.latest(partitions)
        return [
            PartitionLag.in_offsets(
                partition, consumed.get(partition, earliest[partition]), offset, earliest[partition]
            )
            for partition, offset in latest.items()
            if partition in earliest
        ]

    def _partitions(self, consumed: PartitionOffsets) -> frozenset[TopicPartition]:
        topics = {partition.topic for partition in consumed}
        assigned = frozenset(each for each in self._assigned if each.topic in topics)
        topics -= {partition.topic for partition in assigned}
        there = self._fetcher.partitions(Assign(assigned)) if assigned else assigned
        return there | self._partitions_of(topics) if topics else there

    def _partitions_of(self, topics: set[str]) -> frozenset[TopicPartition]:
        try:
            return self._fetcher.partitions(Subscribe(tuple(sorted(topics))))
        except UnknownTopicError:
            if len(topics) == 1:
                return frozenset()
            return frozenset().union(*(self._partitions_of({topic}) for topic in topics))

    def _counted(
        self,
        lag: PartitionLag,
        deadline: int,
        counts: dict[TopicPartition, tuple[_Span, int]],
    ) -> PartitionLag:
        if lag.is_exact or lag.lag > self._most_counted:
            return lag
        span = lag.latest - lag.lag, lag.latest
        known = self._counts.get(lag.partition)
        count = known[1] if known and known[0] == span else self._count(lag, span, deadline)
        if count is None:
            return lag
        counts[lag.partition] = span, count
        return lag.counted(count)

    def _count(self, lag: PartitionLag, span: _Span, deadline: int) -> int | None:
        """Count the records of a span; ``None`` if that fails or takes too long."""
        if self._clock.now_ms() >= deadline:
            return None
        count = 0
        try:
            for batch in self._reader().read(OffsetRange(lag.partition, *span), _OFFSETS_ONLY):
                if self._clock.now_ms() >= deadline:
                    return None
                count += batch.num_rows
        except PysparkKafkaError:
            return None
        return count
