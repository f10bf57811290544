"""The progress of a continuous query after an epoch, with a histogram of its latencies."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import accumulate
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Self, final

from ..json_text import utc_text
from ..lag.lag import Lag
from ..values.errors import BadRecordStats

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..partition_offsets import PartitionOffsets


_EXACT_BELOW_MS: Final = 100
_STEP: Final = 1.05
_MAX_MS: Final = 7 * 24 * 60 * 60 * 1_000


def _bounds() -> tuple[int, ...]:
    bounds = list(range(_EXACT_BELOW_MS + 1))
    while bounds[-1] < _MAX_MS:
        bounds.append(int(bounds[-1] * _STEP) + 1)
    return tuple(bounds)


BUCKETS: Final = _bounds()
"""The upper bounds of the buckets in milliseconds: exact up to 100 ms, then within 5 %."""


@final
@dataclass(frozen=True, slots=True)
class LatencyHistogram:
    """How many records had which latency; ``counts`` by the index of a bucket."""

    counts: Mapping[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if any(not 0 <= bucket < len(BUCKETS) for bucket in self.counts):
            raise ValueError("a latency is in no bucket")
        if any(count < 0 for count in self.counts.values()):
            raise ValueError("a count of latencies is negative")
        ordered = {bucket: self.counts[bucket] for bucket in sorted(self.counts)}
        object.__setattr__(self, "counts", MappingProxyType(ordered))

    def __reduce__(self) -> tuple[type[LatencyHistogram], tuple[dict[int, int]]]:
        return LatencyHistogram, (dict(self.counts),)

    @classmethod
    def of(cls, milliseconds: Iterable[int]) -> Self:
        """Return the histogram of some latencies; negative ones count as 0."""
        return cls(Counter(bucket_of(each) for each in milliseconds))

    @property
    def total(self) -> int:
        """The number of records."""
        return sum(self.counts.values())

    def merge(self, other: LatencyHistogram) -> LatencyHistogram:
        """Return both together."""
        return LatencyHistogram(Counter(self.counts) + Counter(other.counts))

    def percentile(self, percent: float) -> int | None:
        """Return a latency in milliseconds that ``percent`` of all do not exceed, or ``None``."""
        if not self.total:
            return None
        rank = max(1.0, self.total * percent / 100)
        at = bisect_left(list(accumulate(self.counts.values())), rank)
        return BUCKETS[list(self.counts)[at]]


def bucket_of(milliseconds: int) -> int:
    """Return the index of a latency's bucket."""
    return min(len(BUCKETS) - 1, bisect_left(BUCKETS, max(0, milliseconds)))


@final
@dataclass(frozen=True, slots=True)
class TaskProgress:
    """The work of a task since its last report.

    ``latency`` counts from a record's timestamp to the acknowledgement of its output.
    """

    input_rows: int = 0
    output_rows: int = 0
    latency: LatencyHistogram = field(default_factory=LatencyHistogram)
    bad_records: BadRecordStats = field(default_factory=BadRecordStats)

    def __add__(self, other: TaskProgress) -> TaskProgress:
        return TaskProgress(
            self.input_rows + other.input_rows,
            self.output_rows + other.output_rows,
            self.latency.merge(other.latency),
            self.bad_records + other.bad_records,
        )


@final
@dataclass(frozen=True, slots=True)
class QueryIdentity:
    """The ids of a query and of its run, and its name, as of Spark's ``StreamingQuery``."""

    query_id: str
    run_id: str
    name: str | None = None


@final
@dataclass(frozen=True, slots=True)
class EpochProgress:
    """The work of a query since the epoch before; times in milliseconds since the epoch of 1970.

    ``latest`` are the latest offsets at the previous report, or later ones where those are consumed
    already; for an idle query, the current ones. It is ``None`` while no broker answers.
    ``restarts`` and ``bad_records`` are of the whole run.
    """

    query: QueryIdentity
    source: str
    sink: str
    epoch: int
    timestamp_ms: int
    duration_ms: int
    start: PartitionOffsets
    end: PartitionOffsets
    latest: PartitionOffsets | None
    work: TaskProgress
    tasks: int
    restarts: int
    bad_records: BadRecordStats = field(default_factory=BadRecordStats)

    @property
    def input_rows_per_second(self) -> float:
        """The records that were read in a second."""
        return 1_000 * self.work.input_rows / max(1, self.duration_ms)

    @property
    def output_rows_per_second(self) -> float:
        """The records that were acknowledged in a second."""
        return 1_000 * self.work.output_rows / max(1, self.duration_ms)

    @property
    def lag(self) -> Lag | None:
        """The offsets behind the latest ones."""
        return None if self.latest is None else Lag.between(self.latest, self.end)

    def to_dict(self) -> dict[str, Any]:
        """Return the progress with the names of Spark's ``StreamingQueryProgress``.

        ``latencyMs`` counts from a record's timestamp to the acknowledgement of its output.
        """
        at = datetime.fromtimestamp(self.timestamp_ms / 1_000, UTC)
        lag = self.lag
        return {
            "id": self.query.query_id,
            "runId": self.query.run_id,
            "name": self.query.name,
            "timestamp": utc_text(at),
            "batchId": self.epoch,
            "batchDuration": self.duration_ms,
            "numInputRows": self.work.input_rows,
            "inputRowsPerSecond": self.input_rows_per_second,
            "processedRowsPerSecond": self.output_rows_per_second,
            "latencyMs": {
                "p50": self.work.latency.percentile(50),
                "p99": self.work.latency.percentile(99),
            },
            "badRecords": self.work.bad_records.by_name(),
            "deadLetters": self.work.bad_records.dead_letters,
            "tasks": self.tasks,
            "restarts": self.restarts,
            "sources": [
                {
                    "description": self.source,
                    "startOffset": self.start.to_dict(),
                    "endOffset": self.end.to_dict(),
                    "latestOffset": None if self.latest is None else self.latest.to_dict(),
                    "numInputRows": self.work.input_rows,
                    "metrics": {} if lag is None else lag.metrics(),
                }
            ],
            "sink": {"description": self.sink, "numOutputRows": self.work.output_rows},
        }
