"""Running streams, and looking into what they leave in their checkpoints."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery


def run_once(
    stream: DataFrame, directory: Path, after_batch: Callable[[int], None] | None = None
) -> list[list[int]]:
    """Run a stream of numbers to its end, and give the numbers of each batch that has any.

    ``after_batch`` is called with a batch's number when it has been read.
    """
    batches: list[list[int]] = []

    def take(batch: DataFrame, number: int) -> None:
        rows = batch.selectExpr("cast(cast(value as string) as int) as number").collect()
        if rows:
            batches.append(sorted(row.number for row in rows))
        if after_batch is not None:
            after_batch(number)

    query = (
        stream.writeStream.foreachBatch(take)
        .option("checkpointLocation", str(directory / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    return batches


def start(stream: DataFrame, directory: Path, **trigger: Any) -> StreamingQuery:
    return (
        stream.writeStream.format("noop")
        .option("checkpointLocation", str(directory / "checkpoint"))
        .trigger(**(trigger or {"processingTime": "0 seconds"}))
        .start()
    )


def batch_ends(directory: Path) -> list[dict[str, dict[str, int]]]:
    logs = (directory / "checkpoint" / "offsets").iterdir()
    numbers = sorted(int(log.name) for log in logs if log.name.isdigit())
    return [
        json.loads((directory / "checkpoint" / "offsets" / str(number)).read_text().splitlines()[2])
        for number in numbers
    ]
