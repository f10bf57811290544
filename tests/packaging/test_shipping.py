"""The package as users get it: as a wheel, and as a zip that Spark ships."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pyspark_kafka.brokers import connector_jars
from tests.documents import README, sources

if TYPE_CHECKING:
    from pyspark_kafka.brokers import KafkaCluster
    from tests.spark.topics import Topics

PROGRAMS = Path(__file__).parent / "programs"

pytestmark = pytest.mark.usefixtures("environment")


def run(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_zip_serves_executors_that_do_not_have_the_package(
    bare_python: Path, wheel: Path, kafka: KafkaCluster, topics: Topics, tmp_path: Path
) -> None:
    """Shipped as the README says, both clients read the JVM connector's rows in executors."""
    topic = topics.create(3)
    topics.fill(topic, {0: 120, 2: 30})
    shutil.copy(wheel, tmp_path / "pyspark_kafka.zip")
    shipping = tmp_path / "shipping.py"
    [example] = [source for source in sources(README) if "addPyFile" in source]
    shipping.write_text(example)
    jars = ",".join(map(str, connector_jars()))
    program = PROGRAMS / "compare_in_local_cluster.py"
    output = run(bare_python, program, kafka.bootstrap_servers, topic, shipping, jars)
    assert json.loads(output.splitlines()[-1]) == {
        "rows": 150,
        "batch confluent": 0,
        "batch kafka-python": 0,
        "stream confluent": 0,
        "stream kafka-python": 0,
    }


def test_spark_finds_an_installed_wheel_by_itself(
    bare_python: Path, wheel: Path, kafka: KafkaCluster, topics: Topics, tmp_path: Path
) -> None:
    """A wheel that is installed and neither imported nor registered is found, and reads."""
    topic = topics.create(2)
    topics.fill(topic, {1: 25})
    python = shutil.copytree(bare_python.parents[1], tmp_path / "venv", symlinks=True)
    installed = python / "bin" / "python"
    run(installed, "-m", "pip", "install", "--no-deps", "--no-index", "--quiet", wheel)
    output = run(installed, PROGRAMS / "read_with_spark.py", kafka.bootstrap_servers, topic)
    assert output.splitlines()[-1] == "25"
