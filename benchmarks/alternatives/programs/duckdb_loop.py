"""confluent-kafka's consumer and producer around Arrow tables that DuckDB queries."""

from __future__ import annotations

from typing import Final

import duckdb
import pyarrow as pa

from benchmarks.alternatives.programs.consumed import consumed, producing
from benchmarks.alternatives.task import Task, main

COLUMNS: Final[dict[str, pa.DataType]] = {
    "key": pa.binary(),
    "value": pa.binary(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("ms"),
}
SCHEMA: Final = pa.schema(COLUMNS)


def read(task: Task) -> int:
    """Read a topic into a table of DuckDB."""
    database = duckdb.connect()
    database.register("batch", SCHEMA.empty_table())
    database.sql("CREATE TABLE records AS FROM batch")
    for columns in consumed(task):
        database.register("batch", pa.table(columns, SCHEMA))
        database.sql("INSERT INTO records FROM batch")
    records: int = database.sql("SELECT count(*) FROM records").fetchall()[0][0]
    return records


def copy(task: Task) -> int:
    """Produce the rows of a query of each batch's table."""
    database = duckdb.connect()
    records = 0
    with producing(task) as produce:
        for columns in consumed(task):
            database.register("batch", pa.table(columns, SCHEMA))
            records += produce(database.sql("SELECT key, value FROM batch").fetchall())
    return records


if __name__ == "__main__":
    main(read, copy)
