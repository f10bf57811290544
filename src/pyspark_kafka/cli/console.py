"""Lines for a person who watches, and for a file that a person reads later."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TextIO, final

if TYPE_CHECKING:
    from collections.abc import Sequence

_BACK_AND_ERASE: Final = "\r\033[K"


@final
@dataclass(frozen=True, slots=True)
class Console:
    """Prints lines; on a terminal also one below them that is written over again and again."""

    out: TextIO

    def line(self, text: str = "") -> None:
        """Print a line that stays."""
        self.clear()
        print(text, file=self.out, flush=True)

    def live(self, text: str) -> None:
        """Replace the line that does not stay; nothing where there is no terminal."""
        if self.out.isatty():
            # A line as wide as the terminal would wrap, and only its end could be erased.
            room = shutil.get_terminal_size().columns - 1
            print(f"{_BACK_AND_ERASE}{text[:room]}", end="", file=self.out, flush=True)

    def clear(self) -> None:
        """Remove the line that does not stay."""
        self.live("")

    def table(self, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print a table: the first column to the left, numbers in the others to the right."""
        for text in table_lines(headings, rows):
            self.line(text)


def table_lines(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lay a table out in columns as wide as they need to be."""
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    rule = ["-" * width for width in widths]
    return [_row(cells, widths) for cells in (headings, rule, *rows)]


def bar(part: int, whole: int, width: int = 24) -> str:
    """Draw how much of the whole is done."""
    filled = width * part // whole
    return f"[{'#' * filled}{'.' * (width - filled)}]"


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = zip(cells, widths, strict=True)
    return "  ".join([first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)])
