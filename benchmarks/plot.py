"""The plots: the speed of each competitor relative to the first peer, and latencies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from .processor_time import Seconds
    from .results import Comparison, LatencyComparison, LatencySection, Section

SETTINGS: Final[dict[Any, Any]] = {
    # The same figures produce the same file, with selectable text.
    "svg.hashsalt": "benchmarks",
    "svg.fonttype": "none",
    "font.size": 9,
}
OURS: Final = {
    "kafka-python": "#1f77b4",
    "confluent": "#ff7f0e",
    "decoder": "#2ca02c",
    "kafka-python, tuned": "#08519c",
    "confluent, tuned": "#a63603",
    "kafka-python, exactly-once": "#9ecae1",
    "confluent, exactly-once": "#fdbe85",
}
PEERS: Final = ("#b0b0b0", "#808080", "#404040")
WIDTH: Final = 9.0
MIN_EXTENT: Final = (0.5, 2.0)
"""The minimum range of every panel, so that small differences look small."""

BAR_HEIGHT: Final = 0.16
PANEL_HEIGHT: Final = 0.9
LATENCY_HEIGHT: Final = 0.22
GROUP_COLORS: Final = ("#1f77b4", "#ff7f0e", "#b0b0b0")


def write_plot(sections: Sequence[Section], path: Path) -> None:
    """Draw a panel for each section that has a peer, a bar for each median."""
    drawn = [section for section in sections if section.peers]
    heights = [PANEL_HEIGHT + BAR_HEIGHT * _bars(section) for section in drawn]
    with mpl.rc_context(SETTINGS):
        figure = Figure(figsize=(WIDTH, sum(heights)), layout="constrained")
        panels = figure.subplots(len(drawn), 1, height_ratios=heights, squeeze=False)
        for panel, section in zip(panels[:, 0], drawn, strict=True):
            _draw(panel, section)
        figure.savefig(path, format="svg", metadata={"Date": None})


def write_latency_plot(section: LatencySection, path: Path) -> None:
    """Draw a panel for each case, and in it a bar from p50 to p99 for each competitor."""
    count = len(section.comparisons)
    heights = [
        PANEL_HEIGHT + LATENCY_HEIGHT * len(comparison.latencies)
        for comparison in section.comparisons
    ]
    with mpl.rc_context(SETTINGS):
        figure = Figure(figsize=(WIDTH, sum(heights)), layout="constrained")
        panels = figure.subplots(count, 1, height_ratios=heights, sharex=True, squeeze=False)
        for panel, comparison in zip(panels[:, 0], section.comparisons, strict=True):
            _draw_latencies(panel, comparison)
        figure.savefig(path, format="svg", metadata={"Date": None})


def write_cost_plot(panels: Mapping[str, Mapping[str, Seconds]], path: Path) -> None:
    """Draw a panel for each title, and in it a bar for each name, with a part for each group."""
    heights = [PANEL_HEIGHT + LATENCY_HEIGHT * len(costs) for costs in panels.values()]
    with mpl.rc_context(SETTINGS):
        figure = Figure(figsize=(WIDTH, sum(heights)), layout="constrained")
        drawn = figure.subplots(len(panels), 1, height_ratios=heights, sharex=True, squeeze=False)
        for panel, (title, costs) in zip(drawn[:, 0], panels.items(), strict=True):
            _draw_costs(panel, title, costs)
        drawn[0, 0].legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
        figure.savefig(path, format="svg", metadata={"Date": None})


def _draw_costs(panel: Any, title: str, costs: Mapping[str, Seconds]) -> None:
    ends = [0.0] * len(costs)
    groups = next(iter(costs.values()))
    for group, color in zip(groups, GROUP_COLORS, strict=True):
        parts = [max(0.0, seconds[group]) for seconds in costs.values()]
        panel.barh(range(len(costs)), parts, left=ends, height=0.7, color=color, label=group.value)
        ends = [end + part for end, part in zip(ends, parts, strict=True)]
    panel.set_yticks(range(len(costs)), list(costs))
    panel.invert_yaxis()
    panel.tick_params(labelbottom=True)
    panel.spines[["top", "right"]].set_visible(False)
    panel.set_title(title, loc="left")


def _draw_latencies(panel: Any, comparison: LatencyComparison) -> None:
    panel.use_sticky_edges = False
    peer_colors = iter(PEERS)
    for number, latencies in enumerate(comparison.latencies):
        color = OURS.get(latencies.competitor) or next(peer_colors)
        median = latencies.median
        panel.barh(number, median.p99 - median.p50, left=median.p50, height=0.6, color=color)
        panel.plot([median.p90], [number], marker="|", color="black")
    panel.set_yticks(
        range(len(comparison.latencies)), [one.competitor for one in comparison.latencies]
    )
    panel.invert_yaxis()
    panel.set_xscale("log")
    panel.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    panel.xaxis.set_major_formatter("{x:g} ms")
    panel.xaxis.set_minor_formatter(NullFormatter())
    panel.tick_params(labelbottom=True)
    panel.spines[["top", "right"]].set_visible(False)
    panel.set_title(f"{comparison.case}: p50 to p99, with a line at p90", loc="left")


def _bars(section: Section) -> int:
    return len(section.comparisons) * (1 + len(section.competitors))


def _draw(panel: Any, section: Section) -> None:
    competitors = section.competitors
    group = len(competitors) + 1
    peer_colors = iter(PEERS)
    for number, competitor in enumerate(competitors):
        color = OURS.get(competitor) or next(peer_colors)
        bars = {
            number + group * case: _ratios(section, comparison, competitor)
            for case, comparison in enumerate(section.comparisons)
            if comparison.has(competitor)
        }
        _draw_bars(panel, bars, competitor, color)
    middle = (len(competitors) - 1) / 2
    panel.set_yticks(
        [middle + group * case for case in range(len(section.comparisons))],
        [comparison.case for comparison in section.comparisons],
    )
    panel.invert_yaxis()
    _scale(panel)
    panel.set_title(f"{section.title}: times as fast as {section.peers[0]}", loc="left")
    panel.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))


def _draw_bars(
    panel: Any, bars: Mapping[int, tuple[float, float, float]], label: str, color: str
) -> None:
    extents = list(bars.values())
    panel.barh(
        list(bars),
        # Bars begin at a ratio of 1: better ones go to the right, worse ones to the left.
        [median - 1 for _, median, _ in extents],
        left=1,
        xerr=[
            [median - low for low, median, _ in extents],
            [high - median for _, median, high in extents],
        ],
        height=0.9,
        color=color,
        label=label,
        error_kw={"elinewidth": 0.8},
    )


def _ratios(
    section: Section, comparison: Comparison, competitor: str
) -> tuple[float, float, float]:
    """Return the minimum, median and maximum as multiples of the first peer's median."""
    peer = comparison.of(section.peers[0]).median
    samples = comparison.of(competitor)
    figures = (samples.min, samples.median, samples.max)
    low, median, high = sorted(section.unit.times_as_good(one, peer) for one in figures)
    return low, median, high


def _scale(panel: Any) -> None:
    panel.set_xscale("log")
    left, right = panel.get_xlim()
    panel.set_xlim(min(left, MIN_EXTENT[0]), max(right, MIN_EXTENT[1]))
    panel.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    panel.xaxis.set_major_formatter("{x:g}x")
    panel.xaxis.set_minor_formatter(NullFormatter())
    panel.axvline(1, color="black", linewidth=0.8)
    panel.spines[["top", "right"]].set_visible(False)
