"""Processes that run one at a time, in virtual time."""

import heapq
from collections.abc import Callable
from contextlib import suppress
from threading import local
from typing import Final, TypeAlias

from greenlet import greenlet

EPOCH_MS: Final = 1_700_000_000_000

_MAX_EVENTS: Final = 20_000
"""A schedule with more of them does not end."""

_MAX_FAREWELLS: Final = 100
"""How many calls a killed process may catch, each time raising ``Killed`` again."""

Action: TypeAlias = Callable[[], None]


class Killed(BaseException):  # it is no error
    """Raised in a process that was killed, at each of its further calls."""


class Process:
    """Something that acts: a task attempt, a call on the driver, the driver, or people."""

    def __init__(self, name: str, body: Action) -> None:
        self.name = name
        self.is_killed = False
        self.token = 0
        """The number of its sleeps: an event of an earlier one does not wake it."""

        self.suspended_until_ms = 0
        self.is_done = False
        self._body = body
        self._stack: greenlet | None = None

    def resume(self, hub: greenlet) -> None:
        """Let the process run until it waits, or to its end."""
        if self._stack is None:
            self._stack = _idle.stacks.pop() if _idle.stacks else greenlet(_run_processes)
        self._stack.parent = hub
        self._stack.switch(self)

    def run(self) -> None:
        try:
            if not self.is_killed:
                self._body()
        except Killed:
            pass
        finally:
            self.is_done = True


class _Idle(local):
    """The stacks that no process uses: a new one takes as long as a process runs."""

    def __init__(self) -> None:
        self.stacks: list[greenlet] = []


_idle: Final = _Idle()


def _run_processes(process: Process) -> None:
    """Run processes one after another; an error ends the stack, and is raised in the hub."""
    stack = greenlet.getcurrent()
    while True:
        process.run()
        _idle.stacks.append(stack)
        assert stack.parent is not None
        process = stack.parent.switch()


class Scheduler:
    """Runs the earliest event; events of one moment run in the order in which they were made.

    Each process has its own stack, since the code under test knows nothing of coroutines.
    """

    def __init__(self) -> None:
        self.now_ms = EPOCH_MS
        self.current: Process | None = None
        self._events: list[tuple[int, int, Process | None, int, Action | None]] = []
        self._count = 0
        self._processes: list[Process] = []
        self._hub = greenlet.getcurrent()

    def spawn(self, name: str, body: Action, delay_ms: int = 0) -> Process:
        process = Process(name, body)
        self._processes.append(process)
        self._push(delay_ms, process, None)
        return process

    def at(self, delay_ms: int, action: Action) -> None:
        """Let something happen later that no process does."""
        self._push(delay_ms, None, action)

    def sleep(self, ms: int) -> None:
        me = self._alive()
        ms = max(ms, me.suspended_until_ms - self.now_ms)
        if self._events and self._events[0][0] <= self.now_ms + ms:
            me.token += 1
            self._push(ms, me, None)
            self._wait(me)
        else:
            self.now_ms += ms

    def park(self) -> None:
        """Let the current process wait until another one wakes it."""
        me = self._alive()
        me.token += 1
        self._wait(me)

    def wake(self, process: Process) -> None:
        process.token += 1
        self._push(0, process, None)

    def suspend(self, process: Process, ms: int) -> None:
        """Let a process stand still, from when it waits next."""
        process.suspended_until_ms = max(process.suspended_until_ms, self.now_ms + ms)

    def kill(self, process: Process, delay_ms: int = 0) -> None:
        """Kill a process, which then has no further effect."""
        if delay_ms:
            self.at(delay_ms, lambda: self.kill(process))
        elif not process.is_done and not process.is_killed:
            process.is_killed = True
            if process is not self.current:
                self.wake(process)

    @property
    def is_killed(self) -> bool:
        """Whether the current process was killed, and ends at its next call."""
        return self.current is not None and self.current.is_killed

    def kill_current(self) -> None:
        if self.current is not None:
            self.kill(self.current)

    def run(self, is_over: Callable[[], bool] = lambda: False) -> None:
        """Run all events, or until it is over; errors of processes and actions are raised."""
        self._hub = greenlet.getcurrent()
        while self._events and not is_over():
            self.now_ms, _, process, token, action = heapq.heappop(self._events)
            if self._count > _MAX_EVENTS:
                raise RuntimeError("the schedule does not end")
            if action is not None:
                action()
            elif process is not None and process.token == token and not process.is_done:
                if process.suspended_until_ms > self.now_ms and not process.is_killed:
                    self._push(process.suspended_until_ms - self.now_ms, process, None)
                else:
                    self._resume(process)

    def close(self) -> None:
        """Kill all processes, so that nothing of them stays."""
        self._hub = greenlet.getcurrent()
        self._count = 0
        for process in self._processes:
            process.is_killed = True
            farewells = 0
            while not process.is_done and farewells < _MAX_FAREWELLS:
                farewells += 1
                with suppress(Exception):  # of a process that has no further effect
                    self._resume(process)
        self._events.clear()

    def _resume(self, process: Process) -> None:
        self.current = process
        try:
            process.resume(self._hub)
        finally:
            self.current = None

    def _alive(self) -> Process:
        me = self.current
        if me is None:
            raise RuntimeError("an event cannot wait")
        if me.is_killed:
            raise Killed
        return me

    def _push(self, delay_ms: int, process: Process | None, action: Action | None) -> None:
        self._count += 1
        token = process.token if process else 0
        event = (self.now_ms + delay_ms, self._count, process, token, action)
        heapq.heappush(self._events, event)

    def _wait(self, me: Process) -> None:
        self._hub.switch()
        if me.is_killed:
            raise Killed
