"""One run of a query, of either mode."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from .faults import Fault
from .kafka import DAY_MS
from .ports import SimulatedUseCases

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from pyspark_kafka.domain.topic_partition import TopicPartition

    from ..engine.decisions import Fired
    from ..engine.scheduler import Process
    from .checkpoint import Checkpoint
    from .world import World

_DRIVER: Final = ("driver", "user")
_MINUTE_MS: Final = 60_000
_MAX_LAG_MS: Final = 120_000
_SUSPENSIONS_MS: Final = (5 * _MINUTE_MS, 60 * _MINUTE_MS, DAY_MS, 8 * DAY_MS)


class Application:
    """A driver, its Python processes, and executors for its tasks."""

    is_continuous = False

    def __init__(self, world: World, number: int, checkpoint: Checkpoint) -> None:
        self.checkpoint = checkpoint
        self.error: BaseException | None = None
        self.is_dead = False
        self.is_over = False
        self.skew_ms = 0
        self.suspended_until_ms = 0
        self.number = number
        self.name = f"driver {number}"
        self._world = world
        self._use_cases: Any = SimulatedUseCases(world, self)
        self._processes: list[Process] = []
        if skew := world.decisions.has(self.name, Fault.SKEW, 1):
            self.skew_ms = skew.between(-600_000, 600_000)
        self._lag_ms = 0
        if lag := world.decisions.has(self.name, Fault.OLD_METADATA, 0.7):
            self._lag_ms = lag.between(1, _MAX_LAG_MS)
        self._died_ms = self._suspended_ms = 0
        world.applications[str(number)] = self
        world.places[str(number)] = checkpoint.place

    @property
    def is_at_work(self) -> bool:
        return any(not each.is_done for each in self._processes)

    @property
    def is_suspended(self) -> bool:
        return self._world.scheduler.now_ms < self.suspended_until_ms

    @property
    def silent_since_ms(self) -> int:
        """When the driver was last heard: now, unless it is dead or suspended."""
        now_ms = self._world.scheduler.now_ms
        if self.is_dead:
            return self._died_ms
        return self._suspended_ms if self.is_suspended else now_ms

    def input(self, logged: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Return where the partitions of the input end that are logged, or that it knows."""
        world, until_ms = self._world, self._world.scheduler.now_ms - self._lag_ms
        return {
            partition: end
            for partition, end in world.input.items()
            if partition in logged or world.added_ms.get(partition, 0) <= until_ms
        }

    def tasks(self) -> list[Process]:
        return [each for each in self._processes if each.name.startswith("task")]

    def spawn(self, name: str, body: Callable[[], None]) -> Process:
        process = self._world.scheduler.spawn(name, body)
        self._processes.append(process)
        return process

    def suspend(self, fired: Fired) -> None:
        """Let the driver stand still, and its tasks perhaps, as a virtual machine does."""
        scheduler = self._world.scheduler
        current = scheduler.current
        assert current is not None
        longest = _SUSPENSIONS_MS[fired.between(0, len(_SUSPENSIONS_MS) - 1)]
        ms = fired.between(longest // 10, longest)
        is_whole = current.name.startswith("task") or fired.between(0, 1) == 1
        for process in self._processes:
            if not process.is_done and (is_whole or not process.name.startswith("task")):
                scheduler.suspend(process, ms)
        if not self.is_suspended:
            self._suspended_ms = scheduler.now_ms
        self.suspended_until_ms = max(self.suspended_until_ms, scheduler.now_ms + ms)
        self._world.tell(self.name, f"is suspended for {ms // 1000} s", "", None)
        self._world.notify()

    def die(self) -> None:
        """Kill the driver; its executors and its Python process may not notice for a while."""
        if self.is_over:
            return
        self._world.tell(self.name, "dies", "", None)
        self.is_dead = self.is_over = True
        self._died_ms = self._world.scheduler.now_ms
        for process in self._processes:
            if process.name.startswith(_DRIVER):
                self._world.scheduler.kill(process)
        self._leave_processes()
        self._world.notify()

    def _end(self) -> None:
        self.is_over = True
        self._leave_processes()
        self._world.notify()

    def _leave_processes(self) -> None:
        decisions = self._world.decisions
        for process in self._processes:
            if process.is_done or process.name.startswith(_DRIVER):
                continue
            goes_on = decisions.has(process.name, Fault.ORPHANS, 0.7)
            self._world.scheduler.kill(process, goes_on.between(1, 120_000) if goes_on else 0)
