"""Reports of a stream's progress."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from ...domain.errors import PysparkKafkaError
from ...domain.lag.lag import Lag

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...domain.partition_offsets import PartitionOffsets
    from ...ports.clock import Clock
    from ...ports.reading.offset_fetcher import OffsetFetcher
    from ...ports.reading.source_events import SourceEvents

RETRY_MS: Final = 60_000
"""The pause before a failed commit is retried: triggers may be 10 ms apart."""


@final
class ProgressReports:
    """Reports lag, and commits offsets for a consumer group if the options name one.

    The group's offsets are a copy for monitoring tools: the engine's own log counts, so that a
    failed commit is only reported.
    """

    def __init__(
        self,
        fetcher: Callable[[], OffsetFetcher],
        group_id: str | None,
        clock: Clock,
        events: SourceEvents,
    ) -> None:
        """Take a factory of a fetcher, which only a consumer group needs."""
        self._fetcher = fetcher
        self._group_id = group_id
        self._clock = clock
        self._events = events
        self._reported: PartitionOffsets | None = None
        self._retry_at_ms: int | None = None

    def done(self, end: PartitionOffsets, latest: PartitionOffsets | None) -> None:
        """Take the end of the last committed batch, and the known latest offsets.

        Repeated calls with the same end report it once, and commit it until that succeeds.
        """
        if end != self._reported:
            self._reported = end
            if latest and self._events.takes_lag:
                self._events.lag_measured(Lag.between(latest, end))
            self._commit(end)
        elif self._retry_at_ms is not None and self._clock.now_ms() >= self._retry_at_ms:
            self._commit(end)

    def _commit(self, end: PartitionOffsets) -> None:
        self._retry_at_ms = None
        if self._group_id is None:
            return
        try:
            self._fetcher().commit(self._group_id, end)
        except PysparkKafkaError as error:
            self._retry_at_ms = self._clock.now_ms() + RETRY_MS
            self._events.group_commit_failed(self._group_id, error)
