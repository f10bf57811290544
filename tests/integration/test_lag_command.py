import json
import re
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pyspark_kafka.brokers import KafkaCluster
from pyspark_kafka.testing import await_until

from .commands import in_terminal, run, running

METADATA = '{"batchWatermarkMs":0,"batchTimestampMs":1795251150969,"conf":{}}'


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint, as Spark writes it."""

    directory: Path

    def begin(self, batch_id: int, *ends: str, version: str = "v1") -> None:
        self._write("offsets", batch_id, "\n".join([version, METADATA, *ends]))

    def commit(self, batch_id: int) -> None:
        self._write("commits", batch_id, 'v1\n{"nextBatchWatermarkMs":0}')

    def _write(self, log: str, batch_id: int, text: str) -> None:
        (self.directory / log).mkdir(parents=True, exist_ok=True)
        (self.directory / log / f".{batch_id}.crc").write_bytes(b"crc\0")
        (self.directory / log / f".{batch_id}.1f-2.tmp").write_text(text)
        (self.directory / log / f".{batch_id}.1f-2.tmp").rename(
            self.directory / log / str(batch_id)
        )


@pytest.fixture
def checkpoint(tmp_path):
    return Checkpoint(tmp_path / "checkpoint")


def lag(kafka: KafkaCluster, checkpoint: Checkpoint, *more: str) -> list[str]:
    servers = ("--bootstrap-servers", kafka.bootstrap_servers)
    return ["lag", "--checkpoint", str(checkpoint.directory), *servers, *more]


def answer(*arguments: str) -> Any:
    ended = run(*arguments, "--json")
    assert (ended.returncode, ended.stderr) == (0, "")
    return json.loads(ended.stdout)


def lags(look: Any) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for each in look["partitions"]:
        found.setdefault(each["source"], []).append(each["lag"])
    return found


def test_a_query_of_several_sources(kafka, topics, client, checkpoint):
    topic, other = topics.create(2), topics.create()
    topics.numbers(topic, 0, range(10))
    topics.numbers(topic, 1, range(3))
    topics.numbers(other, 0, range(4))
    checkpoint.begin(7, "12", f'{{"{topic}":{{"0":6}}}}', "-", f'{{"{other}": {{"0": 4}}}}')
    checkpoint.commit(7)
    checkpoint.begin(8, "13", f'{{"{topic}":{{"0":9}}}}', "-", f'{{"{other}": {{"0": 4}}}}')
    look = answer(*lag(kafka, checkpoint, "--client", client))
    assert look["committedBatch"] == {"id": 7, "begun": "2026-11-21T08:52:30.969Z"}
    assert look["inFlightBatch"]["id"] == 8
    assert look["lag"] == {"total": 7, "min": 0, "max": 4, "avg": 7 / 3, "exact": True}
    assert lags(look) == {"1": [4, 3], "3": [0]}


def test_a_checkpoint_without_a_commit(kafka, topics, checkpoint):
    topic = topics.create()
    topics.numbers(topic, 0, range(3))
    checkpoint.begin(0, f'{{"{topic}":{{"0":1}}}}')
    ended = run(*lag(kafka, checkpoint, "--once"))
    assert (ended.returncode, ended.stderr) == (0, "")
    assert re.search("committed +no batch yet", ended.stdout)
    with running(*lag(kafka, checkpoint, "--json", "--interval", "0.1")) as started:
        assert json.loads(started.await_line(bool))["lag"] is None
        checkpoint.commit(0)
        started.await_line(lambda line: (json.loads(line)["lag"] or {}).get("total") == 2)
        assert started.end(signal.SIGINT) == 0
        assert not started.errors


def test_a_query_without_kafka(kafka, checkpoint):
    checkpoint.begin(0, "12")
    checkpoint.commit(0)
    assert "The query has no Kafka source" in run(*lag(kafka, checkpoint)).stdout


@pytest.mark.parametrize("client", ["confluent", "kafka-python"])
@pytest.mark.parametrize(
    ("written", "more", "problem"),
    [
        ("", (), "There is no checkpoint of a streaming query, or its first batch has not begun."),
        ("v9\n{}\n-", (), "maximum supported log version is v2"),
        (
            'v1\n{}\n{"t":{"0":1}}',
            ("--option", "kafka.default.api.timeout.ms=1000"),
            "No Kafka broker answered at 127.0.0.1:1 within 1 s",
        ),
        (
            "",
            (
                "--option=kafka.security.protocol=SASL_SSL",
                "--command-config={directory}/client.properties",
            ),
            "Option 'kafka.sasl.jaas.config' must be",
        ),
        ("", ("--storage-option", "auto_mkdir=geheim", "--option", "nonsense=1"), "nonsense"),
    ],
)
def test_what_goes_wrong_is_one_line(checkpoint, client, written, more, problem):
    if written:
        for log in ("offsets", "commits"):
            (checkpoint.directory / log).mkdir(parents=True)
            (checkpoint.directory / log / "0").write_text(written)
    checkpoint.directory.mkdir(exist_ok=True)
    (checkpoint.directory / "client.properties").write_text("sasl.jaas.config=geheim")
    more = tuple(option.format(directory=checkpoint.directory) for option in more)
    servers = ("--bootstrap-servers", "127.0.0.1:1", "--client", client)
    ended = run("lag", "--checkpoint", str(checkpoint.directory), *servers, *more)
    assert (ended.returncode, ended.stdout) == (1, "")
    [line] = ended.stderr.splitlines()
    assert line.startswith("error: [KAFKA_")
    assert problem in line
    assert "geheim" not in line


def test_a_storage_that_refuses(s3, kafka, tmp_path):
    given = ("--checkpoint", f"s3a://no-such-bucket/{s3.new_bucket()}")
    options = json.loads(s3.storage_options)
    keys = tmp_path / "storage.json"
    keys.write_text(s3.storage_options)
    servers = ("--bootstrap-servers", kafka.bootstrap_servers)
    ended = run("lag", *given, *servers, "--storage-options-file", str(keys))
    assert (ended.returncode, ended.stdout) == (1, "")
    [line] = ended.stderr.splitlines()
    assert "no-such-bucket" in line
    assert options["secret"] not in line


def test_a_terminal(kafka, topics, checkpoint):
    topic = topics.create(40)
    ends = ",".join(f'"{number}":0' for number in range(40))
    checkpoint.begin(0, f'{{"{topic}":{{{ends}}}}}')
    checkpoint.commit(0)
    with in_terminal(*lag(kafka, checkpoint, "--interval", "0.1")) as terminal:
        for wanted in (b"caught up", b"1 record", b"caught up"):
            # A frame comes in pieces, and ends in the partitions that the screen has no room for.
            terminal.read_until(lambda screen: b" more)" in screen.partition(wanted)[2])  # noqa: B023
            if wanted == b"caught up":
                topics.numbers(topic, 3, range(1))
                checkpoint.begin(1, f'{{"{topic}":{{{ends}}}}}'.replace('"3":0', '"3":1'))
            else:
                checkpoint.commit(1)
            terminal.screen = b""
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.read_rest() == 0
    assert terminal.screen.rstrip().endswith(b"\x1b[?25h")


def test_a_failed_measurement_is_not_the_last(kafka, topics, checkpoint):
    topic = topics.create()
    topics.numbers(topic, 0, range(9))
    checkpoint.begin(0, f'{{"{topic}":{{"0":1}}}}')
    checkpoint.commit(0)
    with running(*lag(kafka, checkpoint, "--json", "--interval", "0.1")) as started:
        assert json.loads(started.await_line(bool))["lag"]["total"] == 8
        checkpoint.begin(1, "-", version="v9")
        await_until(lambda: len(started.errors) > 0)
        checkpoint.begin(1, f'{{"{topic}":{{"0":9}}}}')
        checkpoint.commit(1)
        started.await_line(lambda line: json.loads(line)["lag"]["total"] == 0)
        assert started.end(signal.SIGTERM) == 0
    assert "maximum supported log version is v2" in started.errors[0]
