"""What happens to the tasks that write one micro-batch: they wait, or kill their executors."""

from __future__ import annotations

import enum
import json
import math
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

from pyspark import TaskContext

from pyspark_kafka.adapters.spark.sink_writers import BATCH_ID
from pyspark_kafka.ports.deadline import Deadline

from .processes import kill, session_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa

AWAITED_S: Final = 25.0
"""How long a task waits for another one, which may never come."""

_POLL_S: Final = 0.02
_DEATH_S: Final = 30.0

Action: TypeAlias = "Sequence[Any]"
"""``("sleep", seconds)``, ``("await", mark)`` or ``("kill",)``."""

KILL: Final = ("kill",)
KILLED: Final = "KILLED"


class Step(enum.Enum):
    """A place in a task of the write stage."""

    FIRST = "before the first row"
    BETWEEN = "between rows, with an open transaction"
    LAST = "after the last row, before the task's result"


def mark(partition: int, start: int, step: Step | str) -> str:
    """Return the name of a step of the n-th task that has read the rows of a partition."""
    return f"{partition}-{start} {step.name if isinstance(step, Step) else step}"


@final
@dataclass(frozen=True, slots=True)
class StageFaults:
    """A function for ``mapInArrow`` that returns its rows, and acts at the steps of its task.

    A directory gets a file for each step that a task comes to.
    """

    directory: str
    batch_id: int
    actions: Mapping[str, Sequence[Action]]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a task."""
        context = TaskContext.get()
        assert context is not None
        # A task that does not get all rows, as an executor is lost that has some, is not counted.
        rows = list(batches)
        if context.getLocalProperty(BATCH_ID) != str(self.batch_id):
            yield from rows
            return
        start = self._count(context)
        self._reach(context, start, Step.FIRST)
        yield from rows[: len(rows) // 2]
        self._reach(context, start, Step.BETWEEN)
        yield from rows[len(rows) // 2 :]
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
        reached = mark(context.partitionId(), start, step)
        self._write(reached, {"attempt": context.attemptNumber(), "task": context.taskAttemptId()})
        for kind, *arguments in self.actions.get(reached, ()):
            if kind == "sleep":
                time.sleep(arguments[0])
            elif kind == "await":
                awaited = Path(self.directory) / arguments[0]
                Deadline.after(AWAITED_S).poll(awaited.exists, _POLL_S)
            else:
                self._write(mark(context.partitionId(), start, KILLED), {})
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
        killed = steps.get(first.replace(Step.FIRST.name, KILLED), {"time": math.inf})
        twins += any(steps[other]["time"] < killed["time"] for other in others)
    return twins


def _kill_executor() -> None:
    """Kill the JVM that has started the daemon that has forked this worker; do not return."""
    [jvm] = [one.parent for one in session_of(os.getsid(0)) if one.pid == os.getppid()]
    kill(jvm)
    time.sleep(_DEATH_S)
