"""Sections as tables, for a terminal and for the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .plan import MB

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .results import Comparison, Samples, Section


def as_text(section: Section) -> str:
    """Return a section as aligned columns; the first two are left-aligned."""
    lines = [headings(section), *rows(section)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join((section.title, "", *(_aligned(line, widths) for line in lines), ""))


def as_markdown(section: Section) -> str:
    """Return a section's table in Markdown."""
    head = headings(section)
    rule = ["---", "---", *["---:"] * (len(head) - 2)]
    return "".join(f"| {' | '.join(line)} |\n" for line in (head, rule, *rows(section)))


def headings(section: Section) -> list[str]:
    """Return the names of a section's columns."""
    rate = ["MB/s"] if _has_bytes(section) else []
    ratios = [f"to {peer}" for peer in section.peers]
    return ["case", "client", section.unit.name, "min..max", *rate, *ratios]


def rows(section: Section) -> Iterator[list[str]]:
    """Yield a row for each competitor of each case, whose name is in its first row only."""
    for comparison in section.comparisons:
        case = comparison.case
        for samples in comparison.samples:
            yield [case, *_row(section, comparison, samples)]
            case = ""


def figure(value: float) -> str:
    """Return a figure with three significant digits, or as an integer if that is longer."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def times(ratio: float) -> str:
    """Return a ratio with two decimals, or two significant digits."""
    return f"{ratio:,.2f}x" if ratio >= 0.1 else f"{ratio:.2g}x"


def _row(section: Section, comparison: Comparison, samples: Samples) -> list[str]:
    extent = f"{figure(samples.min)}..{figure(samples.max)}"
    return [
        samples.competitor,
        figure(samples.median),
        extent if len(samples.figures) > 1 else "",
        *_megabytes(section, comparison, samples),
        *_ratios(section, comparison, samples),
    ]


def _megabytes(section: Section, comparison: Comparison, samples: Samples) -> list[str]:
    if not _has_bytes(section):
        return []
    size = comparison.bytes_per_record
    return ["" if size is None else figure(samples.median * size / MB)]


def _ratios(section: Section, comparison: Comparison, samples: Samples) -> list[str]:
    return [
        times(section.unit.times_as_good(samples.median, comparison.of(peer).median))
        for peer in section.peers
    ]


def _has_bytes(section: Section) -> bool:
    return any(comparison.bytes_per_record is not None for comparison in section.comparisons)


def _aligned(line: Sequence[str], widths: Sequence[int]) -> str:
    cells = [
        cell.ljust(width) if column < 2 else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(line, widths, strict=True))
    ]
    return "  ".join(cells).rstrip()
