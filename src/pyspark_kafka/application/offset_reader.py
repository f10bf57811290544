"""Learning offsets with patience: Spark's ``KafkaOffsetReader`` over the port."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar, final

from ..domain.errors import KafkaRequestError, StartingOffsetsError, UnknownTopicError
from ..domain.offset_limits import Earliest, Latest, Specific
from ..domain.partition_offsets import EARLIEST, LATEST, PartitionOffsets

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from ..domain.offset_limits import OffsetLimit
    from ..domain.options import SourceOptions
    from ..domain.topic_partition import TopicPartition
    from ..ports.clock import Clock
    from ..ports.offset_fetcher import OffsetFetcher
    from ..ports.source_events import SourceEvents

T = TypeVar("T")


@final
class KafkaOffsetReader:
    """Fetches partitions and offsets of one subscription, trying again as the options say.

    What a broker refuses is tried ``fetchOffset.numRetries`` times in all, every
    ``fetchOffset.retryIntervalMs``. A broker that cannot be reached is not tried again: the
    client has spent the time that it was given.
    """

    def __init__(
        self, fetcher: OffsetFetcher, options: SourceOptions, clock: Clock, events: SourceEvents
    ) -> None:
        self._fetcher = fetcher
        self._subscription = options.subscription
        self._attempts = options.fetch_attempts
        self._interval_ms = options.fetch_retry_interval_ms
        self._clock = clock
        self._events = events

    def __str__(self) -> str:
        return str(self._subscription)

    def partitions(self) -> frozenset[TopicPartition]:
        """Give the partitions that the subscription stands for now."""
        return self._retrying(lambda: self._fetcher.partitions(self._subscription))

    def earliest(self, partitions: Collection[TopicPartition]) -> PartitionOffsets:
        """Give the first offset of each of ``partitions`` that exists."""
        if not partitions:
            return PartitionOffsets()
        return self._retrying(lambda: self._fetcher.earliest(partitions))

    def latest(self, known: PartitionOffsets) -> PartitionOffsets:
        """Give the end of every partition of the subscription.

        An answer that lacks a partition of ``known``, or ends before what is known of it, may
        come from a broker that lags: it is asked for again, and only the last attempt's answer
        is taken as Kafka's word.
        """
        for attempt in range(1, self._attempts):
            offsets = self._retrying(self._fetch_latest)
            doubt = _doubt(known, offsets)
            if not doubt:
                return offsets
            self._events.offsets_retried(attempt, self._attempts, doubt)
            self._clock.sleep_ms(self._interval_ms)
        return self._retrying(self._fetch_latest)

    def resolve(self, limit: OffsetLimit) -> PartitionOffsets:
        """Turn a limit into an offset of the log for every partition of the subscription.

        :raises StartingOffsetsError: if it names other partitions than there are.
        """
        partitions = self.partitions()
        match limit:
            case Earliest():
                return self.earliest(partitions)
            case Latest():
                return self._retrying(lambda: self._fetcher.latest(partitions))
            case Specific(offsets):
                require_same_partitions(offsets, partitions)
                return self._resolve_specific(offsets)

    def _resolve_specific(self, offsets: PartitionOffsets) -> PartitionOffsets:
        to_earliest = [partition for partition, offset in offsets.items() if offset == EARLIEST]
        to_latest = [partition for partition, offset in offsets.items() if offset == LATEST]
        resolved = offsets.merge(self.earliest(to_earliest))
        if not to_latest:
            return resolved
        return resolved.merge(self._retrying(lambda: self._fetcher.latest(to_latest)))

    def _fetch_latest(self) -> PartitionOffsets:
        return self._fetcher.latest(self._fetcher.partitions(self._subscription))

    def _retrying(self, fetch: Callable[[], T]) -> T:
        for attempt in range(1, self._attempts):
            try:
                return fetch()
            except (KafkaRequestError, UnknownTopicError) as error:
                self._events.offsets_retried(attempt, self._attempts, str(error))
                self._clock.sleep_ms(self._interval_ms)
        return fetch()


def require_same_partitions(
    specified: PartitionOffsets, assigned: frozenset[TopicPartition]
) -> None:
    """Hold the partitions that an option names against those that Kafka has.

    :raises StartingOffsetsError: if they are not the same.
    """
    if specified.keys() != assigned:
        raise StartingOffsetsError(specified.keys(), assigned)


def _doubt(known: PartitionOffsets, offsets: PartitionOffsets) -> str:
    missing = sorted(known.keys() - offsets.keys())
    if missing:
        return f"no latest offset for {', '.join(map(str, missing))}"
    behind = [
        f"{partition} ends at {offsets[partition]}, before the known offset {offset}"
        for partition, offset in known.items()
        if offsets[partition] < offset
    ]
    return "; ".join(behind)
