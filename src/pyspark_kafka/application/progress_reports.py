"""What a stream tells of the batches that it has done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from ..domain.errors import PysparkKafkaError
from ..domain.lag import Lag

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..domain.partition_offsets import PartitionOffsets
    from ..ports.clock import Clock
    from ..ports.offset_fetcher import OffsetFetcher
    from ..ports.source_events import SourceEvents

RETRY_MS: Final = 60_000
"""How long the same offsets are not committed again after a failure: triggers are 10 ms apart."""


@final
class ProgressReports:
    """Reports lag, and commits next offsets for a consumer group if the options name one.

    The group's offsets are a copy for the tools that look there: what was read stands in the
    engine's own log, so that a failure to commit is reported and nothing more.
    """

    def __init__(
        self,
        fetcher: Callable[[], OffsetFetcher],
        group_id: str | None,
        clock: Clock,
        events: SourceEvents,
    ) -> None:
        """Take a way to a fetcher, which only a group needs."""
        self._fetcher = fetcher
        self._group_id = group_id
        self._clock = clock
        self._events = events
        self._reported: PartitionOffsets | None = None
        self._retry_at_ms: int | None = None

    def done(self, end: PartitionOffsets, latest: PartitionOffsets | None) -> None:
        """Take where the last batch that is done ended, and the latest offsets that are known.

        May be told the same more than once: it is reported once, and committed until that succeeds.
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
