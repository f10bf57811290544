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


def test_the_queries_of_the_readme_run(
    spark: SparkSession,
    kafka: KafkaCluster,
    topics: Topics,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The batch shows the rows that the README shows, and the stream copies them."""
    orders, copied = topics.create(3), topics.create(1)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
    for key, value in (("ada", "coffee"), ("bob", "tea")):
        producer.produce(orders, value, key, partition=0)
    assert producer.flush(30) == 0
    page = tmp_path / "README.md"
    page.write_text(
        README.read_text()
        .replace("broker:9092", kafka.bootstrap_servers)
        .replace('"orders"', f'"{orders}"')
        .replace('"orders-copy"', f'"{copied}"')
        .replace("/checkpoints/orders-copy", f"{tmp_path}/checkpoint")
    )
    document = DOCUMENTS.parse(page)
    # The third example ships the package; `tests/packaging` runs it without the package installed.
    batch, stream, _shipping = document.examples()

    batch.evaluate()
    assert capsys.readouterr().out.strip() in README.read_text()

    stream.evaluate()
    query = document.namespace["query"]
    query.processAllAvailable()
    query.stop()
    committed = {"subscribe": copied, "kafka__isolation__level": "read_committed"}
    rows = read(spark, kafka, OURS, **committed).collect()
    assert [(bytes(row.key), bytes(row.value)) for row in rows] == [
        (b"ada", b"coffee"),
        (b"bob", b"tea"),
    ]
