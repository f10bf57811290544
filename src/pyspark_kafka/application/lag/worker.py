"""Measuring and exporting the lag of queries in a thread, and following it as an iterator."""

from __future__ import annotations

import logging
import threading
from collections import deque
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar, final
from weakref import WeakSet

from ...domain.errors import PysparkKafkaError
from ...domain.lag.lag import QueryLag, SourceLag
from ...domain.newest import MAX_ITEMS, Newest
from ...ports.clock import Deadline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from ...domain.partition_offsets import PartitionOffsets
    from ...domain.values.errors import BadRecordStats
    from ...ports.lag import LagExporter
    from ..letters.dead_letter_log import LetterCounter, LetterTally
    from .meter import LagMeter


def _partitions_of(lag: QueryLag) -> int:
    return sum(len(source.partitions) for source in lag.sources.values())


@final
class LagFeed:
    """A bounded buffer between the thread that measures lag and one that reads it."""

    def __init__(self, run_id: str | None, begin: Iterable[QueryLag] = ()) -> None:
        """Take the lag of one run, or of all queries if ``None``; ``begin`` is buffered first."""
        self._run_id = run_id
        self._changed = threading.Condition()
        self._buffer = Newest(_partitions_of, begin)
        self._is_ended = False

    def put(self, lag: QueryLag) -> None:
        """Add the lag of a query, if the feed is for its run."""
        if self._run_id in (None, lag.run_id):
            with self._changed:
                self._buffer.append(lag)
                self._changed.notify_all()

    def query_ended(self, run_id: str) -> None:
        """End the feed if it is for this run."""
        if self._run_id == run_id:
            self.end()

    def end(self) -> None:
        """End the feed once its buffer is empty."""
        with self._changed:
            self._is_ended = True
            self._changed.notify_all()

    def follow(self, seconds: float | None) -> Iterator[QueryLag]:
        """Yield lag until the feed ends, or for a number of seconds."""
        deadline = Deadline.after(seconds)
        while (lag := self._next(deadline)) is not None:
            yield lag

    def _next(self, deadline: Deadline) -> QueryLag | None:
        with self._changed:
            while not self._buffer:
                if self._is_ended or deadline.has_passed:
                    return None
                self._changed.wait(min(deadline.remaining, threading.TIMEOUT_MAX))
            return self._buffer.popleft()


log = logging.getLogger("pyspark_kafka")

IDLE_SECONDS: Final = 60.0
"""The thread ends after this time without reports; the next report starts another."""

CLOSE_SECONDS: Final = 10.0

_NO_METER: Final = "Lag is in offsets until records can be counted"
_NO_COUNTER: Final = "Dead letters are not counted"

T = TypeVar("T")


@final
@dataclass(frozen=True, slots=True)
class SourceProgress:
    """The offsets that a source has read, and the latest ones, if Spark reports them."""

    consumed: PartitionOffsets
    latest: PartitionOffsets | None


@final
@dataclass(frozen=True, slots=True)
class QueryProgress:
    """The parts of Spark's progress report of a batch that concern lag."""

    query_id: str
    run_id: str
    name: str | None
    batch_id: int
    timestamp_ms: int
    sources: Mapping[str, SourceProgress]
    bad_records: BadRecordStats | None = None


@final
class LagWorker:
    """Takes reports without blocking; measures and exports in its own thread.

    Of the pending reports of one run only the newest is kept. Failures are logged.
    """

    def __init__(
        self,
        exporters: Sequence[LagExporter],
        open_meter: Callable[[], AbstractContextManager[LagMeter]] | None,
        idle_seconds: float = IDLE_SECONDS,
        open_counter: Callable[[], AbstractContextManager[LetterCounter]] | None = None,
    ) -> None:
        """Take exporters, and ``open_meter`` to count records; without it lag is in offsets.

        ``open_counter`` is for counting dead letters.
        """
        self._exporters = tuple(exporters)
        self._open_meter = open_meter
        self._open_counter = open_counter
        self._idle_seconds = idle_seconds
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_closed = False
        self._pending: dict[str, QueryProgress] = {}
        self._ended: list[tuple[str, str]] = []
        self._feeds: WeakSet[LagFeed] = WeakSet()
        self._recent = Newest(_partitions_of)
        self._recently_ended: deque[str] = deque(maxlen=MAX_ITEMS)
        self._failing: set[str] = set()
        self._tally: LetterTally | None = None

    def progressed(self, progress: QueryProgress) -> None:
        """Add a progress report."""
        with self._changed:
            self._pending[progress.run_id] = progress
            self._wake()

    def query_ended(self, query_id: str, run_id: str) -> None:
        """Add the end of a run."""
        with self._changed:
            self._ended.append((query_id, run_id))
            self._wake()

    def feed(self, run_id: str | None) -> LagFeed:
        """Return a feed of one run with its recent lag, or of all runs from now on if ``None``."""
        with self._changed:
            begin = [lag for lag in self._recent if lag.run_id == run_id]
            feed = LagFeed(run_id, begin)
            if self._is_closed or run_id in self._recently_ended:
                feed.end()
            self._feeds.add(feed)
        return feed

    def close(self) -> None:
        """Process pending reports, then end the thread, the feeds and the exporters."""
        with self._changed:
            self._is_closed = True
            thread = self._thread
            self._changed.notify_all()
        # An exporter that closes its worker runs in this thread.
        if thread is not None and thread is not threading.current_thread():
            thread.join(CLOSE_SECONDS)
        for feed in list(self._feeds):
            feed.end()
        for exporter in self._exporters:
            self._guarded(exporter.close)

    def _wake(self) -> None:
        if self._is_closed:
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="pyspark-kafka-lag", daemon=True)
            self._thread.start()
        self._changed.notify_all()

    def _run(self) -> None:
        try:
            self._process_reports()
        except Exception:
            log.exception("The lag of queries is measured again with their next progress report")
            with self._changed:
                self._thread = None

    def _process_reports(self) -> None:
        with ExitStack() as stack:
            meter: LagMeter | None = None
            counter: LetterCounter | None = None
            for pending, ended in self._reports():
                if pending and meter is None:
                    meter = self._opened(self._open_meter, stack, _NO_METER)
                if pending and counter is None:
                    counter = self._opened(self._open_counter, stack, _NO_COUNTER)
                    if counter is not None:
                        # A counter metric must not decrease, although letters expire.
                        counter.tally = self._tally = self._tally or counter.tally
                for progress in pending:
                    lag = self._measured(progress, meter, counter)
                    if lag.sources:
                        self._publish(lag)
                for query_id, run_id in ended:
                    self._end(query_id, run_id)

    def _reports(self) -> Iterator[tuple[list[QueryProgress], list[tuple[str, str]]]]:
        while True:
            with self._changed:
                if not self._pending and not self._ended and not self._is_closed:
                    self._changed.wait(self._idle_seconds)
                if not self._pending and not self._ended:
                    self._thread = None
                    return
                pending, self._pending = list(self._pending.values()), {}
                ended, self._ended = self._ended, []
            yield pending, ended

    def _opened(
        self,
        open_tool: Callable[[], AbstractContextManager[T]] | None,
        stack: ExitStack,
        consequence: str,
    ) -> T | None:
        if open_tool is None:
            return None
        try:
            return stack.enter_context(open_tool())
        except Exception as error:  # noqa: BLE001 - the thread has to live
            self._warn_once(consequence, error)
            return None

    def _measured(
        self, progress: QueryProgress, meter: LagMeter | None, counter: LetterCounter | None
    ) -> QueryLag:
        return QueryLag(
            progress.query_id,
            progress.run_id,
            progress.name,
            progress.batch_id,
            progress.timestamp_ms,
            self._counted(progress, meter) or _in_offsets(progress),
            progress.bad_records or self._bad_records(progress, counter),
        )

    def _bad_records(
        self, progress: QueryProgress, counter: LetterCounter | None
    ) -> BadRecordStats | None:
        if counter is None:
            return None
        try:
            counted = counter.count(progress.query_id)
        except Exception as error:  # noqa: BLE001 - the thread has to live
            self._warn_once(_NO_COUNTER, error)
            return None
        self._failing.discard(_NO_COUNTER)
        return counted

    def _counted(self, progress: QueryProgress, meter: LagMeter | None) -> dict[str, SourceLag]:
        if meter is None:
            return {}
        try:
            lags = meter.measure_all(each.consumed for each in progress.sources.values())
        except Exception as error:  # noqa: BLE001 - the thread has to live
            self._warn_once(_NO_METER, error)
            return {}
        self._failing.discard(_NO_METER)
        return dict(zip(progress.sources, lags, strict=True))

    def _warn_once(self, consequence: str, error: Exception) -> None:
        if consequence not in self._failing:
            traceback = None if isinstance(error, PysparkKafkaError) else error
            log.warning("%s: %s", consequence, error, exc_info=traceback)
        self._failing.add(consequence)

    def _publish(self, lag: QueryLag) -> None:
        with self._changed:
            self._recent.append(lag)
            feeds = list(self._feeds)
        for exporter in self._exporters:
            self._guarded(exporter.export, lag)
        for feed in feeds:
            feed.put(lag)

    def _end(self, query_id: str, run_id: str) -> None:
        with self._changed:
            self._recently_ended.append(run_id)
            feeds = list(self._feeds)
        for exporter in self._exporters:
            self._guarded(exporter.query_ended, query_id, run_id)
        for feed in feeds:
            feed.query_ended(run_id)

    @staticmethod
    def _guarded(call: Callable[..., None], *arguments: object) -> None:
        try:
            call(*arguments)
        except Exception:
            log.exception("A lag exporter failed; the query continues")


def _in_offsets(progress: QueryProgress) -> dict[str, SourceLag]:
    return {
        name: SourceLag.in_offsets(source.consumed, source.latest)
        for name, source in progress.sources.items()
        if source.latest is not None
    }
