"""Tasks: copies of a reader read what was planned, again if they fail."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ..engine.scheduler import Killed
from .faults import Fault

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import InputPartition

    from .use_cases import SimulatedUseCases
    from .world import World

_MAX_FAILURES: Final = 4


class Row(NamedTuple):
    topic: str
    partition: int
    offset: int
    value: bytes


class TaskDiedError(Exception):
    """The Python process of a task died."""


def first_line(error: BaseException) -> str:
    """Return the first line of an error that differs from others of its class."""
    text = str(error)
    return text.partition("Reason: ")[2].split("\n")[0] or text.split("\n", maxsplit=1)[0]


def run_tasks(
    world: World, use_cases: SimulatedUseCases, reader: Any, partitions: Sequence[InputPartition]
) -> list[Row]:
    """Return the rows of a job; raise the error of a task that fails too often."""
    pickled = pickle.dumps(reader)
    rows: list[Row] = []
    for number, partition in enumerate(partitions):
        task = pickle.dumps(partition)
        twin = _decided(world, use_cases, Fault.SPECULATION)
        for attempt in (0, 1) if twin else (0,):
            found = _run_task(world, use_cases, pickled, task, f"{number}")
            rows += found if attempt == 0 else []
    return rows


def _run_task(
    world: World, use_cases: SimulatedUseCases, reader: bytes, partition: bytes, name: str
) -> list[Row]:
    for attempt in range(_MAX_FAILURES):
        try:
            rows: list[Row] = []
            batches = pickle.loads(reader).read(pickle.loads(partition))  # noqa: S301
            for batch in batches:
                rows += rows_of(batch)
                _live_or_die(world, use_cases)
        except Killed:
            raise
        except Exception as error:
            world.tell("task", f"{name}, attempt {attempt}", type(error).__name__)
            if attempt == _MAX_FAILURES - 1:
                raise
        else:
            return rows
    raise AssertionError


def _live_or_die(world: World, use_cases: SimulatedUseCases) -> None:
    if _decided(world, use_cases, Fault.TASK_DIES):
        raise TaskDiedError


def rows_of(batch: pa.RecordBatch) -> Iterator[Row]:
    columns = (batch.column(name).to_pylist() for name in Row._fields)
    return map(Row._make, zip(*columns, strict=True))


def _decided(world: World, use_cases: SimulatedUseCases, kind: Fault) -> bool:
    current = world.scheduler.current
    assert current is not None
    fired = world.decisions.has(f"{current.name} task", kind, 0.1)
    if fired is not None:
        use_cases.calls.injected += 1
        world.tell("task", "", kind.value)
    return fired is not None
