from __future__ import annotations

import io

import pytest

from pyspark_kafka.cli.progress_bar import advancing


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_how_far_a_command_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bar advances by the size of each item, and is gone at the end."""
    monkeypatch.setenv("TERM", "xterm")
    out = Terminal()
    assert list(advancing("Reading", ["a", "bc"], total=3, size=len, out=out)) == ["a", "bc"]
    assert "Reading" in out.getvalue()
    assert "3/3" in out.getvalue()
    assert out.getvalue().rstrip("\n").endswith("\x1b[2K")


def test_a_file_gets_no_bar() -> None:
    """Without a terminal nothing is printed."""
    out = io.StringIO()
    assert list(advancing("Reading", ["a", "bc"], total=3, size=len, out=out)) == ["a", "bc"]
    assert out.getvalue() == ""
