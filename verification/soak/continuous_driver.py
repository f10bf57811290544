"""A driver of continuous queries: one process, from its start to its end."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .driver import QueryPlan
from .driver_process import DriverProcess
from .epoch_points import EpochPoints
from .processes import Process, session_of
from .tracked_function import Pace, tracked_tasks

PROGRAM: Final = Path(__file__).parent / "programs" / "run_continuous.py"

THREADS: Final = "threads"
"""Tasks are threads of the driver: for faults that need no Spark, it starts faster."""

LOCAL: Final = "local[12,4]"
"""More slots than tasks: one that is stopped keeps its slot."""

CLUSTER: Final = "local-cluster[2,8,1024]"
"""Executors of their own; one of them has room for all tasks."""

TASK_TIMEOUT_S: Final = 20.0
"""After that a task that is stopped is replaced; one that starts on a loaded machine is not."""

TASKS: Final = 2
"""Of a query, which read several partitions each."""

KEEP_STOPPED_WORKERS: Final = (("spark.python.task.killTimeout", "600s"),)
"""Otherwise Spark kills a worker that does not end when its task is cancelled."""

_SPARK: Final = {
    # An executor that is stopped is lost.
    "spark.executor.heartbeatInterval": "1s",
    "spark.network.timeout": "20s",
    "spark.network.timeoutInterval": "4s",
    "spark.executor.memory": "512m",
}


@dataclass(frozen=True, slots=True)
class DriverSetup:
    """How a driver runs its queries. ``tasks_in`` is a master of Spark, or ``THREADS``."""

    tasks_in: str = LOCAL
    channel: str | None = None
    fails_on_data_loss: bool = False
    settings: tuple[tuple[str, str], ...] = ()
    source: tuple[tuple[str, str], ...] = ()
    """Options of the source, added to those of the cluster."""


class ContinuousDriver(DriverProcess):
    """Runs continuous queries, whose checkpoints it shares with drivers before and after it."""

    def __init__(self, directory: Path) -> None:
        """Take a directory that is empty or missing, for all but checkpoints."""
        self._directory = directory
        self._tasks = directory / "tasks"
        self._tasks.mkdir(parents=True)
        self.pace = Pace(directory / "pace")
        self.points = EpochPoints(directory / "points")
        super().__init__(PROGRAM, directory)

    def start(
        self,
        queries: Sequence[QueryPlan],
        setup: DriverSetup,
        source: str,
        options_of: Callable[[QueryPlan], Mapping[str, str]],
        checkpoints: Path,
    ) -> None:
        """Start the queries, each after the last epoch of its checkpoint."""
        config = {
            "tasks_in": setup.tasks_in,
            "settings": {**_SPARK, **dict(setup.settings)},
            "channel": setup.channel,
            "queries": [
                query_options(query, setup, source, options_of(query), checkpoints)
                for query in queries
            ],
        }
        self.launch(config)

    def request_stop(self) -> None:
        (self._directory / "stop").touch()

    def errors(self) -> dict[str, str]:
        """Return the errors of queries that have ended by themselves, by their names."""
        path = self._directory / "errors.json"
        return json.loads(path.read_text()) if path.exists() else {}

    def tasks(self) -> dict[int, str]:
        return tracked_tasks(self._tasks, session_of(self.pid))

    def executors(self) -> list[Process]:
        return [process for process in session_of(self.pid) if process.is_executor]


def query_options(
    query: QueryPlan, setup: DriverSetup, source: str, cluster: Mapping[str, str], checkpoints: Path
) -> dict[str, object]:
    return {
        "name": query.name,
        "tasks": TASKS,
        "task_timeout_s": TASK_TIMEOUT_S,
        "checkpoint": str(checkpoints / query.name),
        "source": query.source(cluster, source)
        | {"failOnDataLoss": str(setup.fails_on_data_loss).lower()}
        | dict(setup.source),
        "sink": query.sink(cluster, query.name),
    }
