"""The page that a full run writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from .results import LatencySection, Section
from .tables import as_markdown, markdown_table
from .topics import KB1

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .plan import Plan
    from .results import Comparison

SHARES: Final = """\
## Share of Spark's limit

What Spark allows a Python source or sink is the rate of one without Kafka, which has its rows in
memory, or drops them. On the same machine it does not share the processor with a broker, either."""


@final
@dataclass(frozen=True, slots=True)
class Plots:
    """The file names of the page's plots."""

    speed: str
    latency: str


def page(
    sections: Sequence[Section | LatencySection],
    machine: Mapping[str, str],
    plan: Plan,
    command: str,
    plots: Plots,
) -> str:
    """Return the page: the machine and versions, the plots, and a table per section."""
    return "\n".join(
        (
            _introduction(plan, command, plots.speed),
            *_shares([one for one in sections if isinstance(one, Section)]),
            _machine(machine),
            *(_section(section, plots) for section in sections),
        )
    )


def _introduction(plan: Plan, command: str, plot: str) -> str:
    return f"""\
# Benchmarks

Written by `make bench`; do not edit. All figures are from one run on one machine, with one broker
and the same topics:

```console
{command}
```

In each round every competitor runs once. The tables show the median of {_rounds(plan.runs)} after
{_rounds(plan.warm_up_rounds)} to warm up, the minimum and the maximum. A ratio compares a reader or
writer with the peer of its column; above 1 it is better than the peer. Ratios apply to other
machines better than absolute figures do.

![Speed relative to the peers]({plot})

The topics with 100 B values have {plan.records:,} records. The others have about as many bytes, and
those with 1 kB and 10 kB values {KB1.volume} times as many. Record batches have the defaults of
librdkafka's producer: up to 10,000 records or 1 MB. MB/s count values before compression, unless a
section says otherwise.

`make bench ARGS='--only batch --runs 3'` repeats one section. `make bench ARGS=--quick` checks in
two minutes that everything runs. Neither writes this page.
"""


def _shares(sections: Sequence[Section]) -> Sequence[str]:
    """Return what share of the limit the competitors reach, for sections that have one."""
    lines = [
        (section.title, comparison.case, _shares_of(comparison, section.limit))
        for section in sections
        if section.limit is not None
        for comparison in section.comparisons
    ]
    if not lines:
        return ()
    clients = lines[0][2].keys()
    table = markdown_table(
        [("measurement", "case", *clients)]
        + [(title, case, *(share[client] for client in clients)) for title, case, share in lines]
    )
    return (f"{SHARES}\n\n{table}",)


def _shares_of(comparison: Comparison, limit: str) -> Mapping[str, str]:
    most = comparison.of(limit).median
    return {
        one.competitor: f"{one.median / most:.0%}".replace("%", " %")
        for one in comparison.samples
        if one.competitor != limit
    }


def _rounds(count: int) -> str:
    return "1 round" if count == 1 else f"{count} rounds"


def _machine(machine: Mapping[str, str]) -> str:
    rows = "".join(f"| {name} | {value} |\n" for name, value in machine.items())
    return f"## Machine and versions\n\n| | |\n|---|---|\n{rows}"


def _section(section: Section | LatencySection, plots: Plots) -> str:
    parts = [f"## {section.title}", section.about, as_markdown(section)]
    if isinstance(section, LatencySection) and section.is_plotted:
        parts.insert(2, f"![Latency from topic to topic]({plots.latency})")
    return "\n\n".join(parts)
