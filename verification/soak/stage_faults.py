"""Faults of the tasks that write one micro-batch: they wait, or kill their executors."""

import enum
import json
import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

import pyarrow as pa
from pyspark import TaskContext

from pyspark_kafka.adapters.spark.sink_writers import BATCH_ID
from pyspark_kafka.ports.clock import Deadline
from tests.slowness import bound_s

from .processes import kill, session_of

_AWAITED_S: Final = 25.0
"""How long a task waits for another one, which may never come."""

_KILLED: Final = "KILLED"
_POLL_S: Final = 0.02
_DEATH_S: Final = bound_s(30)

Script: TypeAlias = "Mapping[str, Sequence[str]]"
"""Actions of tasks by step: "1-0 LAST" is of the first task that has all rows of partition 1.

They "sleep" some seconds, "kill" their executor, or "await" a step of another task; one that has
killed its executor comes to a step KILLED.
"""


class Step(enum.Enum):
    """A place in a task of the write stage."""

    FIRST = "before the first row"
    BETWEEN = "between rows, with an open transaction"
    LAST = "after the last row, before the task's result"


@dataclass(frozen=True, slots=True)
class StageFaults:
    """A function for ``mapInArrow`` that returns its rows, and acts at the steps of its task.

    A directory gets a file for each step that a task comes to.
    """

    directory: str
    batch_id: int
    script: Script

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        # A task that does not get all rows, as an executor is lost that has some, is not counted.
        rows = list(batches)
        if context.getLocalProperty(BATCH_ID) != str(self.batch_id):
            yield from rows
            return
        start = self._count(context)
        self._reach(context, start, Step.FIRST)
        # The last of them reach the sink when more come.
        yield from rows[:-1]
        self._reach(context, start, Step.BETWEEN)
        yield from rows[-1:]
        self._reach(context, start, Step.LAST)

    def _count(self, context: TaskContext) -> int:
        start = 0
        while True:
            try:
                (Path(self.directory) / f"{context.partitionId()}-{start}").touch(exist_ok=False)
            except FileExistsError:
                start += 1
            else:
                return start

    def _reach(self, context: TaskContext, start: int, step: Step) -> None:
        task = f"{context.partitionId()}-{start}"
        reached = f"{task} {step.name}"
        self._write(reached, {"attempt": context.attemptNumber(), "task": context.taskAttemptId()})
        for action in self.script.get(reached, ()):
            kind, _, argument = action.partition(" ")
            if kind == "sleep":
                time.sleep(float(argument))
            elif kind == "await":
                awaited = Path(self.directory) / argument
                Deadline.after(_AWAITED_S).poll(awaited.exists, _POLL_S)
            else:
                self._write(f"{task} {_KILLED}", {})
                _kill_executor()

    def _write(self, name: str, attempt: Mapping[str, int]) -> None:
        (Path(self.directory) / name).write_text(json.dumps({"time": time.time(), **attempt}))


def attempts(directory: Path) -> dict[str, dict[str, float]]:
    """Return the steps that tasks came to, in order of time."""
    found = {path.name: json.loads(path.read_text()) for path in directory.glob("* *")}
    return dict(sorted(found.items(), key=lambda item: float(item[1]["time"])))


def count_twins(directory: Path) -> int:
    """Return how many partitions had a task that began beside or after a living one of its stage.

    Spark counts the attempts of a task from 0 again in each attempt of its stage.
    """
    steps = attempts(directory)
    begun: dict[str, list[str]] = {}
    for name, attempt in steps.items():
        if name.endswith(Step.FIRST.name) and not attempt["attempt"]:
            begun.setdefault(name.partition("-")[0], []).append(name)
    twins = 0
    for first, *others in begun.values():
        killed = steps.get(first.replace(Step.FIRST.name, _KILLED), {"time": math.inf})
        twins += any(steps[other]["time"] < killed["time"] for other in others)
    return twins


def _kill_executor() -> None:
    """Kill the JVM that has started the daemon that has forked this worker; do not return."""
    [jvm] = [one.parent for one in session_of(os.getsid(0)) if one.pid == os.getppid()]
    kill(jvm)
    time.sleep(_DEATH_S)
