"""The lag of a query as JSON."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from ..application.lag.monitor import LagSnapshot
from ..domain.checkpoints.checkpoint_log import CheckpointedBatch
from ..domain.json_text import utc_text
from ..domain.lag.lag import PartitionLag


def lag_json(snapshot: LagSnapshot, checkpoint: str, now_ms: int) -> str:
    """Return a snapshot as one line of JSON; times are ISO 8601 in UTC."""
    numbers = snapshot.numbers
    answer = {
        "time": _time(now_ms),
        "checkpoint": checkpoint,
        "committedBatch": batch_json(snapshot.state.committed),
        "inFlightBatch": batch_json(snapshot.state.in_flight),
        "lag": {
            "total": snapshot.total,
            "min": min(numbers, default=0),
            "max": max(numbers, default=0),
            "avg": snapshot.total / len(numbers) if numbers else 0.0,
            "exact": snapshot.is_exact,
        }
        if snapshot.state.committed
        else None,
        "trend": {
            "direction": snapshot.trend.direction.value,
            "offsetsReadPerSecond": snapshot.trend.read,
            "offsetsArrivedPerSecond": snapshot.trend.arrived,
        },
        "partitions": [
            {"source": source, **_partition(each)}
            for source, lag in snapshot.sources.items()
            for each in lag.partitions
        ],
        "gone": [{"topic": gone.topic, "partition": gone.partition} for gone in snapshot.gone],
    }
    return json.dumps(answer)


def batch_json(batch: CheckpointedBatch | None) -> dict[str, Any] | None:
    """Return a batch of the offset log, ``None`` if there is none."""
    if batch is None:
        return None
    begun = None if batch.timestamp_ms is None else _time(batch.timestamp_ms)
    return {"id": batch.batch_id, "begun": begun}


def _partition(lag: PartitionLag) -> dict[str, Any]:
    return {
        "topic": lag.partition.topic,
        "partition": lag.partition.partition,
        "consumed": lag.consumed,
        "latest": lag.latest,
        "lag": lag.lag,
        "exact": lag.is_exact,
        "expired": lag.expired,
    }


def _time(milliseconds: int) -> str:
    return utc_text(datetime.fromtimestamp(milliseconds / 1_000, UTC))
