"""How many processes run the tests, and which tests go to the same one."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final, final

import psutil
from xdist.scheduler import LoadFileScheduling

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

_SOAK: Final = "tests/soak"
_SPARK: Final = ("tests/spark/", "tests/conformance/")
_GIB: Final = 1024**3
_SERVERS: Final = 6 * _GIB
_PROCESS: Final = 3 * _GIB
"""The memory of a process with its Spark and the programs that it starts."""


def cores_of_this_machine() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def processes_of_this_machine() -> int:
    """Return how many processes run many tests here."""
    return processes_for(cores_of_this_machine(), psutil.virtual_memory().total)


def processes_for(cores: int, memory: int) -> int:
    """Return two processes a core, since most wait for a server or Spark, as memory allows."""
    return max(1, min(2 * cores, (memory - _SERVERS) // _PROCESS))


def scope_of(nodeid: str) -> str:
    """Return the scope of a test: tests of one scope run one after another, in one process.

    A scope is a file, or all files of the soak. Each of them loads a cluster of three brokers at a
    fixed rate for as long as its faults take, which is several times as long if they run at once.
    """
    file = nodeid.split("::", 1)[0]
    return _SOAK if file.startswith(f"{_SOAK}/") else file


def begins_with(process: str, scope: str) -> bool:
    """Return whether a process, by xdist's name ``gw0``, takes a scope before those of the others.

    Those with even numbers take tests in Spark.
    """
    number = int(process.removeprefix("gw"))
    return scope.startswith(_SPARK) == (number % 2 == 0)


@final
class OneSoakAtATime(LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
    """Distributes the tests to processes by their scopes.

    Half of the processes begin with the scopes that need Spark, whose JVM takes long to start, and
    the others with the rest.

    A test that ends its process fails, and the others run in another process. With xdist 3.8 it
    would run again, and the run might never end: processes get scopes that are done, and wait
    for another one (pytest-xdist issues 1323, 1327 and 1378, fixed on its main branch).
    """

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)

    def _assign_work_unit(self, node: WorkerController) -> None:
        scopes = iter(self.workqueue)
        chosen = next((each for each in scopes if begins_with(node.gateway.id, each)), None)
        if chosen is not None:
            self.workqueue.move_to_end(chosen, last=False)
        super()._assign_work_unit(node)

    def remove_node(self, node: WorkerController) -> str | None:
        workload: dict[str, dict[str, bool]] = self.assigned_work.pop(node)
        pending = (test for unit in workload.values() for test, done in unit.items() if not done)
        crashed = next(pending, None)
        if crashed is not None:
            workload[scope_of(crashed)][crashed] = True
            self.workqueue.update(
                (scope, unit) for scope, unit in workload.items() if not all(unit.values())
            )
            for other in self.assigned_work:
                self._reschedule(other)
        return crashed

    def _reschedule(self, node: WorkerController) -> None:
        super()._reschedule(node)
        # A process runs a test when it knows the next one, or that there is none.
        while not node.shutting_down and self._pending_of(self.assigned_work[node]) < 2:
            super()._reschedule(node)
