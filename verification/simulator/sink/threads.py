"""Stand-ins for the modules ``threading`` and ``time``: processes, in virtual time."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..engine.scheduler import Process, Scheduler
    from .world import World


class VirtualTime:
    """The module ``time``, as far as queries use it."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def monotonic(self) -> float:
        return self._scheduler.now_ms / 1_000

    def time_ns(self) -> int:
        return self._scheduler.now_ms * 1_000_000

    def sleep(self, seconds: float) -> None:
        self._scheduler.sleep(max(1, int(1_000 * seconds)))


class VirtualEvent:
    """An event for which processes wait."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._is_set = False
        self._waiting: list[Process] = []

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True
        waiting, self._waiting = self._waiting, []
        for process in waiting:
            self._scheduler.wake(process)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the event is set, or for some time; it may be shorter."""
        me = self._scheduler.current
        assert me is not None
        if not self._is_set and me not in self._waiting:
            self._waiting.append(me)
        if timeout is None:
            while not self._is_set:
                self._scheduler.park()
        elif not self._is_set:
            self._scheduler.sleep(max(1, int(1_000 * timeout)))
        return self._is_set


class VirtualThread:
    """A process of the application that starts it."""

    def __init__(self, world: World, target: Callable[[], None]) -> None:
        self._world = world
        self._target = target
        self._process: Process | None = None

    def start(self) -> None:
        current = self._world.scheduler.current
        assert current is not None
        application = self._world.applications[current.name.split(" ")[1]]
        self._process = application.spawn(application.name, self._target)


class VirtualThreading:
    """The module ``threading``, as far as queries use it."""

    Lock = threading.Lock

    def __init__(self, world: World) -> None:
        self._world = world

    def Event(self) -> VirtualEvent:  # noqa: N802  # the module's name
        return VirtualEvent(self._world.scheduler)

    def Thread(  # noqa: N802
        self,
        *,
        target: Callable[[], None],
        name: str,  # noqa: ARG002
        daemon: bool,  # noqa: ARG002
    ) -> VirtualThread:
        return VirtualThread(self._world, target)

    def current_thread(self) -> Process | None:
        return self._world.scheduler.current
