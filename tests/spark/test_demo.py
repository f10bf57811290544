import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyspark

import pyspark_kafka
from pyspark_kafka import QueryKind, parse_sink_options, sink_container_for
from pyspark_kafka.bootstrap.container import closing_clients
from pyspark_kafka.brokers import KafkaCluster, temporary_topics

ORDERS = 2_000
MINE = ("--topic", "demo-mine")
TYPED = "Values are read from JSON, and written as JSON (valueFormat=json)."
LEFT_BY_SPARK = {"artifacts"} if pyspark.__version__ == "4.0.0" else set()
HOME = Path(str(pyspark_kafka.__file__)).parents[1]


def demo(directory: Path, *options: str) -> subprocess.CompletedProcess[str]:
    inherited = os.environ.get("PYTHONPATH")
    path = os.pathsep.join([str(HOME), inherited] if inherited else [str(HOME)])
    return subprocess.run(
        [sys.executable, "-m", "pyspark_kafka", "demo", *options],
        capture_output=True,
        text=True,
        check=False,
        cwd=directory,
        env={**os.environ, "PYTHONPATH": path, "TMPDIR": str(directory)},
    )


def rows_of_batches(lines: list[str]) -> int:
    shown = [line.split() for line in lines if line.startswith("batch ")]
    return sum(int(words[2].replace(",", "")) for words in shown)


def test_demo(tmp_path):
    ended = demo(tmp_path, "--events", str(ORDERS), "--client", "kafka-python")
    assert (ended.returncode, ended.stderr) == (0, "")
    lines = ended.stdout.splitlines()
    assert TYPED in lines
    assert rows_of_batches(lines) == ORDERS
    assert any("country" in line and "revenue" in line for line in lines)
    assert any(line.startswith("|     DE|") for line in lines)
    assert any(line.startswith("Kafka -> Spark -> Kafka") for line in lines)
    assert any(line.startswith(f"All {ORDERS:,} events are in the result") for line in lines)
    assert max(map(len, lines)) <= 80
    assert "\r" not in ended.stdout
    assert {path.name for path in tmp_path.iterdir()} == LEFT_BY_SPARK


def test_continuous_demo(tmp_path):
    ended = demo(tmp_path, "--events", str(ORDERS), "--continuous", "--client", "confluent")
    assert (ended.returncode, ended.stderr) == (0, "")
    lines = ended.stdout.splitlines()
    assert TYPED in lines
    assert rows_of_batches(lines) == ORDERS
    assert all("p50" in line and "p99" in line for line in lines if line.startswith("batch "))
    assert any(line.startswith("|     DE|") for line in lines)
    assert any(line.startswith(f"All {ORDERS:,} events are in the result") for line in lines)
    assert max(map(len, lines)) <= 80
    assert list(tmp_path.iterdir()) == []


def test_demo_of_a_topic(kafka, tmp_path):
    with temporary_topics(kafka.bootstrap_servers, {"demo-mine": 2}, timeout_seconds=30):
        empty = demo(tmp_path, "--bootstrap-servers", kafka.bootstrap_servers, *MINE)
        write(kafka, [b"12345"] * 100)
        ended = demo(tmp_path, "--bootstrap-servers", kafka.bootstrap_servers, *MINE)
    assert (empty.returncode, ended.returncode, empty.stderr + ended.stderr) == (0, 0, "")
    assert any(line.startswith("All 0 records were read") for line in empty.stdout.splitlines())
    lines = ended.stdout.splitlines()
    assert any("partition" in line and "avg value bytes" in line for line in lines)
    assert any(line.startswith("All 100 records were read") for line in lines)


def write(kafka: KafkaCluster, values: list[bytes]) -> None:
    given = {"kafka.bootstrap.servers": kafka.bootstrap_servers, "topic": "demo-mine"}
    container = sink_container_for(parse_sink_options(given, QueryKind.BATCH))
    with closing_clients(container):
        writer = container.record_writer()
        writer.write(pa.RecordBatch.from_pydict({"value": values}), "demo-mine")
        assert writer.flush().records == len(values)
