"""confluent-kafka's consumer and producer around Polars."""

from __future__ import annotations

import polars as pl

from benchmarks.alternatives.programs.consumed import Columns, consumed, producing
from benchmarks.alternatives.task import Task, main


def read(task: Task) -> int:
    """Read a topic into a DataFrame."""
    records: int = pl.concat([_frame(columns) for columns in consumed(task)]).height
    return records


def copy(task: Task) -> int:
    """Produce the rows of each batch's DataFrame."""
    with producing(task) as produce:
        return sum(
            produce(_frame(columns).select("key", "value").iter_rows())
            for columns in consumed(task)
        )


def _frame(columns: Columns) -> pl.DataFrame:
    schema = {
        "key": pl.Binary,
        "value": pl.Binary,
        "partition": pl.Int32,
        "offset": pl.Int64,
        "timestamp": pl.Datetime("ms"),
    }
    return pl.DataFrame(columns, schema)


if __name__ == "__main__":
    main(read, copy)
