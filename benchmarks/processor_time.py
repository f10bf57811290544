"""The processor time of a query, by the processes that spend it."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias, final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

PROCESSES: Final = Path("/proc")


@final
class Group(Enum):
    """The processes of a query that are counted together."""

    DRIVER = "driver"
    EXECUTORS = "executors' JVMs"
    WORKERS = "Python workers"
    BROKERS = "brokers"


Seconds: TypeAlias = "Mapping[Group, float]"

_MAIN: Final[Mapping[str, Group | None]] = {
    "org.apache.spark.executor.CoarseGrainedExecutorBackend": Group.EXECUTORS,
    "kafka.Kafka": Group.BROKERS,
    "org.apache.spark.deploy.master.Master": None,
    "org.apache.spark.deploy.worker.Worker": None,
}
"""The main classes of JVMs, and their groups; Spark's daemons have no part in a query."""


@final
@dataclass(frozen=True, slots=True)
class Process:
    """A process, and the seconds that it has spent."""

    pid: int
    parent: int
    arguments: tuple[str, ...]
    seconds: float


def spent_between(before: Iterable[Process], after: Iterable[Process], driver: int) -> Seconds:
    """Return the time that each group of the driver's descendant processes spent.

    The time of a process that has ended since is lost. Its parent does not have it, either: Spark's
    daemons of Python workers ignore SIGCHLD.
    """
    earlier = {process.pid: process.seconds for process in before}
    by_pid = {process.pid: process for process in after}
    seconds = dict.fromkeys(Group, 0.0)
    for process in by_pid.values():
        group = _group_of(process, by_pid, driver)
        if group is not None:
            seconds[group] += process.seconds - earlier.get(process.pid, 0.0)
    return seconds


def running_processes() -> Iterator[Process]:
    """Yield the processes of this machine."""
    ticks = os.sysconf("SC_CLK_TCK")
    for stat in PROCESSES.glob("[0-9]*/stat"):
        # It may end while it is read.
        with suppress(OSError):
            yield parse_process(stat.read_text(), stat.with_name("cmdline").read_bytes(), ticks)


def parse_process(stat: str, cmdline: bytes, ticks_per_second: int) -> Process:
    """Return a process by its files ``stat`` and ``cmdline``."""
    pid, _, rest = stat.partition(" (")
    # The name before it may have brackets. See proc_pid_stat(5) for the others.
    fields = rest.rpartition(")")[2].split()
    spent = sum(map(int, fields[11:13]))
    arguments = tuple(cmdline.decode(errors="replace").split("\0"))
    return Process(int(pid), int(fields[1]), arguments, spent / ticks_per_second)


def _group_of(process: Process, by_pid: Mapping[int, Process], driver: int) -> Group | None:
    line = [process]
    while line[-1].pid != driver:
        if line[-1].parent not in by_pid:
            return None
        line.append(by_pid[line[-1].parent])
    group: Group | None = Group.DRIVER
    for one in reversed(line):
        main = next((argument for argument in one.arguments if argument in _MAIN), None)
        if main is not None:
            group = _MAIN[main]
        elif group is Group.EXECUTORS:
            group = Group.WORKERS
    return group
