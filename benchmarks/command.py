"""The command line of the benchmarks."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final, TypeAlias

from pyspark_kafka.brokers import KafkaCluster

from .batch_read import measure_batch_read
from .batch_write import measure_batch_write
from .bench import Bench
from .catch_up import measure_catch_up
from .codecs import measure_codecs
from .continuous import measure_continuous
from .decoder import measure_decoder
from .finished_parts import join_parts, load_part, save_part
from .first_second import measure_first_second
from .machine import describe_machine
from .memory import measure_memory
from .near_replica import measure_near_replica
from .one_core import measure_one_core
from .page import LATENCY_PLOT, PLOT
from .plan import FULL, QUICK, Plan
from .planning import measure_planning
from .results import LatencySection, Section
from .run import Run
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

    from .results import AnySection


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
    "codecs": measure_codecs,
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

BROKER: Final[Mapping[str, str]] = {"log.segment.delete.delay.ms": "1000"}
"""Kafka's minute would let the system write deleted topics to the disk, beside the next writer."""

ROOT: Final = Path(__file__).parents[1]
DOCS: Final = ROOT / "docs"
RESULTS: Final = DOCS / "reference" / "benchmarks.json"
PARTS: Final = ROOT / "build" / "benchmarks"
"""Where the results of finished measurements are until all are."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the measurements, print the tables, and publish the results if they are all."""
    chosen = parser().parse_args(arguments)
    plan = plan_of(chosen)
    names = [name for name in MEASURES if name in chosen.only]
    if chosen.quick or len(names) < len(MEASURES):
        found = [each for _, sections in _measured(plan, names) for each in sections]
        if len(names) == len(MEASURES):
            with TemporaryDirectory() as folder:
                draw(found, Path(folder))
        return
    command = " ".join(("python -m benchmarks", *sys.argv[1:]))
    run = Run(command, plan, describe_machine(), (now(),))
    kept = {name: load_part(PARTS, name, run) for name in names}
    parts = {name: part for name, part in kept.items() if part is not None}
    if parts:
        print(f"measured before, in {PARTS}: {', '.join(parts)}", file=sys.stderr, flush=True)
    for name, sections in _measured(plan, [name for name in names if name not in parts]):
        parts[name] = replace(run, sections=sections)
        save_part(PARTS, name, parts[name])
    publish(join_parts(run, [parts[name] for name in names]))
    shutil.rmtree(PARTS)


def parser() -> argparse.ArgumentParser:
    """Return the command line's parser."""
    made = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Print ratios to the peers; a run of all measurements writes the results and "
        "the pages, and continues where it was interrupted.",
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


def _measured(plan: Plan, names: Sequence[str]) -> Iterator[tuple[str, tuple[AnySection, ...]]]:
    """Yield the sections of each measurement, printed."""
    began = time.monotonic()
    with KafkaCluster(config=BROKER) as kafka:
        bench = Bench(kafka, Topics(kafka, plan.records), plan)
        for name in names:
            print(f"{time.monotonic() - began:4.0f} s: {name} ...", file=sys.stderr, flush=True)
            measured = MEASURES[name](bench)
            sections = measured if isinstance(measured, tuple) else (measured,)
            for section in sections:
                print(as_text(section), flush=True)
            yield name, sections
    print(f"{time.monotonic() - began:4.0f} s: done", file=sys.stderr, flush=True)


def now() -> str:
    """Return the time, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def publish(run: Run) -> None:
    """Write the plots and the results, and the pages that are made from the results."""
    draw(run.sections, RESULTS.parent)
    RESULTS.write_text(run.to_json())
    subprocess.run([sys.executable, str(DOCS / "generate.py")], check=True)  # noqa: S603


def draw(sections: Sequence[AnySection], folder: Path) -> None:
    """Write the plots into a folder."""
    from .plot import write_latency_plot, write_plot

    write_plot([one for one in sections if isinstance(one, Section)], folder / PLOT)
    for section in sections:
        if isinstance(section, LatencySection) and section.is_plotted:
            write_latency_plot(section, folder / LATENCY_PLOT)
