import io
import re

import pytest
from rich.console import Console as RichConsole
from rich.text import Text

from pyspark_kafka.cli.output import Console, advancing, new_list, new_table, print_whole


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_lines_in_a_file():
    out = io.StringIO()
    console = Console(out)
    console.live("one moment")
    console.line("done")
    console.clear()
    assert out.getvalue() == "done\n"


def test_lines_on_a_terminal():
    out = Terminal()
    console = Console(out)
    console.live("one moment")
    console.line("done")
    assert out.getvalue() == "\r\033[Kone moment\r\033[Kdone\n"


def test_a_live_line_does_not_wrap():
    out = Terminal()
    Console(out).live("x" * 10_000)
    assert len(out.getvalue()) < 1_000


def test_a_table():
    """Names are left-aligned, numbers right-aligned, and columns as wide as their longest cell."""
    table = new_table(["name"], "n")
    table.add_row("a", "1,000")
    table.add_row("bcdef", "7")
    out = io.StringIO()
    RichConsole(file=out, width=40).print(table)
    lines = [line.rstrip() for line in out.getvalue().splitlines() if line.strip(" ─")]
    assert lines == [" name        n", " a       1,000", " bcdef       7"]


NAME = "a-name-of-many-characters." * 8


def lines_of(out: io.StringIO) -> list[str]:
    return [line.strip() for line in re.sub(r"\x1b\[[\d;]*m", "", out.getvalue()).splitlines()]


@pytest.mark.parametrize("kind", [io.StringIO, Terminal])
def test_names_and_numbers_are_never_broken(kind, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    head, table, out = new_list(), new_table(["name"], "n", "size"), kind()
    head.add_row("checkpoint", Text(f"s3a://{NAME}"))
    table.add_row(NAME, "<= 1,000", "1.2 MB")
    print_whole(head, table, Text("the end"), out=out)
    lines = lines_of(out)
    assert lines[0] == f"checkpoint  s3a://{NAME}"
    assert f"{NAME}   <= 1,000   1.2 MB" in lines
    assert lines[-1] == "the end"


def test_only_terminals_limit_the_length_of_lines(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    outs = io.StringIO(), Terminal()
    for out in outs:
        print_whole(Text("one word after another " * 10), out=out)
    assert [max(map(len, lines_of(out))) > 40 for out in outs] == [True, False]


def test_long_texts_wrap_on_a_terminal_beside_whole_names(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    table, out = new_table(["topic"]), Terminal()
    table.add_column("error")
    table.add_row("t" * 30, Text("the value is no JSON object " * 5))
    print_whole(table, out=out)
    assert max(map(len, lines_of(out))) <= 60
    assert any("t" * 30 in line for line in lines_of(out))


def test_a_terminal_shows_how_far_a_command_is(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    out = Terminal()
    assert list(advancing("Reading", ["a", "bc"], total=3, size=len, out=out)) == ["a", "bc"]
    assert "Reading" in out.getvalue()
    assert "3/3" in out.getvalue()
    assert out.getvalue().rstrip("\n").endswith("\x1b[2K")


def test_a_file_gets_no_bar():
    out = io.StringIO()
    assert list(advancing("Reading", ["a", "bc"], total=3, size=len, out=out)) == ["a", "bc"]
    assert out.getvalue() == ""
