from benchmarks.page import Plots, page
from benchmarks.plan import Plan

from .sections import LATENCY, LIMITED, ONCE, RATES


def test_the_page():
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


def test_the_page_begins_with_what_share_of_sparks_limit_is_reached():
    """Only sections that have a limit are in the table, each client in percent of it."""
    text = page([RATES, LIMITED], {}, Plan(), "python -m benchmarks", Plots("a.svg", "b.svg"))
    beginning, _ = text.split("## Machine")
    assert "| measurement | case | peer | ours |\n" in beginning
    assert "| Limited | 1 kB | 20 % | 50 % |\n" in beginning
    assert "| Rates |" not in beginning


def test_a_page_without_limits_has_no_table_of_shares():
    """The heading is left out, too."""
    text = page([RATES], {}, Plan(), "python -m benchmarks", Plots("a.svg", "b.svg"))
    assert "Spark's limit" not in text
