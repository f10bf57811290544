"""The tutorials and guides whose examples need Spark and a real Kafka."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.documents import DOCS, DOCUMENTS, WITH_SPARK

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from pyspark_kafka.brokers import KafkaCluster

    from .topics import Topics

TABLE = re.compile(r"^```text\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("name", WITH_SPARK)
def test_a_page_shows_what_it_says(
    name: str,
    spark: SparkSession,
    kafka: KafkaCluster,
    topics: Topics,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The examples of a page run in their order, and print the tables that the page has."""
    text = (DOCS / name).read_text()
    code = text.replace("localhost:9092", kafka.bootstrap_servers).replace("/data/", f"{tmp_path}/")
    for topic in WITH_SPARK[name]:
        code = re.sub(rf'"{topic}"(?=[,):])', f'"{topics.create(1)}"', code)
    page = tmp_path / "page.md"
    page.write_text(code)
    for example in DOCUMENTS.parse(page).examples():
        example.evaluate()
    printed = capsys.readouterr().out.split()
    assert printed == [word for table in TABLE.findall(text) for word in table.split()]
    assert spark.streams.active == []
