"""The command line: measures the competitors, and writes the page after a run of all."""

from __future__ import annotations

import argparse
import itertools
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

from confluent_kafka import Consumer, TopicPartition

from benchmarks.machine import describe_machine
from benchmarks.tables import as_text
from benchmarks.topics import B100_KEYS, Shape, Topic, Topics
from pyspark_kafka.brokers import KafkaCluster

from .competitors import COMPETITORS, Competitor, jars_of
from .environments import InstallError, python_of
from .page import Size, page, section_of
from .rounds import Run, RunError, run_program, run_rounds, with_ports
from .task import COPY, READ, Order, Task

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .rounds import Outcome

PAGE: Final = Path(__file__).parents[2] / "docs" / "reference" / "alternatives.md"

PARTITIONS: Final = 4
WARM_UP_RECORDS: Final = 20_000

KB1_KEYS: Final = Shape("1 kB, 8 B keys", 1_000, has_keys=True, volume=3)
CASES: Final[Mapping[str, tuple[str, Shape]]] = {
    "read-100": (READ, B100_KEYS),
    "read-1000": (READ, KB1_KEYS),
    "copy-100": (COPY, B100_KEYS),
}


@final
@dataclass(frozen=True, slots=True)
class Measurement:
    """A broker, and how large and long runs are."""

    kafka: KafkaCluster
    size: Size
    limit: float
    _numbers: Iterator[int] = field(default_factory=itertools.count)
    _topics: dict[int, Topics] = field(default_factory=dict)

    def run(self, work: str, shape: Shape, python: Path, competitor: Competitor) -> Run:
        """Run a competitor once, and check what it did.

        :raises RunError: if it failed, or if records are missing.
        """
        warm_up = self._filled(shape, WARM_UP_RECORDS)
        topic = self._filled(shape, self.size.records // competitor.share)
        number = next(self._numbers)
        targets = [f"copies-{number}-{name}" for name in ("warm-up", "task")]
        for target in targets:
            self.kafka.create_topic(target, PARTITIONS)
        tasks = [
            self._task(competitor, each, target)
            for each, target in zip((warm_up, topic), targets, strict=True)
        ]
        try:
            order = Order(work, competitor.processes, *tasks)
            answer, start = run_program(python, competitor.program, order, self.limit)
            found = self._count(targets[-1]) if work == COPY else answer.records
            if not found == answer.records == topic.records:
                raise RunError(
                    f"{found:,} of {topic.records:,} records, and it says {answer.records:,}"
                )
        finally:
            for target in targets:
                self.kafka.delete_topic(target)
        return Run(answer.records / answer.seconds, start)

    def _filled(self, shape: Shape, records: int) -> Topic:
        topics = self._topics.setdefault(records, Topics(self.kafka, records))
        return topics.filled(shape, PARTITIONS)

    def _task(self, competitor: Competitor, topic: Topic, target: str) -> Task:
        task = Task(
            self.kafka.bootstrap_servers,
            topic.name,
            target,
            topic.records,
            competitor.variant,
            jars_of(competitor.program),
            tuple(range(PARTITIONS)),
        )
        return with_ports(task, competitor.processes)

    def _count(self, topic: str) -> int:
        consumer = Consumer(
            {
                "bootstrap.servers": self.kafka.bootstrap_servers,
                "group.id": "alternatives",
                "log_level": 0,
            }
        )
        partitions = (TopicPartition(topic, number) for number in range(PARTITIONS))
        try:
            return sum(_end(consumer, partition) for partition in partitions)
        finally:
            consumer.close()


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the competitors, print the tables, and write the page after a run of all."""
    chosen = _parser().parse_args(arguments)
    size = Size(chosen.records, chosen.runs)
    competitors = [one for one in COMPETITORS if one.name in chosen.only]
    pythons, missing = _environments(competitors)
    with KafkaCluster() as kafka:
        measurement = Measurement(kafka, size, chosen.limit)
        measured = [
            (work, shape.value_bytes, _measure(measurement, work, shape, pythons, missing))
            for work, shape in (CASES[name] for name in chosen.cases)
        ]
    for work, value_bytes, outcome in measured:
        print(as_text(section_of(work, [(value_bytes, outcome)])))
        for name, reason in outcome.failures.items():
            print(f"{name}: {reason}")
    if len(competitors) == len(COMPETITORS):
        command = " ".join(("python -m benchmarks.alternatives", *sys.argv[1:]))
        PAGE.write_text(page(measured, COMPETITORS, describe_machine(), size, command))


def _parser() -> argparse.ArgumentParser:
    names = [one.name for one in COMPETITORS]
    made = argparse.ArgumentParser(
        prog="python -m benchmarks.alternatives",
        description="Measure this library beside other tools; a run of all writes the page.",
    )
    made.add_argument("--only", nargs="+", choices=names, default=names, help="competitors to run")
    made.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES), help="what they do")
    made.add_argument("--runs", type=int, default=3, help="rounds (3)")
    made.add_argument("--records", type=int, default=2_000_000, help="records of 100 B (2,000,000)")
    made.add_argument("--limit", type=float, default=180, help="seconds of a run at most (180)")
    return made


def _environments(
    competitors: Sequence[Competitor],
) -> tuple[Mapping[Competitor, Path], Mapping[str, str]]:
    """Return the Python of each competitor, and why some have none."""
    pythons, missing = {}, {}
    for one in competitors:
        try:
            pythons[one] = python_of(one.environment)
        except InstallError as error:
            missing[one.name] = f"could not be installed: {error}"
    return pythons, missing


def _measure(
    measurement: Measurement,
    work: str,
    shape: Shape,
    pythons: Mapping[Competitor, Path],
    missing: Mapping[str, str],
) -> Outcome:
    outcome = run_rounds(
        shape.name,
        list(pythons),
        measurement.size.runs,
        lambda one: measurement.run(work, shape, pythons[one], one),
    )
    outcome.failures.update(missing)
    return outcome


def _end(consumer: Consumer, partition: TopicPartition) -> int:
    _, end = consumer.get_watermark_offsets(partition)
    return end
