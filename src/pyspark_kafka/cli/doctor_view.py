"""A finding as a row, drawn with rich."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.table import Table
from rich.text import Text

from ..domain.cluster.finding import Level
from ..domain.text import printable

if TYPE_CHECKING:
    from ..domain.cluster.finding import Finding

_COLORS: Final = {Level.OK: "green", Level.WARNING: "yellow", Level.ERROR: "red"}
_LEVEL_WIDTH: Final = 7
_CHECK_WIDTH: Final = 15


def finding_row(finding: Finding) -> Table:
    """Return the level, the check and the summary of a finding; its advice is below."""
    row = Table.grid(padding=(0, 2))
    row.add_column(width=_LEVEL_WIDTH, no_wrap=True)
    row.add_column(width=_CHECK_WIDTH, no_wrap=True, style="dim")
    row.add_column(overflow="fold")
    text = Text(printable(finding.summary))
    if finding.advice:
        text.append(f"\n{printable(finding.advice)}", "bold")
    row.add_row(Text(finding.level.value, _COLORS[finding.level]), finding.check, text)
    return row
