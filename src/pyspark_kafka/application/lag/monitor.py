"""Monitoring the lag of queries by their checkpoints, each round within one deadline."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future, as_completed
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, final

from ...domain.errors import PysparkKafkaError
from ...domain.lag.lag import QueryLag
from ...domain.lag.trend import Direction, LagSample, LagTrend, Trend
from ...domain.text import describe_error
from ..checkpoints.logs import CheckpointState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from ...domain.lag.lag import SourceLag
    from ...domain.topic_partition import TopicPartition
    from ...ports.clock import Clock
    from ..checkpoints.logs import CheckpointLogs
    from .meter import LagMeter


@final
@dataclass(frozen=True, slots=True)
class LagSnapshot:
    """The lag at one time; ``sources`` are the Kafka sources of the committed batch."""

    state: CheckpointState = field(default_factory=CheckpointState)
    sources: Mapping[str, SourceLag] = field(default_factory=dict)
    trend: Trend = field(default_factory=lambda: Trend(Direction.UNKNOWN))

    @property
    def total(self) -> int:
        """The total lag of all sources."""
        return sum(source.lag.total for source in self.sources.values())

    @property
    def is_exact(self) -> bool:
        """Whether the lag counts records, not offsets, in every partition."""
        return all(source.is_exact for source in self.sources.values())

    @property
    def numbers(self) -> tuple[int, ...]:
        """The lag of each partition of each source."""
        return tuple(each.lag for one in self.sources.values() for each in one.partitions)

    @property
    def gone(self) -> tuple[TopicPartition, ...]:
        """Partitions that the query has read and that no longer exist."""
        committed = self.state.committed
        if committed is None:
            return ()
        existing = {each.partition for one in self.sources.values() for each in one.partitions}
        return tuple(sorted(set().union(*committed.offsets.values()) - existing))


@final
class LagMonitor:
    """Compares a checkpoint with Kafka, and keeps samples for the trend."""

    def __init__(self, checkpoint: CheckpointLogs, meter: LagMeter, clock: Clock) -> None:
        self._checkpoint = checkpoint
        self._meter = meter
        self._clock = clock
        self._trend = LagTrend()

    def snapshot(self) -> LagSnapshot:
        """Return the current lag.

        :raises MetadataLogError: if the checkpoint cannot be read.
        :raises BrokerUnreachableError: if no broker answers.
        :raises KafkaRequestError: if a broker refuses the request.
        """
        state = self._checkpoint.state()
        if state.committed is None:
            return LagSnapshot(state)
        offsets = state.committed.offsets
        measured = self._meter.measure_all(offsets.values())
        sources = dict(zip(offsets, measured, strict=True))
        sample = LagSample(self._clock.now_ms(), state.committed.batch_id, sources)
        return LagSnapshot(state, sources, self._trend.add(sample))


TIMEOUT: Final = "TIMEOUT"
"""Stands for a condition where a measurement has not ended in time."""

UNEXPECTED: Final = "UNEXPECTED"
"""Stands for the condition of an error that is not this library's."""


@final
@dataclass(frozen=True, slots=True)
class MeasurementFailure:
    """Why a lag is not known: the condition of the error, and its text on one line."""

    condition: str
    text: str

    @classmethod
    def of(cls, error: Exception) -> MeasurementFailure:
        """Return the failure for an error."""
        condition = error.condition if isinstance(error, PysparkKafkaError) else UNEXPECTED
        return cls(condition, describe_error(error))


@final
@dataclass(frozen=True, slots=True)
class CheckpointReport:
    """The result of a measurement: a snapshot or a failure. ``name`` identifies the checkpoint."""

    name: str
    query_id: str
    seconds: float
    snapshot: LagSnapshot | None = None
    failure: MeasurementFailure | None = None

    @property
    def lag(self) -> QueryLag | None:
        """The lag of the query; ``None`` before its first commit and after a failure."""
        if self.snapshot is None or self.snapshot.state.committed is None:
            return None
        committed = self.snapshot.state.committed
        return QueryLag(
            self.query_id,
            "",
            self.name,
            committed.batch_id,
            committed.timestamp_ms or 0,
            self.snapshot.sources,
        )


@final
class WatchedCheckpoint:
    """A checkpoint with at most one measurement at a time, in its own thread."""

    def __init__(
        self,
        name: str,
        open_monitor: Callable[[], AbstractContextManager[LagMonitor]],
        read_query_id: Callable[[], str],
    ) -> None:
        """Take its name, and functions for the first measurement, which may be called again."""
        self.name = name
        self._open_monitor = open_monitor
        self._read_query_id = read_query_id
        self._query_id = ""
        self._monitor: LagMonitor | None = None
        self._clients = ExitStack()
        self._last: Future[CheckpointReport] | None = None

    def start(self) -> Future[CheckpointReport]:
        """Return the report of the measurement that still runs, or else of one that starts now."""
        if self._last is None or self._last.done():
            self._last = Future()
            name, report = f"lag of {self.name}", self._last
            # A daemon: a storage that hangs must not keep the process from ending.
            threading.Thread(target=self._run, args=(report,), name=name, daemon=True).start()
        return self._last

    def close(self) -> None:
        """Close the clients, unless a measurement uses them: they end with the process then."""
        if self._last is None or self._last.done():
            self._clients.close()

    def _run(self, report: Future[CheckpointReport]) -> None:
        report.set_result(self._measure())

    def _measure(self) -> CheckpointReport:
        begin = time.monotonic()
        snapshot, failure = None, None
        try:
            snapshot = self._snapshot()
        except Exception as error:  # noqa: BLE001 - the report has it
            failure = MeasurementFailure.of(error)
        seconds = time.monotonic() - begin
        return CheckpointReport(self.name, self._query_id, seconds, snapshot, failure)

    def _snapshot(self) -> LagSnapshot:
        if self._monitor is None:
            self._monitor = self._clients.enter_context(self._open_monitor())
        snapshot = self._monitor.snapshot()
        snapshot.state.require_batch(self.name)
        self._query_id = self._query_id or self._read_query_id()
        return snapshot


@final
class CheckpointWatch:
    """Measures the lag behind checkpoints in rounds; one thread at a time may use it."""

    def __init__(self, checkpoints: Sequence[WatchedCheckpoint], timeout_seconds: float) -> None:
        self._checkpoints = checkpoints
        self._timeout = timeout_seconds
        self._unfinished: dict[str, Future[CheckpointReport]] = {}
        """The measurements that had not ended in the last round."""

    def measure(self) -> Iterator[CheckpointReport]:
        """Yield a report of each checkpoint as it comes, and failures at the deadline.

        A measurement that has not ended continues, and counts for the round in which it ends. If
        it ends between two rounds, it counts for the later one unless that has a newer one.
        """
        awaited = {checkpoint.start(): checkpoint.name for checkpoint in self._checkpoints}
        with suppress(TimeoutError):
            for measured in as_completed(awaited, self._timeout):
                del awaited[measured]
                yield measured.result()
        failure = MeasurementFailure(
            TIMEOUT, f"The measurement has not ended within {self._timeout:g} s"
        )
        before, self._unfinished = self._unfinished, {}
        for measured, name in awaited.items():
            if measured.done():
                yield measured.result()
                continue
            self._unfinished[name] = measured
            earlier = before.get(name)
            if earlier is not None and earlier.done():
                yield earlier.result()
            else:
                yield CheckpointReport(name, "", self._timeout, failure=failure)

    def close(self) -> None:
        """Close the clients of all checkpoints."""
        for checkpoint in self._checkpoints:
            checkpoint.close()
