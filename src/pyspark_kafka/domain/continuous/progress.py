"""The progress of a continuous query after an epoch."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, final

from ..json_text import utc_text
from ..lag.lag import Lag
from ..values.errors import BadRecordStats

if TYPE_CHECKING:
    from ..partition_offsets import PartitionOffsets
    from .messages import TaskProgress


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
    """What a query did since the epoch before; times in milliseconds since the epoch of 1970.

    ``latest`` are the latest offsets at the report before, or later ones where they are consumed
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
