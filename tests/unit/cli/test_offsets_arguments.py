from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pyspark_kafka.cli.connection import Connection
from pyspark_kafka.cli.offsets_arguments import (
    ChangeSettings,
    DiffOffsetsSettings,
    ExportOffsetsSettings,
    RewriteOffsetsSettings,
    ShowOffsetsSettings,
    Target,
    UndoRewriteSettings,
)
from pyspark_kafka.cli.parser import parse_arguments
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

if TYPE_CHECKING:
    from pathlib import Path

CHECKPOINT = StoragePath("s3a://b/c")
SERVERS = ("--bootstrap-servers", "h:9092")


def test_without_options() -> None:
    """A checkpoint is enough, and Kafka's latest offsets are compared with."""
    assert parse_arguments(["offsets", "show", "s3a://b/c"]) == ShowOffsetsSettings(CHECKPOINT)
    assert parse_arguments(["offsets", "export", "s3a://b/c"]) == ExportOffsetsSettings(CHECKPOINT)
    assert parse_arguments(["offsets", "diff", "s3a://b/c", *SERVERS]) == DiffOffsetsSettings(
        CHECKPOINT, Latest(), Connection("h:9092")
    )
    assert parse_arguments(["offsets", "undo", "s3a://b/c"]) == UndoRewriteSettings(
        CHECKPOINT, ChangeSettings()
    )


def test_with_options() -> None:
    """All options end up in the settings; both checkpoints are on the same storage."""
    storage = ("--storage-option", "anon=true")
    kafka = (*SERVERS, "--client", "confluent", "--option", "kafka.client.id=x")
    change = ("--yes", "--dry-run", "--query-is-stopped", "--json")
    given = ("--to", "checkpoint:s3a://b/d", *storage, *kafka, *change)
    assert parse_arguments(["offsets", "rewrite", "s3a://b/c", *given]) == RewriteOffsetsSettings(
        StoragePath("s3a://b/c", '{"anon": true}'),
        StoragePath("s3a://b/d", '{"anon": true}'),
        Connection("h:9092", "confluent", (("kafka.client.id", "x"),)),
        ChangeSettings(is_confirmed=True, is_dry=True, query_is_stopped=True, as_json=True),
    )


def target(text: str) -> Target:
    settings = parse_arguments(["offsets", "diff", "c", "--with", text, *SERVERS])
    assert isinstance(settings, DiffOffsetsSettings)
    return settings.target


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("earliest", Earliest()),
        ("Latest", Latest()),
        ("group:a:b", CommittedOffsets("a:b")),
        ("2026-01-31T12:00:00Z", GlobalTimestamp(1_769_860_800_000, OnNoMatch.LATEST)),
        ("2026-01-31T13:00:00+01:00", GlobalTimestamp(1_769_860_800_000, OnNoMatch.LATEST)),
        ("checkpoint:/d", StoragePath("/d")),
    ],
)
def test_offsets(text: str, expected: Target) -> None:
    """Offsets are named by a word, a prefix or a time."""
    assert target(text) == expected


def test_offsets_of_a_file(tmp_path: Path) -> None:
    """A file has the JSON of the option startingOffsets."""
    file = tmp_path / "to.json"
    file.write_text('{"t":{"0":5},"u":"latest"}\n')
    expected = Specific(PartitionOffsets.from_json('{"t":{"0":5}}'), (("u", -1),))
    assert target(str(file)) == expected


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("[]", "holds no offsets: Expected e.g."),
        ("latest", "holds no offsets as JSON"),
        (None, "is neither a file nor one of"),
    ],
)
def test_no_offsets(
    content: str | None, problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Anything else is a wrong command line."""
    file = tmp_path / "to.json"
    if content is not None:
        file.write_text(content)
    with pytest.raises(SystemExit):
        target(str(file))
    assert problem in capsys.readouterr().err


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
def test_wrong_command_lines(
    given: tuple[str, ...], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is missing is named, and no secret is taken or shown."""
    with pytest.raises(SystemExit):
        parse_arguments(["offsets", *given])
    problems = capsys.readouterr().err
    assert problem in problems
    assert "geheim" not in problems
