"""Dead letters as a table, drawn with rich."""

from __future__ import annotations

from rich import box
from rich.table import Table
from rich.text import Text

from ..application.letters.dead_letter_log import LetterSummary
from ..domain.text import excerpt


def letter_table(summary: LetterSummary) -> Table:
    """Return a row for each record, in the order of the dead-letter topic."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("topic")
    for heading in ("partition", "offset"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("reason", no_wrap=True)
    table.add_column("error")
    table.add_column("letters", justify="right", no_wrap=True)
    for (origin, offset), count in summary.records.items():
        table.add_row(
            Text(excerpt(origin.topic)),
            str(origin.partition),
            str(offset),
            Text(excerpt(count.letter.reason)),
            Text(excerpt(count.letter.error)),
            f"{count.letters:,}",
        )
    return table
