from argparse import Namespace
from types import SimpleNamespace
from typing import Any

import pytest

from pyspark_kafka.__main__ import main
from pyspark_kafka.cli.arguments import Connection
from pyspark_kafka.cli.offsets import Target, checkpoint_of
from pyspark_kafka.domain.checkpoints.storage_path import StoragePath
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.reading.offset_limits import (
    CommittedOffsets,
    Earliest,
    GlobalTimestamp,
    Latest,
    OnNoMatch,
    Specific,
)
from tests.unit.cli.arguments import parsed, refused

CHECKPOINT = StoragePath("s3a://b/c")
SERVERS = ("--bootstrap-servers", "h:9092")


def test_a_checkpoint_is_enough_and_kafkas_latest_offsets_are_compared_with():
    for command in ("show", "export", "undo"):
        assert checkpoint_of(given(command, "s3a://b/c")) == CHECKPOINT
    assert parsed("offsets", "export", "s3a://b/c")["source"] is None
    diff = given("diff", "s3a://b/c", *SERVERS)
    assert (checkpoint_of(diff), diff.target) == (CHECKPOINT, Latest())
    assert Connection.given(diff) == Connection("h:9092")
    undo = given("undo", "s3a://b/c")
    assert (undo.yes, undo.dry_run, undo.query_is_stopped, undo.json) == (False,) * 4


def test_each_option_has_its_value():
    storage = ("--storage-option", "anon=true")
    kafka = (*SERVERS, "--client", "confluent", "--option", "kafka.client.id=x")
    change = ("--yes", "--dry-run", "--query-is-stopped", "--json")
    options = ("--to", "checkpoint:s3a://b/d", *storage, *kafka, *change)
    rewrite = given("rewrite", "s3a://b/c", *options)
    assert checkpoint_of(rewrite) == StoragePath("s3a://b/c", '{"anon": true}')
    assert rewrite.target == StoragePath("s3a://b/d")
    expected = Connection("h:9092", "confluent", (("kafka.client.id", "x"),))
    assert Connection.given(rewrite) == expected
    assert (rewrite.yes, rewrite.dry_run, rewrite.query_is_stopped, rewrite.json) == (True,) * 4


def test_two_checkpoints_are_on_the_same_storage(monkeypatch):
    opened: list[StoragePath] = []

    def opening(path: StoragePath) -> Any:
        opened.append(path)
        return SimpleNamespace(read=lambda: SimpleNamespace(offsets={}))

    monkeypatch.setattr("pyspark_kafka.bootstrap.tools.offset_checkpoint_at", opening)
    storage = ("--storage-option", "anon=true")
    assert main(["offsets", "diff", "s3a://b/c", "--with", "checkpoint:s3a://b/d", *storage]) == 0
    assert opened == [StoragePath(f"s3a://b/{name}", '{"anon": true}') for name in "cd"]


def given(*argv: str) -> Namespace:
    return Namespace(**parsed("offsets", *argv))


def target(text: str) -> Target:
    return given("diff", "c", "--with", text, *SERVERS).target


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("earliest", Earliest()),
        ("Latest", Latest()),
        ("group:a:b", CommittedOffsets("a:b")),
        ("2026-01-31T12:00:00Z", GlobalTimestamp(1_769_860_800_000, OnNoMatch.LATEST)),
        ("2026-01-31T13:00:00+01:00", GlobalTimestamp(1_769_860_800_000, OnNoMatch.LATEST)),
        ("checkpoint:/d", StoragePath("/d")),
        ('{"t":{"0":5}}', Specific(PartitionOffsets.from_json('{"t":{"0":5}}'))),
    ],
)
def test_offsets_are_a_word_a_prefix_a_time_or_json(text, expected):
    assert target(text) == expected


def test_offsets_of_a_file(tmp_path):
    file = tmp_path / "to.json"
    file.write_text('{"t":{"0":5},"u":"latest"}\n')
    expected = Specific(PartitionOffsets.from_json('{"t":{"0":5}}'), (("u", -1),))
    assert target(str(file)) == expected


@pytest.mark.parametrize("text", ["{", '{"t":0}', "x" * 5_000])
def test_a_long_text_is_no_file(text, capsys):
    problem = refused(["offsets", "diff", "c", "--with", text, *SERVERS], capsys)
    assert "argument --with: " in problem


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("[]", "holds no offsets: Expected e.g."),
        ("latest", "holds no offsets as JSON"),
        (None, "is not a file, and not one of"),
    ],
)
def test_anything_but_offsets_is_a_wrong_command_line(content, problem, tmp_path, capsys):
    file = tmp_path / "to.json"
    if content is not None:
        file.write_text(content)
    assert problem in refused(["offsets", "diff", "c", "--with", str(file), *SERVERS], capsys)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (("diff", "c"), "required: --bootstrap-servers"),
        (("rewrite", "c", "--to", "latest"), "required: --bootstrap-servers"),
        (("rewrite", "c", *SERVERS), "required: --to"),
        (("show", "s3://key:geheim@b/c"), "the URL holds a secret"),
        (("diff", "c", "--with", "checkpoint:s3://key:geheim@b/c"), "the URL holds a secret"),
    ],
)
def test_what_is_missing_is_named_and_no_secret_is_taken_or_shown(given, problem, capsys):
    problems = refused(["offsets", *given], capsys)
    assert problem in problems
    assert "geheim" not in problems
