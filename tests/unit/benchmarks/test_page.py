from __future__ import annotations

from benchmarks.page import Plots, page
from benchmarks.plan import Plan

from .sections import LATENCY, ONCE, RATES


def test_the_page() -> None:
    """The page tells the command, the machine and the rounds, and holds every section's table."""
    text = page(
        [RATES, ONCE, LATENCY],
        {"memory": "24 GiB"},
        Plan(runs=5, warm_up_rounds=1, records=4_000_000),
        "python -m benchmarks --runs 5",
        Plots("plot.svg", "latency.svg"),
    )
    prose = " ".join(text.split())
    for part in (
        "```console python -m benchmarks --runs 5 ```",
        "![Speed relative to the peers](plot.svg)",
        "the median of 5 rounds after 1 round to warm up",
        "4,000,000 records",
    ):
        assert part in prose
    for part in (
        "| memory | 24 GiB |",
        "## Rates\n\nHow fast.\n\n| case |",
        "## Once\n\nHow long.\n\n| case |",
        "## Latency\n\nHow late.\n\n![Latency from topic to topic](latency.svg)\n\n| case |",
    ):
        assert part in text
