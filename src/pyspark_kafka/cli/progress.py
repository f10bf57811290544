"""The progress of a running query."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self, final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql.streaming.query import StreamingQuery

HEADINGS: Final = f"{'batch':>5}  {'rows':>12}  {'rows/s':>10}  {'lag':>12}"

_POLL_SECONDS: Final = 0.2


@final
@dataclass(frozen=True, slots=True)
class Batch:
    """A completed batch. ``end`` and ``latest`` are sums of offsets over all partitions."""

    number: int
    rows: int
    rows_per_second: float
    end: int
    latest: int

    @classmethod
    def from_progress(cls, progress: Mapping[str, Any]) -> Self:
        """Parse Spark's progress report of a batch."""
        source = progress["sources"][0]
        end = _summed(source["endOffset"])
        return cls(
            number=progress["batchId"],
            rows=progress["numInputRows"],
            rows_per_second=progress["processedRowsPerSecond"],
            end=end,
            latest=_summed(source["latestOffset"]) if source["latestOffset"] else end,
        )

    def line(self, lag: int) -> str:
        """Return a row of the table under ``HEADINGS``."""
        return f"{self.number:>5}  {self.rows:>12,}  {self.rows_per_second:>10,.0f}  {lag:>12,}"


def new_batches(query: StreamingQuery) -> Iterator[list[Batch]]:
    """Yield the batches that have completed since the last call, while a query runs.

    Waits 0.2 s between calls, and raises the error of a query that fails.
    """
    last = -1
    is_active = True
    while is_active:
        # Read before the progress reports, so that the last report is not missed.
        is_active = query.isActive
        batches = [
            Batch.from_progress(progress)
            for progress in query.recentProgress
            if progress["numInputRows"] and progress["batchId"] > last
        ]
        last = batches[-1].number if batches else last
        yield batches
        time.sleep(_POLL_SECONDS)
    query.awaitTermination()


def _summed(offsets: str) -> int:
    # PySpark before 4.2 has the text of a Python dictionary here.
    partitions = json.loads(offsets.replace("'", '"'))
    return sum(sum(topic.values()) for topic in partitions.values())
