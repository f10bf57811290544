import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pyspark_kafka.__main__ import main
from pyspark_kafka.adapters.checkpoints.metadata_log import FsspecMetadataLog
from pyspark_kafka.brokers import KafkaCluster
from pyspark_kafka.domain.checkpoints.entries import SINK_LOG, BatchState, SinkLogEntry
from pyspark_kafka.domain.checkpoints.storage_path import StoragePath
from pyspark_kafka.domain.options.sink import sink_log_path
from pyspark_kafka.domain.writing.transaction import Transaction

from .commands import SECONDS, environment, in_terminal
from .test_lag_command import METADATA, Checkpoint

PROGRAM = Path(__file__).with_name("programs") / "kill_at_each_step.py"

RECORDS = 10


@pytest.fixture
def checkpoint(tmp_path):
    return Checkpoint(tmp_path / "checkpoint")


@pytest.fixture
def topic(topics):
    name = topics.create(2)
    for partition in range(2):
        topics.numbers(name, partition, range(RECORDS))
    return name


class Offsets:
    """The command on one checkpoint, in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str], checkpoint: str, *more: str) -> None:
        self._capsys = capsys
        self._checkpoint = checkpoint
        self._more = more

    def fails(self, action: str, *more: str) -> str:
        assert main(["offsets", action, self._checkpoint, *self._more, *more]) == 1
        [line] = self._capsys.readouterr().err.splitlines()
        return line

    def text(self, action: str, *more: str) -> str:
        assert main(["offsets", action, self._checkpoint, *self._more, *more]) == 0
        printed = self._capsys.readouterr()
        assert not printed.err
        return printed.out

    def json(self, action: str, *more: str) -> Any:
        return json.loads(self.text(action, "--json", *more))

    def committed(self) -> list[int]:
        return [each["committed"] for each in self.json("show")["partitions"]]


def end(topic: str, *offsets: int) -> str:
    numbered = {str(number): offset for number, offset in enumerate(offsets)}
    return json.dumps({topic: numbered}, separators=(",", ":"))


def two_batches(checkpoint: Checkpoint, topic: str) -> None:
    checkpoint.begin(0, end(topic, 2, 3))
    checkpoint.commit(0)
    checkpoint.begin(1, end(topic, 4, 9))


def servers(kafka: KafkaCluster, client: str) -> tuple[str, ...]:
    return "--bootstrap-servers", kafka.bootstrap_servers, "--client", client


@pytest.mark.parametrize("state", BatchState)
def test_show_tells_what_an_exactly_once_sink_has_written(capsys, checkpoint, state):
    two_batches(checkpoint, "t")
    offsets = Offsets(capsys, str(checkpoint.directory))
    assert offsets.json("show")["sink"] is None
    directory = sink_log_path(StoragePath(str(checkpoint.directory))).child(SINK_LOG)
    entry = SinkLogEntry(1, state, (Transaction("id", 1, 2),))
    FsspecMetadataLog(directory).add(0, entry.to_bytes())
    assert offsets.json("show")["sink"] == {"batchId": 1, "state": state.value}
    assert f"batch 1 is {state.value}, 1 transaction " in offsets.text("show") + " "
    FsspecMetadataLog(directory).add(1, b"v2\n{}")
    assert "[KAFKA_METADATA_LOG]" in offsets.fails("show")


def test_export_of_several_sources(checkpoint, capsys):
    checkpoint.begin(0, end("a", 1), "12", end("b", 2))
    checkpoint.commit(0)
    offsets = Offsets(capsys, str(checkpoint.directory))
    assert offsets.text("export") == '{"a":{"0":1},"b":{"0":2}}\n'
    assert offsets.text("export", "--source", "2") == '{"b":{"0":2}}\n'
    assert "Its Kafka sources are: 0, 2" in offsets.fails("export", "--source", "1")
    checkpoint.begin(1, end("a", 1), "12", end("a", 2))
    checkpoint.commit(1)
    assert "Name one of them with --source: 0, 2" in offsets.fails("export")


def test_differences(kafka, checkpoint, topic, client, capsys):
    two_batches(checkpoint, topic)
    offsets = Offsets(capsys, str(checkpoint.directory))
    in_kafka = servers(kafka, client)

    def differences(*more: str) -> list[int]:
        return [each["difference"] for each in offsets.json("diff", *more)["partitions"]]

    assert differences(*in_kafka) == [8, 7]
    assert differences("--with", "earliest", *in_kafka) == [-2, -3]
    other = Checkpoint(checkpoint.directory.with_name("other"))
    other.begin(7, end(topic, 2, 5, 6))
    other.commit(7)
    lines = offsets.text("diff", "--with", f"checkpoint:{other.directory}").splitlines()
    rows = [line.split() for line in lines if topic in line]
    assert rows == [
        [topic, "0", "2", "2", "0"],
        [topic, "1", "3", "5", "+2"],
        [topic, "2", "none", "6"],
    ]


def test_rewrite_and_undo(kafka, checkpoint, topic, client, capsys):
    two_batches(checkpoint, topic)
    directory = checkpoint.directory
    files = {name: (directory / "offsets" / name).read_bytes() for name in ("0", "1")}
    offsets = Offsets(capsys, str(directory))
    confirmed = ("--yes", "--query-is-stopped")
    (directory / "to.json").write_text(json.dumps({topic: {"1": 5}}))
    for to, expected in (
        ("earliest", [0, 0]),
        ("latest", [RECORDS, RECORDS]),
        ("2001-01-01", [0, 0]),
        (str(directory / "to.json"), [2, 5]),
        ("checkpoint:" + str(directory), [2, 3]),
    ):
        given = ("--to", to, *servers(kafka, client))
        plan = offsets.json("rewrite", *given, "--query-is-stopped", "--dry-run")
        assert not plan["written"]
        assert offsets.committed() == [2, 3]
        assert offsets.json("rewrite", *given, *confirmed)["written"]
        assert offsets.committed() == [each["new"] for each in plan["partitions"]] == expected
        assert offsets.json("show")["plannedBatch"]["id"] == 1
        assert not list((directory / "offsets").glob(".[01].crc"))
        offsets.json("undo", *confirmed)
        assert {n: (directory / "offsets" / n).read_bytes() for n in files} == files
    assert "There is no rewrite to undo" in offsets.fails("undo")


@pytest.mark.parametrize("storage", ["s3", "hdfs"], indirect=True)
def test_a_remote_checkpoint(kafka, topic, tmp_path, capsys, storage):
    text = "\n".join(["v1", METADATA, end(topic, 2, 3)])
    assert FsspecMetadataLog(storage.child("offsets")).add(0, text.encode())
    assert FsspecMetadataLog(storage.child("commits")).add(0, b"v1\n{}")
    (tmp_path / "keys.json").write_text(storage.storage_options)
    offsets = Offsets(capsys, storage.url, "--storage-options-file", str(tmp_path / "keys.json"))
    offsets.text("rewrite", "--to", "latest", *servers(kafka, "kafka-python"), "--yes")
    assert offsets.committed() == [RECORDS, RECORDS]
    offsets.text("undo", "--yes")
    assert offsets.committed() == [2, 3]


@pytest.mark.parametrize("action", ["rewrite", "undo"])
def test_killed_at_any_step(kafka, checkpoint, topic, tmp_path, capsys, action):
    two_batches(checkpoint, topic)
    to = ("--to", "latest", *servers(kafka, "kafka-python"))
    confirmed = ("--yes", "--query-is-stopped")
    old, new = [2, 3], [RECORDS, RECORDS]
    given = (*to, *confirmed)
    if action == "undo":
        Offsets(capsys, str(checkpoint.directory)).text("rewrite", *given)
        old, new, given = new, old, confirmed
    subprocess.run(
        [
            *(sys.executable, str(PROGRAM), str(checkpoint.directory), str(tmp_path / "copies")),
            *("offsets", action, "{}", *given),
        ],
        env=environment(),
        check=True,
    )
    copies = sorted((tmp_path / "copies").iterdir(), key=lambda copy: int(copy.name))
    found = []
    for copy in copies:
        offsets = Offsets(capsys, str(copy))
        found.append(offsets.committed())
        if found[-1] == old:
            offsets.text(action, *given)
        assert offsets.committed() == new
    assert len(found) > 10
    assert (found[0], found[-1]) == (old, new)
    assert found == sorted(found, key=lambda each: each == new)


def test_a_question(kafka, checkpoint, topic, capsys):
    two_batches(checkpoint, topic)
    offsets = Offsets(capsys, str(checkpoint.directory))
    given = ("--to", "latest", *servers(kafka, "kafka-python"), "--query-is-stopped")
    for answer, expected in ((b"n\n", [2, 3]), (b"y\n", [RECORDS, RECORDS])):
        with in_terminal("offsets", "rewrite", str(checkpoint.directory), *given) as terminal:
            terminal.read_until(lambda screen: b"[y/N]" in screen)
            terminal.type(answer)
            assert terminal.process.wait(SECONDS) == 0
        assert b"which is dropped" in terminal.screen
        assert offsets.committed() == expected
