"""Measuring the work of a task between two reports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

import numpy as np
import pyarrow as pa

from ...domain.continuous.latency import BUCKETS, LatencyHistogram
from ...domain.continuous.messages import TaskProgress
from ...domain.values.errors import BadRecordStats
from ...ports.clock import epoch_ms

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
