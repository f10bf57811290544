"""The command line of the benchmarks."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from pyspark_kafka.brokers import KafkaCluster

from .batch_read import measure_batch_read
from .batch_write import measure_batch_write
from .bench import Bench
from .catch_up import measure_catch_up
from .continuous import measure_continuous
from .decoder import measure_decoder
from .first_second import measure_first_second
from .memory import measure_memory
from .near_replica import measure_near_replica
from .one_core import measure_one_core
from .plan import FULL, QUICK, Plan
from .planning import measure_planning
from .results import LatencySection, Section
from .tables import as_text
from .thousands_of_partitions import measure_thousands_of_partitions
from .topics import Topics
from .trickle import measure_trickle
from .typed.decoders import measure_decoders
from .typed.reads import measure_avro_read, measure_json_read, measure_protobuf_read
from .typed.writes import measure_typed_write
from .wide_topics import measure_wide_topics
from .write_memory import measure_write_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence


Measured: TypeAlias = Section | LatencySection | tuple[Section, ...]

MEASURES: Final[Mapping[str, Callable[[Bench], Measured]]] = {
    "batch": measure_batch_read,
    "write": measure_batch_write,
    "typed-json": measure_json_read,
    "typed-avro": measure_avro_read,
    "typed-protobuf": measure_protobuf_read,
    "typed-write": measure_typed_write,
    "typed-decoders": measure_decoders,
    "one-core": measure_one_core,
    "decoder": measure_decoder,
    "trickle": measure_trickle,
    "wide": measure_wide_topics,
    "thousands": measure_thousands_of_partitions,
    "first-second": measure_first_second,
    "continuous": measure_continuous,
    "near-replica": measure_near_replica,
    "catch-up": measure_catch_up,
    "memory": measure_memory,
    "write-memory": measure_write_memory,
    "planning": measure_planning,
}

DOCS: Final = Path(__file__).parents[1] / "docs" / "reference"
PAGE: Final = DOCS / "benchmarks.md"
PLOT: Final = DOCS / "benchmarks.svg"
LATENCY_PLOT: Final = DOCS / "latency.svg"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the measurements, print the tables, and write the page after a full run."""
    chosen = parser().parse_args(arguments)
    plan = plan_of(chosen)
    sections = []
    with KafkaCluster() as kafka:
        for section in _measured(Bench(kafka, Topics(kafka, plan.records), plan), chosen.only):
            print(as_text(section), flush=True)
            sections.append(section)
    if not chosen.quick and set(chosen.only) == set(MEASURES):
        _publish(sections, plan)


def parser() -> argparse.ArgumentParser:
    """Return the command line's parser."""
    made = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Print ratios to the peers; a run of all measurements writes the page.",
    )
    made.add_argument("--quick", action="store_true", help="check that everything runs")
    made.add_argument(
        "--only", nargs="+", choices=MEASURES, default=list(MEASURES), help="measurements to run"
    )
    made.add_argument("--runs", type=_positive, help=f"counted rounds ({FULL.runs})")
    made.add_argument("--records", type=_positive, help=f"records of 100 B ({FULL.records:,})")
    return made


def plan_of(chosen: argparse.Namespace) -> Plan:
    """Return the plan of the command line."""
    plan = QUICK if chosen.quick else FULL
    overrides = {name: getattr(chosen, name) for name in ("runs", "records")}
    return replace(plan, **{name: value for name, value in overrides.items() if value is not None})


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not positive")
    return number


def _measured(bench: Bench, names: Sequence[str]) -> Iterator[Section | LatencySection]:
    began = time.monotonic()
    for name, measure in MEASURES.items():
        if name in names:
            print(f"{time.monotonic() - began:4.0f} s: {name} ...", file=sys.stderr, flush=True)
            measured = measure(bench)
            yield from measured if isinstance(measured, tuple) else (measured,)
    print(f"{time.monotonic() - began:4.0f} s: done", file=sys.stderr, flush=True)


def _publish(sections: Sequence[Section | LatencySection], plan: Plan) -> None:
    from .machine import describe_machine
    from .page import Plots, page
    from .plot import write_latency_plot, write_plot

    write_plot([one for one in sections if isinstance(one, Section)], PLOT)
    for section in sections:
        if isinstance(section, LatencySection) and section.is_plotted:
            write_latency_plot(section, LATENCY_PLOT)
    command = " ".join(("python -m benchmarks", *sys.argv[1:]))
    plots = Plots(PLOT.name, LATENCY_PLOT.name)
    PAGE.write_text(page(sections, describe_machine(), plan, command, plots))
