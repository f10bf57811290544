"""Triggers of a stream that has nothing to read."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Final, final

from pyspark.sql.streaming.listener import StreamingQueryListener

from pyspark_kafka.ports.clock import Deadline

from .trickle import POLL_SECONDS, TIMEOUT_SECONDS, running

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )

IDLE_EVENTS: Final = "spark.sql.streaming.noDataProgressEventInterval"
"""The pause between two events of idle triggers; 0 for an event of each."""


@contextmanager
def idling(
    spark: SparkSession, source: str, options: Mapping[str, str], triggers: int
) -> Iterator[Sequence[float]]:
    """Yield the times, in seconds, at which so many idle triggers of a stream began.

    :raises RuntimeError: if it has fewer within two minutes.
    """
    listener = _IdleListener()
    spark.streams.addListener(listener)
    frame = spark.readStream.format(source).options(**options).load()
    try:
        with running(frame) as query:
            Deadline.after(TIMEOUT_SECONDS).poll(
                lambda: len(listener.begun) >= triggers or not query.isActive, POLL_SECONDS
            )
            if len(listener.begun) < triggers:
                raise RuntimeError(f"{len(listener.begun)} idle triggers: {query.exception()}")
            yield listener.begun[:triggers]
    finally:
        spark.streams.removeListener(listener)


@final
class _IdleListener(StreamingQueryListener):
    def __init__(self) -> None:
        self.begun: list[float] = []

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        """Do nothing."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """Do nothing."""

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """Remember when the trigger began."""
        self.begun.append(datetime.fromisoformat(event.timestamp).timestamp())

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """Do nothing."""
