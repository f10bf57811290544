"""The results of a run that other pages quote."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from .bench import CLIENTS
from .page import rounds_text
from .pipelines import JVM_REAL_TIME
from .spark import JVM, JVM_TUNED
from .tables import figure, markdown_table, stressed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .results import AnySection
    from .run import Run


@final
@dataclass(frozen=True, slots=True)
class Quote:
    """A row of the README's table: a case of a section, and its peers."""

    text: str
    section: str
    case: str
    jvm: str = JVM
    tuned: str = JVM_TUNED


READ_100_B: Final = Quote("batch, reads 100 B", "batch", "100 B; 4 partitions")

QUOTES: Final = (
    READ_100_B,
    Quote("batch, reads 1 kB", "batch", "1 kB; 4 partitions"),
    Quote("batch, reads JSON of 10 kB, lz4", "batch", "10 kB JSON, lz4; 4 partitions"),
    Quote("batch, writes 100 B", "write", "100 B"),
    Quote("batch, writes 1 kB", "write", "1 kB"),
    Quote("batch, reads columns of JSON", "typed-json", "JSON events"),
    Quote("batch, reads columns of Avro", "typed-avro", "Avro events"),
    Quote("batch, writes structs as JSON", "typed-write", "JSON"),
    Quote("batch, writes structs as Avro", "typed-write", "Avro"),
    Quote("stream, a record every 10 ms: trigger", "trickle", "a record every 10 ms"),
    *(
        Quote(
            f"continuous, {rate} records/s (JVM: real-time): {percentile}",
            "continuous",
            f"{rate} records/s, 1 partition; {percentile}",
            JVM_REAL_TIME,
        )
        for rate in ("100", "1,000")
        for percentile in ("p50", "p99")
    ),
    *(
        Quote(f"{kind}, {topic}", "wide", f"{topic}; {case}")
        for topic in ("200 partitions of 50 records", "1,000 partitions of 10 records")
        for kind, case in (("batch", "batch"), ("stream", "trigger"))
    ),
    Quote("first query of a session", "first-second", "first query"),
)


def readme_table(run: Run) -> str:
    """Return the README's table, without the rows of sections that the run does not have."""
    sections = {section.name: section for section in run.sections}
    head = ("Spark", JVM, "tuned", *(f"`{client}`" for client in CLIENTS))
    rows = [_row(quote, sections[quote.section]) for quote in QUOTES if quote.section in sections]
    medians = f"Medians of {rounds_text(run.plan.runs)} on {run.machine['processor']}."
    return f"{markdown_table([head, *rows], texts=1)}\n{medians}"


def index_sentence(run: Run) -> str:
    """Return the first page's sentence about the default client's reads."""
    sections = {section.name: section for section in run.sections}
    ratios = _ratios(READ_100_B, sections[READ_100_B.section], CLIENTS[0])
    return textwrap.fill(
        f"Batch queries read records of 100 B **{ratios[JVM]:.1f} times as fast** as the JVM "
        f"connector, {ratios[JVM_TUNED]:.1f} times as fast as one that is tuned for it. [The "
        "benchmarks](reference/benchmarks.md) also say where it is slower.",
        100,
        break_on_hyphens=False,
    )


def _row(quote: Quote, section: AnySection) -> list[str]:
    medians = section.medians[quote.case]
    peers = [figure(medians[one]) if one in medians else "" for one in (quote.jvm, quote.tuned)]
    ours = [_cell(quote, section, client) for client in CLIENTS]
    return [f"{quote.text}, {section.unit.name}", *peers, *ours]


def _cell(quote: Quote, section: AnySection, client: str) -> str:
    """Return a client's figure with its ratios, in brackets the one to the tuned peer."""
    ratios = _ratios(quote, section, client)
    texts = [
        stressed(ratio) if peer == quote.jvm else f"({stressed(ratio)})"
        for peer, ratio in ratios.items()
    ]
    return f"{figure(section.medians[quote.case][client])}: {' '.join(texts)}"


def _ratios(quote: Quote, section: AnySection, client: str) -> Mapping[str, float]:
    """Return the ratio of a client to each of the peers that were measured."""
    medians = section.medians[quote.case]
    return {
        peer: section.unit.times_as_good(medians[client], medians[peer])
        for peer in (quote.jvm, quote.tuned)
        if peer in medians
    }
