"""The page of costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark_kafka.brokers.jars import KAFKA_VERSION

from .batch_read import READERS
from .batch_write import WRITERS
from .costs import (
    BASE,
    BASE_KB1,
    COPY,
    DIMENSIONS,
    READ,
    RECORD_GROUPS,
    ROUNDS,
    Cost,
    Setup,
    cores_for_a_gigabyte,
)
from .plan import FULL
from .processor_time import Group
from .spark import JVM_TUNED
from .tables import figure, markdown_table, times
from .topics import KB1

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .costs import Costs
    from .plan import Plan
    from .processor_time import Seconds

INTRODUCTION: Final = """\
# Scaling

Written by `python -m benchmarks.scaling`; do not edit. All figures are from one run on one machine:

```console
{command}
```

What does a query cost on a larger cluster? A standalone cluster of Spark, with executors of one
core each, and the brokers run on a machine with few cores, so the time of a query says nothing
about a cluster. The processor time does: what the system counts as user and system time of

- the driver: the application's Python process, its JVM, and the Python processes that plan reads,
- the executors' JVMs,
- their Python workers, which the JVM connector does not need,
- the brokers, including what they do without a query.

Spark's master and its workers' daemons are not counted, and neither is a process that has ended
before its query has.

A query costs its fixed time, and the time per record. The *fixed* time is that of the same query
on a topic with one record in each partition, the driver's included. What the others take more with
a full topic, over its records, is the time per million records: the driver plans the same tasks for
any number of records.

![Processor time per million records of a read]({plot})

Values have 100 B of random bytes; there are no keys, headers, compression and TLS. A full topic has
{records:,} records. Where a table does not say otherwise, there are {base.executors} executors,
{base.partitions} partitions and {base.brokers} broker; each partition has one replica. A read goes
into Spark's sink `noop`. A copy writes keys and values to a new topic with as many partitions. The
JVM connector reads with {reads},
and writes with {writes};
all other settings are defaults, and so is what executors log.

A read and, where there are copies, a copy by each client warm a session up. Then each query runs
once in a round; the tables show the medians of the rounds, here {runs}. The last columns are the
minimum and maximum of all processes' time per million records, and its median relative to the first
case.
"""

CAUTION: Final = """\
**This run was a short one.** With fewer than {runs} rounds, or {records:,} records, differences
between the cases are mostly noise.
"""

GIGABYTE: Final = """\
## What 1 GB/s takes

1 GB of values per second is ten million records of 100 B, or one million of 1 kB. That rate times
the time per record is the number of cores that are busy with a read. It assumes

- cores like those of this machine, busy all of the time: leave room for peaks,
- the time per record with {base.executors} executors, {base.partitions} partitions and
  {base.brokers} broker, which the tables above show for others, too,
- one query, which does nothing with the records; its fixed time is not included,
- no TLS, no compression, no keys and no headers; the topic with 1 kB values has {volume} times as
  many bytes as the others,
- records that the brokers have in their page cache, and a network that is not a limit,
- brokers' cores for this read alone: what producers, replicas and other readers take is not in it.
"""


def page(costs: Costs, machine: Mapping[str, str], plan: Plan, command: str, plot: str) -> str:
    """Return the page: a table for each dimension, and the cores of a rate."""
    return "\n".join(
        (
            INTRODUCTION.format(
                command=command,
                plot=plot,
                records=plan.records,
                base=BASE,
                reads=_settings(READERS[JVM_TUNED].options),
                writes=_settings(WRITERS[JVM_TUNED].options),
                runs=plan.runs,
            ),
            *_caution(plan),
            *(_section(costs, name, setups) for name, setups in DIMENSIONS.items()),
            GIGABYTE.format(base=BASE, volume=KB1.volume),
            markdown_table(list(_gigabyte_lines(costs))),
            "## Machine and versions\n",
            markdown_table([("", ""), *_machine(machine).items()]),
        )
    )


def bars(costs: Costs) -> Mapping[str, Mapping[str, Seconds]]:
    """Return the costs of reads, by the titles of panels and the names of bars."""
    return {
        f"{name}: processor seconds per million records of a read": {
            f"{getattr(setup, name)}, {cost.competitor}": cost.per_million
            for setup in setups
            for cost in costs[setup, READ]
        }
        for name, setups in DIMENSIONS.items()
    }


def _caution(plan: Plan) -> Sequence[str]:
    is_short = plan.runs < ROUNDS or plan.records < FULL.records
    return [CAUTION.format(runs=ROUNDS, records=FULL.records)] if is_short else []


def _section(costs: Costs, name: str, setups: Sequence[Setup]) -> str:
    parts = [f"## {name.capitalize()}\n"]
    for work, title in ((READ, "A read:"), (COPY, "A copy:")):
        cases = [(getattr(one, name), costs[one, work]) for one in setups if (one, work) in costs]
        if len(cases) == len(setups):
            parts += [f"{title}\n", markdown_table(list(_cost_lines(name, cases)))]
    return "\n".join(parts)


def _cost_lines(name: str, cases: Sequence[tuple[int, Sequence[Cost]]]) -> Iterator[Sequence[str]]:
    groups = [group.value for group in RECORD_GROUPS]
    yield (name, "client", "fixed, s", *groups, "s per million", "min..max", f"to {cases[0][0]}")
    for number, of_case in cases:
        for cost, first in zip(of_case, cases[0][1], strict=True):
            total = cost.per_million_in_all
            yield (
                str(number),
                cost.competitor,
                f"{cost.fixed:.2f}",
                *(f"{seconds:z.2f}" for seconds in cost.per_million.values()),
                f"{total.median:.2f}",
                f"{total.min:.2f}..{total.max:.2f}" if len(total.figures) > 1 else "",
                times(total.median / first.per_million_in_all.median),
            )


def _gigabyte_lines(costs: Costs) -> Iterator[Sequence[str]]:
    executors = (Group.EXECUTORS, Group.WORKERS)
    yield ("values", "client", "executors' cores", *(one.value for one in executors), "brokers")
    for setup in (BASE, BASE_KB1):
        for cost in costs[setup, READ]:
            cores = cores_for_a_gigabyte(cost.per_million, setup.shape.value_bytes)
            yield (
                setup.shape.name,
                cost.competitor,
                figure(sum(cores[group] for group in executors)),
                *(figure(cores[group]) for group in executors),
                figure(cores[Group.BROKERS]),
            )


def _settings(settings: Mapping[str, str]) -> str:
    return ", ".join(f"`{name}={value}`" for name, value in settings.items())


def _machine(machine: Mapping[str, str]) -> Mapping[str, str]:
    return {**machine, "broker": f"Apache Kafka {KAFKA_VERSION}, on the same machine"}
