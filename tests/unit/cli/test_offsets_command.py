import io
import json
import subprocess
import sys

import pytest

from pyspark_kafka.__main__ import main
from tests.unit.cli.arguments import write_files


@pytest.fixture
def checkpoint(tmp_path):
    return write_files(
        tmp_path,
        offsets_0='v1\n{"batchTimestampMs":1795251150969}\n{"t":{"0":4,"1":2}}',
        commits_0="v1\n{}",
        offsets_1='v1\n{"batchTimestampMs":1795251160969}\n{"t":{"0":9,"1":2}}',
    )


def test_a_line_for_each_partition_has_both_offsets_and_their_difference(checkpoint, capsys):
    assert main(["offsets", "show", checkpoint]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["t", "0", "4", "9", "+5"] in lines
    assert ["t", "1", "2", "2", "0"] in lines
    assert main(["offsets", "export", checkpoint]) == 0
    assert capsys.readouterr().out == '{"t":{"0":4,"1":2}}\n'
    assert main(["offsets", "show", checkpoint, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [each["planned"] for each in shown["partitions"]] == [9, 2]


def test_a_rewrite_to_another_checkpoint(checkpoint, tmp_path, capsys):
    seventh = {"offsets_7": 'v1\n{}\n{"t":{"0":1}}', "commits_7": "v1\n{}"}
    other = write_files(tmp_path / "other", **seventh)
    given = ["offsets", "rewrite", checkpoint, "--to", f"checkpoint:{other}"]
    assert main(given) == 1
    assert "[KAFKA_QUERY_IS_RUNNING] " in capsys.readouterr().err
    stopped = "--query-is-stopped"
    assert main([*given, stopped, "--json"]) == 1
    assert "confirm the change with --yes" in capsys.readouterr().err
    assert main([*given, stopped, "--dry-run"]) == 0
    assert "Nothing was written." in capsys.readouterr().out
    assert main([*given, stopped, "--yes"]) == 0
    shown = capsys.readouterr().out
    assert "batch 1, which is dropped" in shown
    assert "To undo it" in shown
    assert ["t", "0", "4", "1", "-3"] in [line.split() for line in shown.splitlines()]
    assert main(["offsets", "export", checkpoint]) == 0
    assert capsys.readouterr().out == '{"t":{"0":1,"1":2}}\n'
    assert main(["offsets", "undo", checkpoint, stopped, "--yes"]) == 0
    shown = capsys.readouterr().out
    assert "batch 1, which is restored" in shown
    assert shown.endswith("Done.\n")
    assert main(["offsets", "undo", checkpoint, "--yes"]) == 1
    assert "There is no rewrite to undo" in capsys.readouterr().err


@pytest.fixture
def rewrite(checkpoint, tmp_path):
    """Return a command that moves t-0 from 4 to 1."""
    seventh = {"offsets_7": 'v1\n{}\n{"t":{"0":1}}', "commits_7": "v1\n{}"}
    other = write_files(tmp_path / "other", **seventh)
    return ["offsets", "rewrite", checkpoint, "--to", f"checkpoint:{other}", "--query-is-stopped"]


def first_offset(checkpoint: str, capsys: pytest.CaptureFixture[str]) -> int:
    assert main(["offsets", "export", checkpoint]) == 0
    offset: int = json.loads(capsys.readouterr().out)["t"]["0"]
    return offset


@pytest.mark.parametrize(
    ("answer", "is_written"), [("y\n", True), ("no\n", False), ("", False)], ids=repr
)
def test_the_answer_on_a_terminal_decides(
    checkpoint, rewrite, monkeypatch, capsys, answer, is_written
):
    """The end of the input, which Ctrl-D is, means no."""
    monkeypatch.setattr(sys, "stdin", terminal(answer))
    assert main(rewrite) == 0
    shown = capsys.readouterr()
    assert shown.err == "Change the offsets? [y/N] "
    assert ("Nothing was written." in shown.out) is not is_written
    assert first_offset(checkpoint, capsys) == (1 if is_written else 4)


def test_no_input_is_no_terminal(rewrite, monkeypatch, capsys):
    """Python sets ``sys.stdin`` to ``None`` if a process starts without one."""
    monkeypatch.setattr(sys, "stdin", None)
    assert main(rewrite) == 1
    assert "confirm the change with --yes" in capsys.readouterr().err


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_change_without_a_reader_is_made_and_succeeds(checkpoint, rewrite, capsys, form):
    line = [sys.executable, "-m", "pyspark_kafka", *rewrite, "--yes", *form]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        _, errors = process.communicate()
    assert (process.returncode, errors) == (0, b"")
    assert first_offset(checkpoint, capsys) == 1


def test_a_path_without_a_checkpoint_is_the_callers_mistake(tmp_path, capsys):
    for command in ("show", "export"):
        assert main(["offsets", command, str(tmp_path / "nowhere")]) == 1
        shown = capsys.readouterr().err
        assert "[KAFKA_NO_CHECKPOINT] There is no checkpoint of a" in shown
        assert shown.endswith("(who can fix it: the query's author)\n")


def terminal(text: str) -> io.StringIO:
    typed = io.StringIO(text)
    typed.isatty = lambda: True  # type: ignore[method-assign]
    return typed
