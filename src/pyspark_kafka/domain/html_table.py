"""Tables in HTML, which notebooks show for a value."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def html_table(
    caption: str, rows: Iterable[Sequence[str | int]], headings: Sequence[str] = ()
) -> str:
    """Return a table; all texts are escaped, and numbers have thousands separators."""
    head = f"<thead>{_row(headings, 'th')}</thead>" if headings else ""
    body = "".join(_row(cells, "td") for cells in rows)
    return f"<table><caption>{escape(caption)}</caption>{head}<tbody>{body}</tbody></table>"


def _row(cells: Sequence[str | int], tag: str) -> str:
    texts = (f"{cell:,}" if isinstance(cell, int) else escape(cell) for cell in cells)
    return f"<tr>{''.join(f'<{tag}>{text}</{tag}>' for text in texts)}</tr>"
