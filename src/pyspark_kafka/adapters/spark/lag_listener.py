"""A listener of Spark's that tells how far queries are behind."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Self, final

from pyspark.sql.streaming.listener import StreamingQueryListener

from ...application.lag_worker import LagWorker, QueryProgress, SourceProgress
from ...domain.checkpoint_log import kafka_offsets

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from contextlib import AbstractContextManager

    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )
    from pyspark.sql.streaming.listener import StreamingQueryProgress as Progress
    from pyspark.sql.streaming.query import StreamingQuery

    from ...application.lag_meter import LagMeter
    from ...domain.lag import QueryLag
    from ...ports.lag_exporter import LagExporter

_LATE_SECONDS: Final = 5.0
"""How long after a query's end Spark may take to tell of it."""


@final
class LagListener(StreamingQueryListener):
    """Exports the lag of queries that read from Kafka, by this source or by the JVM connector.

    Sources are known by their offsets, so that several in a query, and others beside them, are
    told apart. Spark calls it in a thread that serves all listeners: it only takes notes there,
    and a thread of its own does the rest. It lives until ``close``, or the end of its ``with``
    block; removing it from the session is the caller's.
    """

    def __init__(
        self,
        exporters: Sequence[LagExporter],
        metering: Callable[[], AbstractContextManager[LagMeter]] | None = None,
        queries: Collection[str] = (),
    ) -> None:
        """Take exporters, and a way to a meter if records are to be counted.

        ``queries`` are names; without any, all queries of the session are listened to.
        """
        self._worker = LagWorker(exporters, metering)
        self._queries = frozenset(queries)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the thread, the exporters, and every ``lags``. A second call does nothing."""
        self._worker.close()

    def lags(
        self, query: StreamingQuery | None = None, timeout_seconds: float | None = None
    ) -> Iterator[QueryLag]:
        """Give the lag after each batch of a query as it comes, or of all queries.

        It ends when the query ends, when the time has passed, or with the listener. The newest
        hundred wait for whoever takes their time; of a query also what came before this call.
        """
        if query is None:
            return self._worker.feed(None).follow(timeout_seconds)
        feed = self._worker.feed(str(query.runId))
        if not query.isActive:
            # Its end was perhaps told before this listener was there to hear it.
            timeout_seconds = min(_LATE_SECONDS, timeout_seconds or _LATE_SECONDS)
        return feed.follow(timeout_seconds)

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        """Do nothing: nothing was read yet."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """Take note of a batch."""
        progress = event.progress
        if not self._queries or progress.name in self._queries:
            noted = _noted(progress)
            if noted.sources:
                self._worker.progressed(noted)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """Do nothing: a query that idles is where its last batch left it."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """Take note of an end."""
        self._worker.query_ended(str(event.id), str(event.runId))


def _noted(progress: Progress) -> QueryProgress:
    sources = enumerate(progress.sources)
    return QueryProgress(
        str(progress.id),
        str(progress.runId),
        progress.name,
        progress.batchId,
        round(datetime.fromisoformat(progress.timestamp).timestamp() * 1_000),
        {str(number): noted for number, source in sources if (noted := _source(source))},
    )


def _source(source: Any) -> SourceProgress | None:
    """Read the offsets of a source; Python has the text ``None`` where the JVM has no offset."""
    consumed = kafka_offsets(source.endOffset)
    if consumed is None:
        return None
    return SourceProgress(consumed, kafka_offsets(source.latestOffset))
