"""The library without Spark: Arrow from the port `RecordReader`, to `RecordWriter`."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from benchmarks.alternatives.task import Task, main
from pyspark_kafka import (
    QueryKind,
    container_for,
    parse_sink_options,
    parse_source_options,
    sink_container_for,
)
from pyspark_kafka.domain.reading.records import Projection

if TYPE_CHECKING:
    from collections.abc import Iterator

COLUMNS: Final = Projection(("key", "value", "partition", "offset", "timestamp"))
COPIED: Final = Projection(("key", "value"))


def read(task: Task) -> int:
    """Read a topic into an Arrow table."""
    with _batches(task, COLUMNS) as batches:
        return pa.Table.from_batches(list(batches)).num_rows


def copy(task: Task) -> int:
    """Write each batch of Arrow to the other topic."""
    options = parse_sink_options(
        {
            "kafka.bootstrap.servers": task.bootstrap_servers,
            "client": task.variant,
            "topic": task.target,
        },
        QueryKind.BATCH,
    )
    container = sink_container_for(options)
    with _batches(task, COPIED) as batches:
        written = container.sink_task().write(batches)
    container.shutdown_resources()
    return written.delivered.records


@contextmanager
def _batches(task: Task, columns: Projection) -> Iterator[Iterator[pa.RecordBatch]]:
    options = parse_source_options(
        {
            "kafka.bootstrap.servers": task.bootstrap_servers,
            "client": task.variant,
            "subscribe": task.source,
        },
        QueryKind.BATCH,
    )
    container = container_for(options)
    ranges = container.batch().plan_input_partitions()
    reader = container.range_read()
    yield (
        batch
        for part in ranges
        if part.partition.partition in task.partitions
        for batch in reader.read(part, columns)
    )
    container.shutdown_resources()


if __name__ == "__main__":
    main(read, copy)
