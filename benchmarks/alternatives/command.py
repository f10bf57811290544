"""The command line: measures the competitors, and writes the page after a run of all."""

from __future__ import annotations

import argparse
import itertools
import os
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias, final

from confluent_kafka import Consumer, TopicPartition

from benchmarks.machine import describe_machine
from benchmarks.tables import as_text
from benchmarks.topics import B100_KEYS, Shape, Topic, Topics
from pyspark_kafka.brokers import KafkaCluster
from pyspark_kafka.brokers.errors import JarsError

from .competitors import COMPETITORS, Competitor, jars_of
from .environments import InstallError, python_of
from .page import Size, page, section_of
from .rounds import Run, run_program, run_rounds, with_ports
from .task import COPY, READ, Order, Orders, Task

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .task import Answer

PAGE: Final = Path(__file__).parents[2] / "docs" / "reference" / "alternatives.md"

PARTITIONS: Final = 4
WARM_UP_RECORDS: Final = 20_000
REQUEST_SECONDS: Final = 30.0

KB1_KEYS: Final = Shape("1 kB, 8 B keys", 1_000, has_keys=True, volume=3)
Case: TypeAlias = tuple[str, Shape]

CASES: Final[Mapping[str, Case]] = {
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

    def run(
        self, cases: Sequence[Case], python: Path, competitor: Competitor
    ) -> Sequence[Run | str]:
        """Run a competitor in each case, check its answers, and return its runs or reasons."""
        orders = [self._order(competitor, work, shape) for work, shape in cases]
        try:
            answers, launched, reason = run_program(
                python, competitor.program, Orders(competitor.processes, tuple(orders)), self.limit
            )
            found: list[Run | str] = [
                self._missing(order, answer) or Run(answer.records / answer.seconds)
                for order, answer in zip(orders, answers, strict=False)
            ]
        finally:
            for order in orders:
                self.kafka.delete_topic(order.warm_up.target)
                self.kafka.delete_topic(order.task.target)
        if found and isinstance(first := found[0], Run):
            found[0] = replace(first, start=answers[0].began_at - launched)
        return [*found, *[reason] * (len(orders) - len(found))]

    def _order(self, competitor: Competitor, work: str, shape: Shape) -> Order:
        records = (WARM_UP_RECORDS, self.size.records // competitor.share)
        warm_up, task = (self._task(competitor, self._filled(shape, each)) for each in records)
        return Order(work, warm_up, task)

    def _missing(self, order: Order, answer: Answer) -> str:
        """Return the problem of an answer, if it has one."""
        wanted = order.task.records
        found = self._count(order.task.target) if order.work == COPY else answer.records
        if found == answer.records == wanted:
            return ""
        return f"{found:,} of {wanted:,} records, and it says {answer.records:,}"

    def _filled(self, shape: Shape, records: int) -> Topic:
        topics = self._topics.setdefault(records, Topics(self.kafka, records))
        return topics.filled(shape, PARTITIONS)

    def _task(self, competitor: Competitor, topic: Topic) -> Task:
        target = f"copies-{next(self._numbers)}"
        self.kafka.create_topic(target, PARTITIONS)
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
    size = Size(chosen.records, chosen.runs, os.getloadavg()[0])
    cases = [CASES[name] for name in chosen.cases]
    competitors = [one for one in COMPETITORS if one.name in chosen.only]
    pythons, missing = _environments(competitors)
    with KafkaCluster() as kafka:
        measurement = Measurement(kafka, size, chosen.limit)
        outcomes = run_rounds(
            [shape.name for _, shape in cases],
            list(pythons),
            size.runs,
            lambda one: measurement.run(cases, pythons[one], one),
        )
    measured = []
    for (work, shape), outcome in zip(cases, outcomes, strict=True):
        outcome.failures.update(missing)
        measured.append((work, shape.value_bytes, outcome))
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
    made.add_argument("--limit", type=float, default=600, help="seconds of a program at most (600)")
    return made


def _environments(
    competitors: Sequence[Competitor],
) -> tuple[Mapping[Competitor, Path], Mapping[str, str]]:
    """Return the Python of each competitor, and why some have none."""
    pythons, missing = {}, {}
    for one in competitors:
        try:
            python = python_of(one.environment)
            jars_of(one.program)
        except (InstallError, JarsError) as error:
            missing[one.name] = f"could not be installed: {error}"
        else:
            pythons[one] = python
    return pythons, missing


def _end(consumer: Consumer, partition: TopicPartition) -> int:
    _, end = consumer.get_watermark_offsets(partition, timeout=REQUEST_SECONDS)
    return end
