"""How far a command is, on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TextIO, TypeVar

Item = TypeVar("Item")


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
