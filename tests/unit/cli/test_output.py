import io

from rich.console import Console as RichConsole

from pyspark_kafka.cli.output import Console, advancing, new_table


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
    table = new_table("name", "n")
    table.add_row("a", "1,000")
    table.add_row("bcdef", "7")
    out = io.StringIO()
    RichConsole(file=out, width=40).print(table)
    lines = [line.rstrip() for line in out.getvalue().splitlines() if line.strip(" ─")]
    assert lines == [" name        n", " a       1,000", " bcdef       7"]


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
