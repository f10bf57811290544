"""The page that a full run writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .tables import as_markdown
from .topics import KB1

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .plan import Plan
    from .results import Section


def page(
    sections: Sequence[Section], machine: Mapping[str, str], plan: Plan, command: str, plot: str
) -> str:
    """Give the page: what ran where, the plot, and a table for each section."""
    return "\n".join(
        (
            _introduction(plan, command, plot),
            _machine(machine),
            *(_section(section) for section in sections),
        )
    )


def _introduction(plan: Plan, command: str, plot: str) -> str:
    return f"""\
# Benchmarks

Written by `make bench`; do not edit. All figures are of one run on one machine, against one broker,
on the same topics:

```console
{command}
```

In each round every competitor runs once. Shown is the median of {_rounds(plan.runs)} after
{_rounds(plan.warm_up_rounds)} to warm up, with the smallest and the largest figure beside it. A
ratio says how many times as good a reader or a writer is as the peer of its column: above 1 it is
the better one. Ratios carry over to other machines better than figures do.

![How many times as fast as the peers]({plot})

The topics of 100 B values have {plan.records:,} records, the others about as many bytes, and those
of 1 kB and 10 kB {KB1.volume} times as many. Batches
are as librdkafka's producer makes them: up to 10,000 records or 1 MB. MB/s are those of values,
before compression, unless it is said otherwise.

`make bench ARGS='--only batch --runs 3'` repeats one part, and `make bench ARGS=--quick` tries in
two minutes whether everything runs; neither writes this page.
"""


def _rounds(count: int) -> str:
    return "1 round" if count == 1 else f"{count} rounds"


def _machine(machine: Mapping[str, str]) -> str:
    rows = "".join(f"| {name} | {value} |\n" for name, value in machine.items())
    return f"## Machine and versions\n\n| | |\n|---|---|\n{rows}"


def _section(section: Section) -> str:
    return f"## {section.title}\n\n{section.about}\n\n{as_markdown(section)}"
