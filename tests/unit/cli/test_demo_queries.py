from __future__ import annotations

import json
from decimal import Decimal
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyspark_kafka.adapters.memory.cluster import MemoryCluster
from pyspark_kafka.adapters.memory.record_writer import MemoryRecordWriter
from pyspark_kafka.cli import demo_queries
from pyspark_kafka.cli.demo_queries import (
    CHANNELS,
    COLUMNS,
    COUNTRIES,
    LATENCY,
    OrderFeed,
    aligned,
    batch_line,
    offsets_behind,
    orders,
    orders_by_country,
)
from pyspark_kafka.ports.record_schema import TYPES

if TYPE_CHECKING:
    import pytest

PROGRESS: dict[str, Any] = {
    "batchId": 3,
    "numInputRows": 1_500,
    "processedRowsPerSecond": 749.6,
    "sources": [
        {"endOffset": '{"t":{"0":1000,"1":2500}}', "latestOffset": '{"t":{"0":1200,"1":2500}}'}
    ],
}


def test_orders_are_the_same_in_every_run() -> None:
    """Two runs generate the same orders, and a longer run begins with a shorter one's."""
    assert list(orders(50)) == list(orders(80))[:50]


def test_the_number_of_orders() -> None:
    """The count is exact, also for no orders."""
    assert len(list(orders(321))) == 321
    assert list(orders(0)) == []


def test_an_order_is_json_of_a_known_shop() -> None:
    """Every value is JSON whose fields are from the shop's lists."""
    for order in orders(200):
        body = json.loads(order["value"])
        assert body["country"] in COUNTRIES
        assert Decimal(body["amount"]) * 100 == order["cents"]


def test_order_ids_are_unique() -> None:
    """No two orders share an id."""
    assert len({json.loads(order["value"])["order_id"] for order in orders(500)}) == 500


def test_an_order_has_a_key_and_a_header() -> None:
    """The key is the customer, and the header the channel."""
    for order in orders(100):
        assert order["key"].startswith(b"customer-")
        [header] = order["headers"]
        assert header["key"] == "channel"
        assert header["value"].decode() in CHANNELS


def test_orders_fit_into_the_embedded_broker() -> None:
    """The maximum number of orders fits into four partitions."""
    sizes = [len(order["key"]) + len(order["value"]) for order in orders(1_000)]
    assert max(sizes) < 200


def test_orders_are_keyed_by_country() -> None:
    """Values and headers stay as they are."""
    events = list(orders(50))
    values = [json.loads(event["value"]) for event in events]
    columns = {"value": values, "headers": [event["headers"] for event in events]}
    order = pa.struct([(name, pa.string()) for name in values[0]])
    schema = pa.schema([("value", order), ("headers", TYPES["headers"])])
    made = orders_by_country(pa.RecordBatch.from_pydict(columns, schema=schema))
    assert made.column("key").to_pylist() == [value["country"] for value in values]
    assert made.select(["value", "headers"]).to_pydict() == columns


def test_orders_are_sent_when_they_are_due(monkeypatch: pytest.MonkeyPatch) -> None:
    """The feed counts those that Kafka has, and ends with the last one."""
    now = 7.0
    monkeypatch.setattr(demo_queries, "time", SimpleNamespace(monotonic=lambda: now))
    cluster = MemoryCluster()
    cluster.create_topic("t")
    feed = OrderFeed(MemoryRecordWriter(cluster), "t", 5_000)
    feed.send_due()
    assert (feed.sent, feed.cents) == (0, 0)
    now = 7.5
    feed.send_due()
    assert feed.sent == 2_000
    now = 9.0
    feed.send_due()
    assert (feed.sent, feed.cents) == (5_000, sum(order["cents"] for order in orders(5_000)))


def test_a_line_fits_its_headings() -> None:
    """Numbers are aligned with their headings."""
    line = batch_line(PROGRESS, lag=200)
    assert len(line) == len(aligned(COLUMNS, COLUMNS))
    assert line.split() == ["3", "1,500", "750", "200"]


def test_a_line_of_a_continuous_query_has_its_latencies() -> None:
    """Those that are not known are marked: records may be without timestamps."""
    line = batch_line({**PROGRESS, "latencyMs": {"p50": 3, "p99": None}}, lag=0)
    assert len(line) == len(aligned(COLUMNS | LATENCY, COLUMNS | LATENCY)) <= 80
    assert line.split() == ["3", "1,500", "750", "0", "3", "-"]


def test_offsets_behind_the_latest() -> None:
    """Offsets are summed over partitions."""
    assert offsets_behind(PROGRESS) == 200


def test_a_report_without_latest_offsets() -> None:
    """Without latest offsets in the report, the batch has reached them."""
    source = {"endOffset": '{"t":{"0":1}}', "latestOffset": None}
    assert offsets_behind({**PROGRESS, "sources": [source]}) == 0
