"""Measuring the work of a continuous query's tasks, and recording its progress."""

from __future__ import annotations

import logging
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final, final

import numpy as np
import pyarrow as pa

from ...domain.continuous.progress import BUCKETS, EpochProgress, LatencyHistogram, TaskProgress
from ...domain.errors import PysparkKafkaError
from ...domain.newest import Newest
from ...domain.values.errors import BadRecordStats
from ...ports.clock import epoch_ms
from ...ports.lag import ProgressListener

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from ...domain.continuous.epochs import Epoch
    from ...domain.continuous.progress import QueryIdentity
    from ...domain.partition_offsets import PartitionOffsets

_BOUNDS: Final = np.array(BUCKETS, np.int64)


@final
class WorkMeter:
    """Adds up rows and latencies; what takes time is done once a report, not for each record."""

    def __init__(self) -> None:
        self._input_rows = 0
        self._output_rows = 0
        self._latencies: list[NDArray[np.int64]] = []
        self._bad_records = BadRecordStats()

    def acknowledged(
        self, input_rows: int, output_rows: int, timestamps: NDArray[np.int64] | None
    ) -> None:
        """Count acknowledged rows; ``timestamps`` are in milliseconds since the epoch."""
        self._input_rows += input_rows
        self._output_rows += output_rows
        if timestamps is not None:
            self._latencies.append(epoch_ms() - timestamps)

    def failed(self, found: BadRecordStats) -> None:
        """Count records that could not be decoded."""
        self._bad_records += found

    def take(self) -> TaskProgress:
        """Return the work since the last call."""
        taken = TaskProgress(
            self._input_rows, self._output_rows, self._histogram(), self._bad_records
        )
        self._bad_records = BadRecordStats()
        self._input_rows = self._output_rows = 0
        self._latencies.clear()
        return taken

    def _histogram(self) -> LatencyHistogram:
        if not self._latencies:
            return LatencyHistogram()
        latencies = np.maximum(np.concatenate(self._latencies), 0)
        buckets = np.minimum(np.searchsorted(_BOUNDS, latencies), len(_BOUNDS) - 1)
        numbers, counts = np.unique(buckets, return_counts=True)
        return LatencyHistogram(dict(zip(numbers.tolist(), counts.tolist(), strict=True)))


def timestamps_of(records: pa.RecordBatch) -> NDArray[np.int64] | None:
    """Return the timestamps of records in milliseconds, unless the column is left out."""
    return milliseconds_of(records) if "timestamp" in records.schema.names else None


def milliseconds_of(records: pa.RecordBatch) -> NDArray[np.int64]:
    """Return the timestamps of records in milliseconds since the epoch."""
    microseconds = records.column("timestamp").view(pa.int64())
    found: NDArray[np.int64] = microseconds.to_numpy(zero_copy_only=False) // 1_000
    return found


log = logging.getLogger("pyspark_kafka")

IDLE_EVERY_S: Final = 10.0
"""The default of ``spark.sql.streaming.noDataProgressEventInterval``."""

_MIN_INTERVAL_S: Final = 1.0
"""A report asks Kafka for the latest offsets, so that short epochs share one."""


@final
class ProgressRecorder:
    """Adds up what tasks report, and hands a report to listeners; other threads may read it."""

    def __init__(
        self,
        query: QueryIdentity,
        sink: str,
        listeners: Sequence[ProgressListener | Callable[[EpochProgress], None]] = (),
    ) -> None:
        self.tasks = 0
        self.is_processing = False
        self._query = query
        self._sink = sink
        self._listeners = tuple(map(_listener, listeners))
        self._lock = threading.Lock()
        self._recent = Newest[EpochProgress](lambda progress: len(progress.end))
        self._work = TaskProgress()
        self._restarts = 0
        self._bad_records = BadRecordStats()
        self._start: PartitionOffsets | None = None
        self._latest: PartitionOffsets | None = None
        self._since = time.monotonic()

    @property
    def recent(self) -> list[EpochProgress]:
        """The newest reports, the last one last."""
        with self._lock:
            return list(self._recent)

    def add(self, work: TaskProgress) -> None:
        """Add the work of a task since its last report."""
        self._work += work
        self._bad_records += work.bad_records

    def restarted(self) -> None:
        """Count a restart of a task, or of all."""
        self._restarts += 1

    def record(
        self,
        last: Epoch,
        source: str,
        latest: Callable[[], PartitionOffsets | None],
        *,
        is_final: bool = False,
    ) -> None:
        """Report the time since the last report, if anything happened or enough time passed.

        The final report has all that happened, however short the time is. ``latest`` asks for the
        latest offsets, which a report may be without.
        """
        now = time.monotonic()
        if self._start is None:
            self._start = last.offsets
        has_worked = bool(self._work.input_rows) or self._start != last.offsets
        interval = _MIN_INTERVAL_S if has_worked else IDLE_EVERY_S
        if now - self._since < interval and not (is_final and has_worked):
            return
        self._keep(
            EpochProgress(
                query=self._query,
                source=source,
                sink=self._sink,
                epoch=last.number,
                timestamp_ms=epoch_ms(),
                duration_ms=round(1_000 * (now - self._since)),
                start=self._start,
                end=last.offsets,
                latest=self._latest_offset(latest, last.offsets, has_worked=has_worked),
                work=self._work,
                tasks=self.tasks,
                restarts=self._restarts,
                bad_records=self._bad_records,
            )
        )
        self._work, self._since, self._start = TaskProgress(), now, last.offsets

    def _latest_offset(
        self,
        latest: Callable[[], PartitionOffsets | None],
        end: PartitionOffsets,
        *,
        has_worked: bool,
    ) -> PartitionOffsets | None:
        """Return the latest offsets at the start of a query's work, as Spark's progress has them.

        Tasks report twice an epoch. Compared with the current latest offsets, a query that follows
        a fast topic within milliseconds would seem to lag behind by what arrived since.
        """
        before, self._latest = self._latest, None
        with suppress(PysparkKafkaError):
            self._latest = latest()
        if self._latest is None or before is None or not has_worked:
            return self._latest
        known = before.restrict(before.keys() & self._latest.keys())
        passed = {part: max(offset, end.get(part, 0)) for part, offset in known.items()}
        return self._latest.merge(passed)

    def _keep(self, progress: EpochProgress) -> None:
        with self._lock:
            self._recent.append(progress)
        self._tell(lambda listener: listener.progressed(progress))

    def ended(self) -> None:
        """Notify listeners that the run has ended."""
        query = self._query
        self._tell(lambda listener: listener.query_ended(query.query_id, query.run_id))

    def _tell(self, call: Callable[[ProgressListener], None]) -> None:
        for listener in self._listeners:
            try:
                call(listener)
            except Exception:
                # A listener is the user's code, and its errors must not stop the query.
                log.exception("A listener of a continuous query failed")


@final
class _FunctionListener(ProgressListener):
    """A function that takes the progress, and does not care about the end of queries."""

    def __init__(self, function: Callable[[EpochProgress], None]) -> None:
        self._function = function

    def progressed(self, progress: EpochProgress) -> None:
        self._function(progress)

    def query_ended(self, query_id: str, run_id: str) -> None:
        """Do nothing."""


def _listener(
    listener: ProgressListener | Callable[[EpochProgress], None],
) -> ProgressListener:
    return listener if isinstance(listener, ProgressListener) else _FunctionListener(listener)
