"""What a stream tells of the batches that it has done."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from ..domain.errors import PysparkKafkaError
from ..domain.lag import Lag

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..domain.partition_offsets import PartitionOffsets
    from ..ports.offset_fetcher import OffsetFetcher
    from ..ports.source_events import SourceEvents


@final
class ProgressReports:
    """Reports lag, and commits next offsets for a consumer group if the options name one.

    The group's offsets are a copy for the tools that look there: what was read stands in the
    engine's own log, so that a failure to commit is reported and nothing more.
    """

    def __init__(
        self, fetcher: Callable[[], OffsetFetcher], group_id: str | None, events: SourceEvents
    ) -> None:
        """Take a way to a fetcher, which only a group needs."""
        self._fetcher = fetcher
        self._group_id = group_id
        self._events = events

    def committed(self, end: PartitionOffsets, latest: PartitionOffsets | None) -> None:
        """Report a batch that the engine has committed, and the latest offsets that are known."""
        if latest:
            self._events.lag_measured(Lag.between(latest, end))
        if self._group_id is None:
            return
        try:
            self._fetcher().commit(self._group_id, end)
        except PysparkKafkaError as error:
            self._events.group_commit_failed(self._group_id, error)
