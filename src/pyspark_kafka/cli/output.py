"""The output of a command, and the signals, log lines and warnings of its process."""

from __future__ import annotations

import io
import logging
import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn, TextIO, TypeVar, final

if TYPE_CHECKING:
    from rich.console import Console as RichConsole
    from rich.table import Table
    from rich.text import Text

Item = TypeVar("Item")

_BACK_AND_ERASE: Final = "\r\033[K"

_NO_LIMIT: Final = 1_000_000
"""The width of lines without a terminal, in characters."""


@final
@dataclass(frozen=True, slots=True)
class Console:
    """Prints lines; on a terminal, it also shows a live line below them, which is overwritten."""

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


def quantity(number: int, unit: str) -> str:
    """Return a number with its unit, such as ``1 record`` or ``2,000 records``."""
    return f"{number:,} {unit}{'' if number == 1 else 's'}"


def new_table(names: Iterable[str], *numbers: str) -> Table:
    """Return a table without rows: its first columns hold names, and the others numbers."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in names:
        table.add_column(heading, no_wrap=True)
    for heading in numbers:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def new_list() -> Table:
    """Return a table without rows, headings or lines: a column of headings and one of texts."""
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(no_wrap=True)
    return table


def print_whole(*parts: Table | Text, out: TextIO | None = None) -> None:
    """Print tables and texts for people, on stdout by default.

    A cell of a column that does not wrap is printed as a whole: a table is wider than the terminal
    rather than break a name. Without a terminal, lines have no limit, so that ``grep`` finds them.
    """
    from rich.console import Console
    from rich.table import Table

    out = sys.stdout if out is None else out
    console = Console(file=out, highlight=False)
    if out.isatty():
        tables = (part for part in parts if isinstance(part, Table))
        console.width = max(console.width, *(_width(console, table) for table in tables), 1)
    else:
        console.width = _NO_LIMIT
    for part in parts:
        console.print(part)


def _width(console: RichConsole, table: Table) -> int:
    """Return the least width of a table that breaks no cell of a column with ``no_wrap``."""
    unlimited = console.options.update(width=_NO_LIMIT)
    for column in table.columns:
        if column.no_wrap:
            cells = (column.header, column.footer, *column.cells)
            column.min_width = max(console.measure(one, options=unlimited).maximum for one in cells)
    return console.measure(table, options=unlimited).minimum


def advancing(
    what: str,
    items: Iterable[Item],
    *,
    total: int,
    size: Callable[[Item], int],
    out: TextIO | None = None,
) -> Iterator[Item]:
    """Yield the items, and show a bar that each one advances by its size.

    The bar is on ``out``, by default stderr, and is removed at the end. Without a terminal there is
    none.
    """
    out = sys.stderr if out is None else out
    if not out.isatty():
        yield from items
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(file=out), transient=True) as progress:
        task = progress.add_task(what, total=total)
        for item in items:
            progress.advance(task, size(item))
            yield item


ENDING: Final = (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM))
"""The signals that end a command: Ctrl-C, a supervisor's, and that of a closed terminal."""


@contextmanager
def ending_signals(act: Callable[[int, object], object] | None = None) -> Iterator[None]:
    """Do something on the signals that end a command, except those that ``nohup`` ignores.

    The default is to raise ``KeyboardInterrupt`` with the signal's number, so that every block ends
    and deletes its temporary files. Outside of the main thread, nothing changes.
    """
    with ExitStack() as stack:
        if threading.current_thread() is threading.main_thread():
            for number in ENDING:
                before = signal.getsignal(number)
                if before is not signal.SIG_IGN:
                    stack.callback(signal.signal, number, before)
                    signal.signal(number, act or _interrupt)
        yield


def _interrupt(number: int, _frame: object) -> NoReturn:
    raise KeyboardInterrupt(number)


@contextmanager
def until_interrupted() -> Iterator[None]:
    """Run a block until a signal of ``ENDING``, which ends it without an error."""
    with suppress(KeyboardInterrupt):
        yield


@contextmanager
def ending_with_the_pipe() -> Iterator[None]:
    """Run a block that prints until the reader of a pipe has ended; then print nothing more."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        # Python would fail again when it flushes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except SystemExit as error:
        # rich's Console.on_broken_pipe, which has done the same.
        if not isinstance(error.__context__, BrokenPipeError):
            raise


def prepare_output() -> None:
    """Let commands print any text, also without an output and in an encoding that lacks it."""
    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - until the end
    elif isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


@contextmanager
def logs_redirected_to(handler: logging.Handler) -> Iterator[None]:
    """Send the log lines and warnings of all libraries to a handler, and close it at the end."""
    root = logging.getLogger()
    root.addHandler(handler)
    logging.captureWarnings(capture=True)
    try:
        yield
    finally:
        logging.captureWarnings(capture=False)
        root.removeHandler(handler)
        handler.close()
