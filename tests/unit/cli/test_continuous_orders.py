from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pyarrow as pa

from pyspark_kafka.cli.continuous_orders import HEADINGS, orders_by_country, report_line
from pyspark_kafka.cli.events import orders
from pyspark_kafka.domain.continuous.messages import TaskProgress
from pyspark_kafka.domain.continuous.progress import EpochProgress, LatencyHistogram, QueryIdentity
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.ports.reading import TYPES

PARTITION = TopicPartition("t", 0)
REPORT = EpochProgress(
    query=QueryIdentity("id", "run"),
    source="",
    sink="",
    epoch=3,
    timestamp_ms=0,
    duration_ms=1_000,
    start=PartitionOffsets({PARTITION: 0}),
    end=PartitionOffsets({PARTITION: 4_000}),
    latest=PartitionOffsets({PARTITION: 4_400}),
    work=TaskProgress(4_000, 4_000, LatencyHistogram.of([3] * 99 + [12] * 2)),
    tasks=2,
    restarts=1,
)


def test_orders_are_keyed_by_country() -> None:
    """Values and headers stay as they are."""
    events = list(orders(50))
    values = [json.loads(event.value) for event in events]
    columns: dict[str, list[Any]] = {
        "value": values,
        "headers": [
            [{"key": name, "value": value} for name, value in event.headers] for event in events
        ],
    }
    order = pa.struct([(name, pa.string()) for name in values[0]])
    schema = pa.schema([("value", order), ("headers", TYPES["headers"])])
    made = orders_by_country(pa.RecordBatch.from_pydict(columns, schema=schema))
    assert made.column("key").to_pylist() == [value["country"] for value in values]
    assert made.select(["value", "headers"]).to_pydict() == columns


def test_a_line_fits_its_headings() -> None:
    """Numbers are aligned with their headings."""
    line = report_line(REPORT)
    assert len(line) == len(HEADINGS) <= 80
    assert line.split() == ["3", "4,000", "4,000", "400", "3", "12", "1"]


def test_what_is_not_known_is_marked() -> None:
    """Without a broker's answer there is no lag, and without timestamps no latency."""
    line = report_line(replace(REPORT, latest=None, work=TaskProgress(4_000, 4_000)))
    assert line.split() == ["3", "4,000", "4,000", "?", "-", "-", "1"]
