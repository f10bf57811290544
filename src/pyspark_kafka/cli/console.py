"""Lines of text for a terminal or a file."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TextIO, final

_BACK_AND_ERASE: Final = "\r\033[K"


@final
@dataclass(frozen=True, slots=True)
class Console:
    """Prints lines; on a terminal also a live line below them, which is overwritten."""

    out: TextIO

    def line(self, text: str = "") -> None:
        """Print a line."""
        self.clear()
        print(text, file=self.out, flush=True)

    def live(self, text: str) -> None:
        """Replace the live line; do nothing if the output is not a terminal."""
        if self.out.isatty():
            # A line as wide as the terminal would wrap, and only its last part could be erased.
            room = shutil.get_terminal_size().columns - 1
            print(f"{_BACK_AND_ERASE}{text[:room]}", end="", file=self.out, flush=True)

    def clear(self) -> None:
        """Remove the live line."""
        self.live("")

    def table(self, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print a table: the first column is left-aligned, the others right-aligned."""
        for text in table_lines(headings, rows):
            self.line(text)


def table_lines(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table, with columns as wide as their longest cell."""
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    rule = ["-" * width for width in widths]
    return [_row(cells, widths) for cells in (headings, rule, *rows)]


def quantity(number: int, unit: str) -> str:
    """Return a number with its unit, such as ``1 record`` or ``2,000 records``."""
    return f"{number:,} {unit}{'' if number == 1 else 's'}"


def progress_bar(done: int, total: int, width: int = 24) -> str:
    """Return a bar that is filled in proportion to what is done."""
    filled = width * done // total
    return f"[{'#' * filled}{'.' * (width - filled)}]"


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = zip(cells, widths, strict=True)
    return "  ".join([first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)])
