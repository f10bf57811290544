"""A Declarative Pipeline from a topic to tables and to another topic."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.documents import ROOT

from .queries import OURS, read

pytestmark = pytest.mark.skipif(
    find_spec("pyspark.pipelines") is None, reason="this Spark has no pipelines"
)

PAGE = ROOT / "docs" / "guides" / "sql-and-pipelines.md"

FILE = re.compile(r"^`([\w/.-]+)`[^\n]*:\n\n```\w+\n(.*?)```", re.DOTALL | re.MULTILINE)
"""A file of the pipeline on the page: its name, and its text in a block of code."""


def test_the_pipeline_of_the_page_runs(connect, connect_url, kafka, topics, tmp_path):
    orders, copies = topics.create(), topics.create()
    names = {
        "broker:9092": kafka.bootstrap_servers,
        '"orders"': f'"{orders}"',
        '"orders-copy"': f'"{copies}"',
        "/pipelines/orders": str(tmp_path / "state"),
    }
    write_project(tmp_path, names)
    topics.pairs(orders, [(b"ada", b"coffee"), (b"bob", b"tea")])
    run(tmp_path, connect_url)
    topics.pairs(orders, [(b"ada", b"tea")])
    run(tmp_path, connect_url)
    drinks = connect.sql("SELECT drink, orders FROM drinks ORDER BY drink").collect()
    assert [tuple(row) for row in drinks] == [("coffee", 1), ("tea", 2)]
    copied = read(connect, kafka, OURS, subscribe=copies).orderBy("offset").collect()
    assert [(row.key, row.value) for row in copied] == [
        (b"ada", b"coffee"),
        (b"bob", b"tea"),
        (b"ada", b"tea"),
    ]


def write_project(directory: Path, names: dict[str, str]) -> None:
    text = PAGE.read_text()
    for shown, used in names.items():
        assert shown in text
        text = text.replace(shown, used)
    for name, content in FILE.findall(text):
        file = directory / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(content)


def run(project: Path, url: str) -> None:
    command = [f"{os.environ['SPARK_HOME']}/bin/spark-pipelines", "run", "--remote", url]
    done = subprocess.run(
        command,
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Run is COMPLETED" in done.stderr + done.stdout
