"""A Spark listener that exports the lag of streaming queries."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, Final, Self, final

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)
from pyspark.sql.streaming.listener import StreamingQueryProgress as Progress
from pyspark.sql.streaming.query import StreamingQuery

from ...application.continuous.query import ContinuousQuery
from ...application.lag.meter import LagMeter
from ...application.lag.worker import LagWorker, QueryProgress, SourceProgress
from ...application.letters.dead_letter_log import LetterCounter
from ...domain.checkpoints.checkpoint_log import kafka_offsets
from ...domain.continuous.progress import EpochProgress
from ...domain.lag.lag import QueryLag
from ...domain.partition_offsets import PartitionOffsets
from ...ports.lag import LagExporter, ProgressListener
from .spark_api import HAS_READ_LIMITS, LATEST_OFFSET

log = logging.getLogger("pyspark_kafka")

_MAX_EVENT_DELAY_SECONDS: Final = 5.0
"""How long after the end of a query Spark may take to report it."""


@final
class LagListener(StreamingQueryListener, ProgressListener):
    """Exports the lag of queries that read from Kafka, with this source or the JVM connector.

    It listens to Spark's streaming queries, and is a listener of continuous queries as well. Kafka
    sources are recognized by the format of their offsets, also among other sources of a
    query. Spark calls all listeners in one thread, so this one only queues the events there, and
    processes them in its own thread. It works until ``close`` or the end of its ``with`` block;
    removing it from the session is up to the caller.
    """

    def __init__(
        self,
        exporters: Sequence[LagExporter],
        metering: Callable[[], AbstractContextManager[LagMeter]] | None = None,
        queries: Collection[str] = (),
        counting: Callable[[], AbstractContextManager[LetterCounter]] | None = None,
    ) -> None:
        """Take exporters, a factory of lag meters to count records with, and one for dead letters.

        ``queries`` are names; if it is empty, the listener exports all queries of the session.
        """
        if metering is None and not HAS_READ_LIMITS:
            log.warning("%s", LATEST_OFFSET.refusal())
        self._worker = LagWorker(exporters, metering, open_counter=counting)
        self._queries = frozenset(queries)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the thread, close the exporters, and end all ``lags``; may be repeated."""
        self._worker.close()

    def lags(
        self,
        query: StreamingQuery | ContinuousQuery | None = None,
        timeout_seconds: float | None = None,
    ) -> Iterator[QueryLag]:
        """Yield the lag after each batch of a query, or of all queries.

        Ends with the query, at the time-out, or with the listener. At most the newest hundred are
        buffered; for a query, including those from before this call.
        """
        if query is None:
            return self._worker.feed(None).follow(timeout_seconds)
        feed = self._worker.feed(str(query.runId))
        if not query.isActive:
            # Spark may have reported the end before this listener was added.
            given = _MAX_EVENT_DELAY_SECONDS if timeout_seconds is None else timeout_seconds
            timeout_seconds = min(_MAX_EVENT_DELAY_SECONDS, given)
        return feed.follow(timeout_seconds)

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        """Do nothing: no batch has been read yet."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """Queue the progress of a batch."""
        self._queue(_parse_progress(event.progress))

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """Do nothing: an idle query has the offsets of its last batch."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """Queue the end of a query."""
        self.query_ended(str(event.id), str(event.runId))

    def progressed(self, progress: EpochProgress) -> None:
        """Queue the progress of a continuous query."""
        query = progress.query
        source = SourceProgress(progress.end, progress.latest)
        self._queue(
            QueryProgress(
                query.query_id,
                query.run_id,
                query.name,
                progress.epoch,
                progress.timestamp_ms,
                {"0": source},
                progress.bad_records,
            )
        )

    def query_ended(self, query_id: str, run_id: str) -> None:
        """Queue the end of a query."""
        self._worker.query_ended(query_id, run_id)

    def _queue(self, progress: QueryProgress) -> None:
        if progress.sources and (not self._queries or progress.name in self._queries):
            self._worker.progressed(progress)


def _parse_progress(progress: Progress) -> QueryProgress:
    sources = enumerate(progress.sources)
    return QueryProgress(
        str(progress.id),
        str(progress.runId),
        progress.name,
        progress.batchId,
        round(datetime.fromisoformat(progress.timestamp).timestamp() * 1_000),
        {str(number): parsed for number, source in sources if (parsed := _parse_source(source))},
    )


def _parse_source(source: Any) -> SourceProgress | None:
    """Parse the offsets of a source; PySpark has the string ``None`` where the JVM has null.

    Spark before 4.2 reports the end of a Python source's batch as its latest offset.
    """
    consumed = _parse_offsets(source.endOffset)
    if consumed is None:
        return None
    is_known = HAS_READ_LIMITS or "PythonMicroBatchStream" not in source.description
    return SourceProgress(consumed, _parse_offsets(source.latestOffset) if is_known else None)


def _parse_offsets(text: str) -> PartitionOffsets | None:
    # A client of Spark Connect before 4.2 has the text of a Python dictionary here.
    return kafka_offsets(text.replace("'", '"'))
