from __future__ import annotations

import io

from pyspark_kafka.cli.console import Console, bar, table_lines


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_lines_in_a_file() -> None:
    """Where there is no terminal, lines that do not stay are left out, without a trace."""
    out = io.StringIO()
    console = Console(out)
    console.live("one moment")
    console.line("done")
    console.clear()
    assert out.getvalue() == "done\n"


def test_lines_on_a_terminal() -> None:
    """On a terminal a line that does not stay is erased before the next one."""
    out = Terminal()
    console = Console(out)
    console.live("one moment")
    console.line("done")
    assert out.getvalue() == "\r\033[Kone moment\r\033[Kdone\n"


def test_a_live_line_does_not_wrap() -> None:
    """A line that does not stay is cut to the terminal's width."""
    out = Terminal()
    Console(out).live("x" * 10_000)
    assert len(out.getvalue()) < 1_000


def test_a_table() -> None:
    """Names stand to the left, numbers to the right, and columns are as wide as they need to be."""
    assert table_lines(("name", "n"), [("a", "1,000"), ("bcdef", "7")]) == [
        "name       n",
        "-----  -----",
        "a      1,000",
        "bcdef      7",
    ]


def test_a_table_without_rows() -> None:
    """A table without rows has its headings."""
    assert table_lines(("name", "n"), []) == ["name  n", "----  -"]


def test_a_bar() -> None:
    """A bar is filled as far as the part is of the whole."""
    assert [bar(part, 4, width=4) for part in (0, 1, 4)] == ["[....]", "[#...]", "[####]"]
