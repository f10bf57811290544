"""The task of a program, its timing, and its answer.

It runs in the environment of any tool, so it imports the standard library only.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias, final

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection

CORES: Final = 2
READ: Final = "read"
COPY: Final = "copy"


@final
@dataclass(frozen=True, slots=True)
class Task:
    """A topic to read to its end, or to copy to another topic."""

    bootstrap_servers: str
    source: str
    target: str
    records: int
    variant: str = ""
    """The variant to use, where the program has several."""

    jars: str = ""
    """The jars that the environment has in addition to Python packages, separated by commas."""

    partitions: tuple[int, ...] = ()
    """The partitions of this process's share."""

    process: int = 0
    ports: tuple[int, ...] = ()
    """A free port for each process, if they talk to each other."""


@final
@dataclass(frozen=True, slots=True)
class Order:
    """A task, preceded by a small one of the same kind that starts what a tool starts late."""

    work: str
    warm_up: Task
    task: Task


@final
@dataclass(frozen=True, slots=True)
class Orders:
    """The orders for a program, one after another, in ``processes`` processes."""

    processes: int
    orders: tuple[Order, ...]

    def to_json(self) -> str:
        """Return the orders as JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Orders:
        """Parse orders."""
        given = json.loads(text)
        orders = (
            Order(each["work"], _task(each["warm_up"]), _task(each["task"]))
            for each in given["orders"]
        )
        return cls(given["processes"], tuple(orders))


@final
@dataclass(frozen=True, slots=True)
class Answer:
    """The records of a task and its time, and when it began: seconds since 1970."""

    records: int
    seconds: float
    began_at: float

    def to_json(self) -> str:
        """Return the answer as JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Answer:
        """Parse an answer."""
        return cls(**json.loads(text))


Work: TypeAlias = "Callable[[Task], int]"
"""Does a task, and returns how many records it read or acknowledged."""


def main(read: Work, copy: Work) -> None:
    """Do the work of the command line, and add each answer to the file that it names."""
    given = Orders.from_json(sys.argv[1])
    for order in given.orders:
        work = {READ: read, COPY: copy}[order.work]
        several = given.processes > 1
        answer = _together(work, order, given.processes) if several else _alone(work, order)
        with Path(sys.argv[2]).open("a") as answers:
            print(answer.to_json(), file=answers)


def share(task: Task, process: int, processes: int) -> Task:
    """Return the task of one of several processes, which share its partitions."""
    given = {**asdict(task), "partitions": task.partitions[process::processes]}
    return Task(**{**given, "process": process})


def _alone(work: Work, order: Order) -> Answer:
    work(order.warm_up)
    began_at, began = time.time(), time.perf_counter()
    records = work(order.task)
    return Answer(records, time.perf_counter() - began, began_at)


def _together(work: Work, order: Order, processes: int) -> Answer:
    context = get_context("spawn")
    ends, started = [], []
    for number in range(processes):
        here, there = context.Pipe()
        tasks = [share(each, number, processes) for each in (order.warm_up, order.task)]
        started.append(context.Process(target=_do, args=(work, tasks, there), daemon=True))
        started[-1].start()
        there.close()
        ends.append(here)
    for end in ends:
        end.recv()
    began_at, began = time.time(), time.perf_counter()
    for end in ends:
        end.send(None)
    records = sum(end.recv() for end in ends)
    answer = Answer(records, time.perf_counter() - began, began_at)
    for process in started:
        process.join()
    return answer


def _do(work: Work, tasks: list[Task], end: Connection) -> None:
    warm_up, task = tasks
    end.send(work(warm_up))
    end.recv()
    end.send(work(task))


def _task(given: dict[str, object]) -> Task:
    tuples = {name: tuple(value) for name, value in given.items() if isinstance(value, list)}
    return Task(**{**given, **tuples})  # type: ignore[arg-type]  # as `asdict` made it
