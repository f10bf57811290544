import ast
import io
import json
import signal
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from pyspark_kafka.__main__ import main
from pyspark_kafka.cli import parser
from pyspark_kafka.cli.output import ending_signals, until_interrupted
from tests.unit.cli.arguments import refused, write_files

ROOT = Path(__file__).parents[3]
CHECKPOINT = {"offsets_0": 'v1\n{}\n{"t":{"0":4}}', "commits_0": "v1\n{}"}


@pytest.fixture
def checkpoint(tmp_path):
    """Return a checkpoint whose path is not ASCII."""
    return write_files(tmp_path / "\u00fc", **CHECKPOINT)


@pytest.mark.parametrize(
    "command",
    [
        *(["completion", "bash"], ["demo"], ["doctor"], ["topics"], ["tail", "t"], ["broker"]),
        *(["lag", "--checkpoint", "c"], ["prometheus", "--checkpoint", "c"]),
        *(["offsets", name, "c"] for name in ("show", "diff", "export", "undo")),
        ["offsets", "rewrite", "c", "--to", "latest"],
        *(["dead-letters", name, "--topic", "t"] for name in ("list", "replay")),
    ],
    ids=" ".join,
)
def test_every_command_runs_a_function(command):
    """A command without one would fail only when it is run."""
    parse = parser.command_parser().parse_known_args
    servers = ["--bootstrap-servers", "h:9092"]
    assert callable(parse([*command, *servers])[0].run)


def test_doctor_names_a_server_that_has_no_port(capsys):
    """The server is not ignored, which would end with no broker found."""
    assert main(["doctor", "--bootstrap-servers", "a:9092,broker:port"]) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "must be host:port, separated by commas: number 2 is not" in shown.err


def test_what_an_encoding_lacks_is_escaped(checkpoint, monkeypatch):
    out = io.TextIOWrapper(io.BytesIO(), "ascii")
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setenv("COLUMNS", "500")  # or the path is cut
    assert main(["offsets", "show", checkpoint]) == 0
    out.seek(0)
    assert "\\xfc" in out.read()


def test_a_line_of_json_does_not_act_on_a_terminal(tmp_path, capsys):
    checkpoint = write_files(tmp_path / "\x9b\u202e\u00e4", **CHECKPOINT)
    assert main(["offsets", "show", checkpoint, "--json"]) == 0
    line = capsys.readouterr().out.rstrip("\n")
    assert line.isascii()
    assert line.isprintable()
    assert json.loads(line)["checkpoint"] == checkpoint


def test_all_lines_of_json_are_ascii():
    """``json.dumps`` escapes the rest by default; the text of a record passes ``printable``."""
    assert [
        (path.name, function.name)
        for path in sorted(Path(parser.__file__).parent.glob("*.py"))
        for function in ast.walk(ast.parse(path.read_text()))
        if isinstance(function, ast.FunctionDef) and "ensure_ascii" in ast.unparse(function)
    ] == [("tail.py", "_text")]


def test_a_closed_output_is_no_terminal(monkeypatch):
    """Python sets ``sys.stdout`` to ``None`` if a process starts without one, as under cron."""
    monkeypatch.setattr(sys, "stdout", None)
    assert main(["completion", "bash"]) == 0
    with sys.stdout as out:
        assert not out.isatty()


@pytest.mark.skipif(sys.platform == "win32", reason="pipes are POSIX's")
def test_tables_end_with_their_pipe(checkpoint):
    """A reader such as ``head`` may end first: that is no failure under ``pipefail``."""
    command = (sys.executable, "-m", "pyspark_kafka", "offsets", "show", checkpoint)
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
    assert process.returncode == 0


@pytest.mark.usefixtures("hang_ups")
@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX's")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_command_that_is_ended_deletes_its_files(number, tmp_path, capsys, monkeypatch):
    """Closing the window of a terminal sends SIGHUP."""

    def run(_given: object) -> int:
        with TemporaryDirectory(dir=tmp_path):
            signal.raise_signal(number)
        return 0

    monkeypatch.setattr("pyspark_kafka.cli.topics.run_topics", run)
    before = signal.getsignal(number)
    assert main(["topics", "--bootstrap-servers", "h:9092"]) == 128 + number
    assert capsys.readouterr().err == "Interrupted; everything is stopped.\n"
    assert list(tmp_path.iterdir()) == []
    assert signal.getsignal(number) is before


@pytest.mark.usefixtures("hang_ups")
@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX's")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_block_ends_quietly(number):
    with ending_signals(), until_interrupted():
        signal.raise_signal(number)
        pytest.fail("the block continues")


@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX's")
def test_nohup_keeps_a_command_running():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with ending_signals():
            signal.raise_signal(signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_mistyped_command_or_option_gets_a_suggestion(capsys):
    assert "Did you mean 'topics'?" in refused(["topcs"], capsys)
    assert "Did you mean 'rewrite'?" in refused(["offsets", "rewite", "c"], capsys)
    servers = refused(["topics", "--bootstap-servers", "h:9092"], capsys)
    assert "Did you mean '--bootstrap-servers'?" in servers
    assert "Did you mean" not in refused(["xyz"], capsys)
