"""The page that a run of all competitors writes."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from benchmarks.results import RECORDS_PER_SECOND, Comparison, Samples, Section
from benchmarks.tables import as_markdown, markdown_table

from .task import COPY, READ

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .competitors import Competitor
    from .rounds import Outcome

    Measured = tuple[str, int, Outcome]
    """What the competitors did, the bytes of a value, and how it went."""

MAX_LOAD: Final = 1.0
BUSY: Final = """

The machine was busy with other work, as its load average below shows: figures are low, starts are
long, and ratios are uncertain, most of all of what runs in a JVM and of short runs."""

TITLES: Final = {READ: "Reading a topic", COPY: "Copying a topic"}
ABOUT: Final = {
    READ: (
        "Each reads key, value, partition, offset and timestamp of all records, from the beginning "
        "to the end. What they end in differs: see the settings."
    ),
    COPY: (
        "Each writes the keys and values of a topic to another one with four partitions. The time "
        "ends when all records are acknowledged, and the end offsets of the other topic are "
        "compared with the records that were read. Partitions are chosen by each tool's default."
    ),
}

SUITED: Final = """\
## What suits which work

- **Flink** is an engine for streams with state: event time, joins, windows, and checkpoints that
  include its Kafka transactions. Use it for such work, or where you already run a cluster. It needs
  Java, and a jar for Kafka.
- **Ray Data** brings a topic to Python functions on many machines or GPUs, next to a training job.
  It reads bounded ranges only, and your program stores offsets.
- **Quix Streams** and **Bytewax** call Python for each record, without a cluster and without Java.
  They are simpler where each record needs Python anyway and their rates suffice.
- **Polars** or **DuckDB** with confluent-kafka's consumer need two packages and a short program.
  They are simpler where your program stores offsets and you need no Spark.
- **The JVM connector** is part of the Spark project and defines the semantics. Rows that stay in
  the JVM need no Python workers.
- **This library** reads topics into Spark, or into Arrow in Python, with Spark's options and
  checkpoints and without jars."""


@final
@dataclass(frozen=True, slots=True)
class Size:
    """The size of a run, and how busy the machine was before it."""

    records: int
    runs: int
    load: float
    """The load average."""


def page(
    measured: Sequence[Measured],
    competitors: Sequence[Competitor],
    machine: Mapping[str, str],
    size: Size,
    command: str,
) -> str:
    """Return the page: tables of results, settings, and the programs."""
    outcomes = [outcome for _, _, outcome in measured]
    works = dict.fromkeys(work for work, _, _ in measured)
    tables = (
        _table(work, [(size, outcome) for of, size, outcome in measured if of == work], competitors)
        for work in works
    )
    described = {**machine, "load average before the run": f"{size.load:.1f}"}
    rows = "".join(f"| {name} | {value} |\n" for name, value in described.items())
    return "\n\n".join(
        (
            _introduction(size, command),
            *tables,
            SUITED,
            _settings(competitors, outcomes),
            f"## Machine and versions\n\n| | |\n|---|---|\n{rows}".rstrip(),
            _programs(competitors),
        )
    )


def section_of(work: str, cases: Sequence[tuple[int, Outcome]]) -> Section:
    """Return the results of a kind of work: a case for each size of values."""
    return Section(
        work,
        TITLES[work],
        ABOUT[work],
        RECORDS_PER_SECOND,
        tuple(
            Comparison(
                outcome.case,
                tuple(
                    Samples(name, tuple(run.rate for run in runs))
                    for name, runs in outcome.runs.items()
                ),
                value_bytes,
            )
            for value_bytes, outcome in cases
        ),
    )


def _introduction(size: Size, command: str) -> str:
    busy = BUSY if size.load > MAX_LOAD else ""
    rounds = "one round" if size.runs == 1 else f"each of {size.runs} rounds"
    return f"""\
# Alternatives

Written by `python -m benchmarks.alternatives`; do not edit. This library beside what else reads
Kafka from Python: on the same topics, with the same broker, on one machine, in one run of

```console
{command}
```

In {rounds} every competitor runs once, as a process of its own with the environment that
it needs; the tables have medians. It does the cases one after another, and before each of them
the same with a small topic, which starts what a tool starts late. Then the time begins, and it
ends when the last record is there. The time of the start and of the first small topic is in the
column *start* of the settings.

The topics have four partitions and {size.records:,} records with values of 100 B, or three times as
many bytes in values of 1 kB, and keys of 8 B. The slower tools read fewer: see the settings. The
broker is on the same machine and shares its cores with what is measured.{busy}"""


def _table(
    work: str, cases: Sequence[tuple[int, Outcome]], competitors: Sequence[Competitor]
) -> str:
    ours = {one.name for one in competitors if one.is_ours}
    notes = [
        f"- {note}"
        for _, outcome in cases
        for note in (*_failures(outcome), *_faster(outcome, ours))
    ]
    table = as_markdown(section_of(work, cases)).rstrip()
    return "\n\n".join((f"## {TITLES[work]}", ABOUT[work], table, "\n".join(notes)))


def _failures(outcome: Outcome) -> Iterator[str]:
    for name, reason in outcome.failures.items():
        yield f"{outcome.case}: **{name}** has no figure: `{reason.replace('`', '')}`"


def _faster(outcome: Outcome, ours: set[str]) -> Iterator[str]:
    """Yield who is faster than our fastest reader or writer, with and without Spark."""
    medians = {
        name: statistics.median(run.rate for run in runs) for name, runs in outcome.runs.items()
    }
    for form, names in {
        "in Spark": [name for name in medians if name in ours and name.startswith("Spark")],
        "without Spark": [name for name in medians if name in ours and name.startswith("No ")],
    }.items():
        if not names:
            continue
        best = max(names, key=medians.__getitem__)
        faster = [
            name for name, rate in medians.items() if rate > medians[best] and name not in ours
        ]
        said = f"faster: {'; '.join(faster)}" if faster else "no alternative was faster"
        yield f"{outcome.case}, beside this library {form} ({best}): {said}."


def _settings(competitors: Sequence[Competitor], outcomes: Sequence[Outcome]) -> str:
    lines = [("competitor", "settings", "a read ends in", "packages", "records", "start, s")]
    lines += [
        (
            one.name,
            one.settings,
            one.result,
            ", ".join(f"`{name}`" for name in one.environment.requirements) or "this project's",
            "all" if one.share == 1 else f"1 of {one.share}",
            _start(one.name, outcomes),
        )
        for one in competitors
    ]
    table = markdown_table(lines).rstrip().replace("---:", "---")
    return f"## Settings\n\n{table}"


def _start(name: str, outcomes: Sequence[Outcome]) -> str:
    runs = (run for outcome in outcomes for run in outcome.runs.get(name, ()))
    starts = [run.start for run in runs if run.start is not None]
    return f"{statistics.median(starts):.1f}" if starts else ""


def _programs(competitors: Sequence[Competitor]) -> str:
    names = list(dict.fromkeys(one.program for one in competitors))
    folder = "../../benchmarks/alternatives"
    included = [
        *((f"programs/{name}.py", "") for name in names),
        ("programs/consumed.py", "What the loops of Polars and DuckDB share:"),
        ("task.py", "What all of them share:"),
    ]
    parts = [
        f"{text or f'`{path}`:'}\n\n```{{literalinclude}} {folder}/{path}\n:language: python\n```"
        for path, text in included
    ]
    return "\n\n".join(("## Programs", *parts)) + "\n"
