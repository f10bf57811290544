"""Measuring lag in records, without transaction markers and aborted records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from ...domain.errors import PysparkKafkaError, UnknownTopicError
from ...domain.lag.lag import PartitionLag, SourceLag
from ...domain.reading.ranges import OffsetRange
from ...domain.reading.records import Projection
from ...domain.subscription import Assign, Subscribe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ...domain.partition_offsets import PartitionOffsets
    from ...domain.subscription import Subscription
    from ...domain.topic_partition import TopicPartition
    from ...ports.clock import Clock
    from ...ports.reading import OffsetFetcher, RecordReader

MAX_COUNTED: Final = 1_000
"""The largest lag of a partition, in offsets, whose records are counted."""

COUNT_TIMEOUT_MS: Final = 5_000
"""How long one measurement counts records; the remaining partitions are given in offsets."""

_OFFSETS_ONLY: Final = Projection(("offset",))

_Span = tuple[int, int]


@final
class LagMeter:
    """Measures the lag of a query in Kafka.

    Transaction markers and aborted records have offsets too: a query that has read every record
    still has a lag in offsets. Up to ``max_counted`` offsets, the records are counted by reading
    them; a count is cached while both offsets stay the same. One thread at a time may use it.
    """

    def __init__(
        self,
        fetcher: OffsetFetcher,
        reader: Callable[[], RecordReader],
        clock: Clock,
        subscription: Subscription,
        max_counted: int = MAX_COUNTED,
        count_timeout_ms: int = COUNT_TIMEOUT_MS,
    ) -> None:
        """Take a fetcher, and a factory of a reader, which only counting needs.

        ``subscription`` matters if it assigns partitions: the query does not read the others of
        these topics. ``max_counted`` is in offsets of a partition, 0 turns counting off;
        ``count_timeout_ms`` limits one measurement, except for the last request. The time begins
        anew with the first batch of all: kernels may be compiled before.
        """
        self._fetcher = fetcher
        self._reader = reader
        self._clock = clock
        self._assigned = (
            subscription.partitions if isinstance(subscription, Assign) else frozenset()
        )
        self._max_counted = max_counted
        self._count_timeout_ms = count_timeout_ms
        self._deadline_ms = 0
        self._has_read = False
        self._counts: Mapping[TopicPartition, tuple[_Span, int]] = {}

    def measure(self, consumed: PartitionOffsets) -> SourceLag:
        """Return the lag of a query that has read up to the offsets ``consumed``.

        Other partitions of its topics count from their earliest offset on, unless partitions are
        assigned. Partitions that no longer exist are left out.

        :raises BrokerUnreachableError: if no broker answers.
        :raises KafkaRequestError: if a broker refuses the request.
        """
        [lag] = self.measure_all([consumed])
        return lag

    def measure_all(self, consumed: Iterable[PartitionOffsets]) -> list[SourceLag]:
        """Return the lag of several sources, as ``measure`` does for one."""
        self._start_time()
        counts: dict[TopicPartition, tuple[_Span, int]] = {}
        lags = [
            SourceLag.of(self._with_count(each, counts) for each in self._in_offsets(one))
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
        existing = self._fetcher.partitions(Assign(assigned)) if assigned else assigned
        return existing | self._partitions_of(topics) if topics else existing

    def _partitions_of(self, topics: set[str]) -> frozenset[TopicPartition]:
        try:
            return self._fetcher.partitions(Subscribe(tuple(sorted(topics))))
        except UnknownTopicError:
            if len(topics) == 1:
                return frozenset()
            return frozenset().union(*(self._partitions_of({topic}) for topic in topics))

    def _start_time(self) -> None:
        self._deadline_ms = self._clock.now_ms() + self._count_timeout_ms

    def _with_count(
        self, lag: PartitionLag, counts: dict[TopicPartition, tuple[_Span, int]]
    ) -> PartitionLag:
        if lag.is_exact or lag.lag > self._max_counted:
            return lag
        span = lag.latest - lag.lag, lag.latest
        known = self._counts.get(lag.partition)
        count = known[1] if known and known[0] == span else self._count(lag, span)
        if count is None:
            return lag
        counts[lag.partition] = span, count
        return lag.counted(count)

    def _count(self, lag: PartitionLag, span: _Span) -> int | None:
        """Return the number of records of a span; ``None`` if that fails or takes too long."""
        if self._clock.now_ms() >= self._deadline_ms:
            return None
        count = 0
        try:
            for batch in self._reader().read(OffsetRange(lag.partition, *span), _OFFSETS_ONLY):
                if not self._has_read:
                    self._has_read = True
                    self._start_time()
                if self._clock.now_ms() >= self._deadline_ms:
                    return None
                count += batch.num_rows
        except PysparkKafkaError:
            return None
        return count
