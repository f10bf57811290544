"""The examples of the README, run with Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka import Producer

from tests.documents import DOCUMENTS, README

from .queries import OURS, read

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
    from pyspark.sql import SparkSession

    from pyspark_kafka.brokers import KafkaCluster

    from .topics import Topics


ORDERS: list[tuple[bytes | None, bytes]] = [(b"ada", b"coffee"), (b"bob", b"tea")]
SALES: list[tuple[bytes | None, bytes]] = [
    (None, b'{"drink": "coffee", "cups": 2}'),
    (None, b'{"drink": "tea", "cups": 1}'),
]


def test_the_queries_of_the_readme_run(
    spark: SparkSession,
    kafka: KafkaCluster,
    topics: Topics,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The batches show the rows that the README shows, and both streams copy the orders."""
    orders, copied, live, sales = (topics.create(1) for _ in range(4))

    def produce(topic: str, records: list[tuple[bytes | None, bytes]]) -> None:
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
        for key, value in records:
            producer.produce(topic, value, key, partition=0)
        assert producer.flush(30) == 0

    def records(topic: str) -> list[tuple[bytes, bytes]]:
        committed = {"subscribe": topic, "kafka__isolation__level": "read_committed"}
        rows = read(spark, kafka, OURS, **committed).collect()
        return [(bytes(row.key), bytes(row.value)) for row in rows]

    produce(orders, ORDERS)
    produce(sales, SALES)
    page = tmp_path / "README.md"
    page.write_text(
        README.read_text()
        .replace("broker:9092", kafka.bootstrap_servers)
        .replace('"orders"', f'"{orders}"')
        .replace('"orders-copy"', f'"{copied}"')
        .replace('"orders-live"', f'"{live}"')
        .replace('"sales"', f'"{sales}"')
        .replace("/checkpoints/", f"{tmp_path}/")
    )
    document = DOCUMENTS.parse(page)
    # The last example ships the package; `tests/packaging` runs it without the package installed.
    batch, stream, typed, continuous, _shipping = document.examples()

    batch.evaluate()
    assert capsys.readouterr().out.strip() in README.read_text()

    stream.evaluate()
    query = document.namespace["query"]
    query.processAllAvailable()
    query.stop()
    assert records(copied) == ORDERS

    typed.evaluate()
    assert capsys.readouterr().out.strip() in README.read_text()

    # It reads what comes after its start, as streams do by default.
    continuous.evaluate()
    query = document.namespace["query"]
    query.processAllAvailable()
    produce(orders, ORDERS)
    query.processAllAvailable()
    query.stop()
    assert records(live) == ORDERS
