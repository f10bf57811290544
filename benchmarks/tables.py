"""Sections as tables, for a terminal and for the page."""

from __future__ import annotations

from dataclasses import astuple
from typing import TYPE_CHECKING, Final

from .plan import MB
from .results import MILLISECONDS, LatencySection

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .results import AnySection, Comparison, Samples, Section

PERCENTILES: Final = ("p50", "p90", "p99", "max")


def as_text(section: AnySection) -> str:
    """Return a section as aligned columns; the first two are left-aligned."""
    lines = [headings(section), *rows(section)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join((section.title, "", *(_aligned(line, widths) for line in lines), ""))


def as_markdown(section: AnySection) -> str:
    """Return a section's table in Markdown."""
    return markdown_table([headings(section), *rows(section)])


def markdown_table(lines: Sequence[Sequence[str]], texts: int = 2) -> str:
    """Return a table in Markdown; its first line is the head, and columns of text come first."""
    head, *others = lines
    rule = [*["---"] * texts, *["---:"] * (len(head) - texts)]
    return "".join(f"| {' | '.join(line)} |\n" for line in (head, rule, *others))


def headings(section: AnySection) -> list[str]:
    """Return the names of a section's columns."""
    if isinstance(section, LatencySection):
        ratios = [f"p50 to {peer}" for peer in section.peers]
        return [
            "case",
            "client",
            *(f"{name}, ms" for name in PERCENTILES),
            "p50, min..max",
            *ratios,
        ]
    rate = ["MB/s"] if _has_bytes(section) else []
    ratios = [f"to {peer}" for peer in section.peers]
    return ["case", "client", section.unit.name, "min..max", *rate, *ratios]


def rows(section: AnySection) -> Iterator[list[str]]:
    """Yield a row for each competitor of each case, whose name is in its first row only."""
    if isinstance(section, LatencySection):
        yield from _latency_rows(section)
        return
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


def is_worse(ratio: float) -> bool:
    """Return whether a ratio to a peer is below 1, as it is shown."""
    return round(ratio, 2) < 1


def stressed(ratio: float) -> str:
    """Return a ratio in Markdown, in bold type if it is below 1."""
    return f"**{times(ratio)}**" if is_worse(ratio) else times(ratio)


def _latency_rows(section: LatencySection) -> Iterator[list[str]]:
    for comparison in section.comparisons:
        case = comparison.case
        peers = [comparison.of(peer).median.p50 for peer in section.peers]
        for latencies in comparison.latencies:
            median = latencies.median
            yield [
                case,
                latencies.competitor,
                *map(figure, astuple(median)),
                _extent([one.p50 for one in latencies.rounds]),
                *(times(MILLISECONDS.times_as_good(median.p50, peer)) for peer in peers),
            ]
            case = ""


def _extent(figures: Sequence[float]) -> str:
    return f"{figure(min(figures))}..{figure(max(figures))}" if len(figures) > 1 else ""


def _row(section: Section, comparison: Comparison, samples: Samples) -> list[str]:
    return [
        samples.competitor,
        figure(samples.median),
        _extent(samples.figures),
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
