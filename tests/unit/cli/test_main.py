from __future__ import annotations

import io
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import get_args

import pytest

from pyspark_kafka.__main__ import COMMANDS, main
from pyspark_kafka.cli.parser import Settings

ROOT = Path(__file__).parents[3]
CHECKPOINT = {"offsets/0": 'v1\n{}\n{"t":{"0":4}}', "commits/0": "v1\n{}"}


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    """Return a checkpoint whose path is not ASCII."""
    for name, content in CHECKPOINT.items():
        (tmp_path / "\u00fc" / name).parent.mkdir(parents=True)
        (tmp_path / "\u00fc" / name).write_text(content)
    return str(tmp_path / "\u00fc")


def test_every_command_runs_a_function() -> None:
    """Settings without a function would fail only when the command is run."""
    assert COMMANDS.keys() == set(get_args(Settings))
    for module, function in COMMANDS.values():
        assert callable(getattr(import_module(f"pyspark_kafka.cli.{module}"), function))


def test_what_an_encoding_lacks_is_escaped(
    checkpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = io.TextIOWrapper(io.BytesIO(), "ascii")
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setenv("COLUMNS", "500")  # or the path is cut
    assert main(["offsets", "show", checkpoint]) == 0
    out.seek(0)
    assert "\\xfc" in out.read()


def test_a_closed_output_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python sets ``sys.stdout`` to ``None`` if a process starts without one, as under cron."""
    monkeypatch.setattr(sys, "stdout", None)
    assert main(["completion", "bash"]) == 0
    with sys.stdout as out:
        assert not out.isatty()


@pytest.mark.skipif(sys.platform == "win32", reason="pipes are POSIX's")
def test_tables_end_with_their_pipe(checkpoint: str) -> None:
    """A reader such as ``head`` may end first: that is no failure under ``pipefail``."""
    command = (sys.executable, "-m", "pyspark_kafka", "offsets", "show", checkpoint)
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
    assert process.returncode == 0
