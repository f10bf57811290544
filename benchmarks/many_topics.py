"""``python -m benchmarks.many_topics``: what a sink costs that writes to many topics.

The same rows go to one topic and to many. The ratio says how many times as long the many take.
"""

from __future__ import annotations

import argparse
import itertools
import time
from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from pyspark_kafka.bootstrap.container import sink_container_for
from pyspark_kafka.brokers import KafkaCluster
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.sink import parse_sink_options

from .bench import CLIENTS
from .fresh_process import on_all_cores
from .plan import Plan
from .results import MILLISECONDS, Comparison, Section
from .rounds import alternate
from .rows import batches
from .tables import as_text
from .topics import B100

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MANY: Final = 500
BATCH_ROWS: Final = 10_000
"""Spark's ``spark.sql.execution.arrow.maxRecordsPerBatch``."""

RECORDS: Final = 1_000_000
MAX_RATIO: Final = 1.5
"""What many topics may cost."""

ABOUT: Final = (
    f"Rows with keys of 8 B and values of {B100.value_bytes} B, in Arrow batches of "
    f"{BATCH_ROWS:,}, written by a `RecordWriter` to one topic, and in turn to {MANY}, each of one "
    "partition. Every record is acknowledged by the broker."
)


def measure_many_topics(kafka: KafkaCluster, plan: Plan, many: int) -> Section:
    """Write the same rows to one topic and to many, with each client."""
    topics = [f"many-{number}" for number in range(many)]
    for topic in topics:
        kafka.create_topic(topic)
    one, all_of_them = "1 topic", f"{many} topics"
    comparisons = []
    for client in CLIENTS:
        rows = kafka.bootstrap_servers, client, plan.records
        runs = {
            name: partial(on_all_cores, write_milliseconds, *rows, chosen)
            for name, chosen in ((one, topics[:1]), (all_of_them, topics))
        }
        comparisons.append(Comparison(client, alternate(runs, plan)))
    return Section(
        "many-topics", "Writes to many topics", ABOUT, MILLISECONDS, tuple(comparisons), (one,)
    )


def write_milliseconds(
    bootstrap_servers: str, client: str, records: int, topics: Sequence[str]
) -> float:
    """Return the milliseconds of a write, once the writer is connected and warm."""
    given = {"kafka.bootstrap.servers": bootstrap_servers, "client": client}
    container = sink_container_for(parse_sink_options(given, QueryKind.BATCH))
    writer = container.record_writer()
    try:
        for batch in _batches(topics, BATCH_ROWS):
            writer.write(batch)
        writer.flush()
        rows = list(_batches(topics, records))
        began = time.perf_counter()
        for batch in rows:
            writer.write(batch)
        delivered = writer.flush()
        seconds = time.perf_counter() - began
    finally:
        container.shutdown_resources()
    if delivered.records != records:
        raise RuntimeError(f"{client} wrote {delivered.records} of {records} records")
    return seconds * 1_000


def _batches(topics: Sequence[str], records: int) -> Iterator[pa.RecordBatch]:
    names = itertools.cycle(topics)
    for group in batches(B100, 0, records):
        for start in range(0, group.num_rows, BATCH_ROWS):
            batch = group.slice(start, BATCH_ROWS)
            column = pa.array(itertools.islice(names, batch.num_rows), pa.string())
            yield batch.append_column("topic", column)


def main() -> None:
    """Print the table, and fail if a ratio is above ``MAX_RATIO``."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.many_topics", description="Compare one topic with many."
    )
    parser.add_argument("--runs", type=int, default=5, help="counted rounds (5)")
    parser.add_argument("--records", type=int, default=RECORDS, help=f"rows ({RECORDS:,})")
    parser.add_argument("--topics", type=int, default=MANY, help=f"how many are many ({MANY})")
    chosen = parser.parse_args()
    with KafkaCluster() as kafka:
        plan = Plan(runs=chosen.runs, records=chosen.records)
        section = measure_many_topics(kafka, plan, chosen.topics)
    print(as_text(section))
    for comparison in section.comparisons:
        one, many = comparison.samples
        ratio = many.median / one.median
        print(f"{comparison.case}: {many.competitor} take {ratio:.2f} times as long")
        if ratio > MAX_RATIO:
            raise SystemExit(f"more than {MAX_RATIO:g} times")


if __name__ == "__main__":
    main()
