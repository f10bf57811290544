"""The page of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .bench import CLIENTS
from .results import LatencySection, Section
from .tables import as_markdown, is_worse, markdown_table, stressed
from .topics import KB1

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .results import AnySection, Comparison
    from .run import Run

PLOT: Final = "benchmarks.svg"
LATENCY_PLOT: Final = "latency.svg"
"""The plots' files, next to the page."""

SHARES: Final = """\
## Share of Spark's limit

What Spark allows a Python source or sink is the rate of one without Kafka, which has its rows in
memory, or drops them. On the same machine it does not share the processor with a broker, either."""

SLOWER: Final = """\
## Where it is slower

Each case in which a client with its defaults does worse than a peer, the ratio in bold type. Some
peers do less than a client: the sections below say what."""


def page(run: Run) -> str:
    """Return the page: the plots, where clients are slower, the machine, a table per section."""
    return "\n".join(
        (
            _introduction(run),
            *_shares([one for one in run.sections if isinstance(one, Section)]),
            *_slower(run.sections),
            _machine(run.machine),
            *map(_section, run.sections),
        )
    )


def _introduction(run: Run) -> str:
    plan, sittings = run.plan, len(run.sittings)
    counted, warm_up = rounds_text(plan.runs), rounds_text(plan.warm_up_rounds)
    continued = f"The run was made in {sittings} sittings.\n\n" if sittings > 1 else ""
    return f"""\
<!-- make docs makes this page from benchmarks.json, which make bench writes; do not edit it. -->

# Benchmarks

All figures are from one run on one machine, with one broker and the same topics:

```console
{run.command}
```

{continued}\
In each round every competitor runs once. The tables show the median of {counted} after
{warm_up} to warm up, the minimum and the maximum. A ratio compares a reader or
writer with the peer of its column; above 1 it is better than the peer. Ratios apply to other
machines better than absolute figures do.

![Speed relative to the peers]({PLOT})

The topics with 100 B values have {plan.records:,} records. The others have about as many bytes, and
those with 1 kB and 10 kB values {KB1.volume} times as many. Record batches have the defaults of
librdkafka's producer: up to 10,000 records or 1 MB. MB/s count values before compression, unless a
section says otherwise.

`make bench ARGS='--only batch --runs 3'` repeats one section. `make bench ARGS=--quick` checks in
ten minutes that everything runs. Neither writes this page. `benchmarks.json` beside it has the
figures of each round.
"""


def _shares(sections: Sequence[Section]) -> Sequence[str]:
    """Return the share of the limit that competitors reach, for sections that have one."""
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


def _slower(sections: Sequence[AnySection]) -> Sequence[str]:
    """Return the cases in which a client is slower than a peer other than the limit."""
    lines = [line for section in sections for line in _slower_in(section)]
    if not lines:
        return ()
    table = markdown_table([("measurement", "case", "peer", *CLIENTS), *lines], texts=3)
    return (f"{SLOWER}\n\n{table}",)


def _slower_in(section: AnySection) -> Iterator[Sequence[str]]:
    limit = section.limit if isinstance(section, Section) else None
    for case, medians in section.medians.items():
        for peer in section.peers:
            ratios = {
                client: section.unit.times_as_good(medians[client], medians[peer])
                for client in CLIENTS
                if client in medians
            }
            if peer != limit and any(map(is_worse, ratios.values())):
                cells = [stressed(ratios[one]) if one in ratios else "" for one in CLIENTS]
                yield section.title, case, peer, *cells


def rounds_text(count: int) -> str:
    """Return a number of rounds as text."""
    return "1 round" if count == 1 else f"{count} rounds"


def _machine(machine: Mapping[str, str]) -> str:
    rows = "".join(f"| {name} | {value} |\n" for name, value in machine.items())
    return f"## Machine and versions\n\n| | |\n|---|---|\n{rows}"


def _section(section: AnySection) -> str:
    parts = [f"## {section.title}", section.about, as_markdown(section)]
    if isinstance(section, LatencySection) and section.is_plotted:
        parts.insert(2, f"![Latency from topic to topic]({LATENCY_PLOT})")
    return "\n\n".join(parts)
