"""Processes that run one at a time, in virtual time."""

import heapq
import threading
from collections.abc import Callable
from typing import Final, TypeAlias

EPOCH_MS: Final = 1_700_000_000_000

_MAX_EVENTS: Final = 20_000
"""A schedule with more of them does not end."""

Action: TypeAlias = Callable[[], None]


class Killed(BaseException):  # it is no error
    """Raised in a process that was killed, at each of its further calls."""


class Process:
    """Something that acts: a task attempt, a call on the driver, the driver, or people."""

    def __init__(self, name: str, body: Action) -> None:
        self.name = name
        self.body = body
        self.worker: _Worker | None = None
        self.is_killed = False
        self.is_done = False
        self.token = 0
        """The number of its sleeps: an event of an earlier one does not wake it."""


class Scheduler:
    """Runs the earliest event; events of one moment run in the order in which they were made.

    A process has a thread, since the code under test does not know of coroutines. Exactly one
    thread runs at any moment: the others wait for their baton.
    """

    def __init__(self) -> None:
        self.now_ms = EPOCH_MS
        self.current: Process | None = None
        self._events: list[tuple[int, int, Process | None, int, Action | None]] = []
        self._count = 0
        self._processes: list[Process] = []
        self._hub = threading.Lock()
        self._hub.acquire()
        self._crash: BaseException | None = None

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
        if self._events and self._events[0][0] <= self.now_ms + ms:
            me.token += 1
            self._push(ms, me, None)
            self._switch(me)
        else:
            self.now_ms += ms

    def park(self) -> None:
        """Let the current process wait until another one wakes it."""
        me = self._alive()
        me.token += 1
        self._switch(me)

    def wake(self, process: Process) -> None:
        process.token += 1
        self._push(0, process, None)

    def kill(self, process: Process, delay_ms: int = 0) -> None:
        """Kill a process, which then has no effect any more."""
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

    def run(self) -> None:
        self._resume_next()
        self._hub.acquire()
        if self._crash is not None:
            raise self._crash

    def close(self) -> None:
        """Kill all processes, so that their threads can be used again."""
        for _ in range(3):
            self._crash, self._count = None, 0
            self._events.clear()
            for process in self._processes:
                if not process.is_done:
                    process.is_killed = True
                    self.wake(process)
            self._resume_next()
            self._hub.acquire()

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

    def _next(self) -> Process | None:
        """Let events happen up to the next one that wakes a process."""
        self.current = None
        while self._events and self._crash is None:
            self.now_ms, _, process, token, action = heapq.heappop(self._events)
            if self._count > _MAX_EVENTS:
                self._crash = RuntimeError("the schedule does not end")
            elif action is not None:
                try:
                    action()
                except BaseException as error:  # noqa: BLE001  # raised by `run`
                    self._crash = error
            elif process is not None and process.token == token and not process.is_done:
                self.current = process
                return process
        return None

    def _switch(self, me: Process) -> None:
        process = self._next()
        if process is not me:
            self._resume(process)
            assert me.worker is not None
            me.worker.baton.acquire()
        if me.is_killed:
            raise Killed

    def _resume_next(self) -> None:
        self._resume(self._next())

    def _resume(self, process: Process | None) -> None:
        if process is None:
            self._hub.release()
            return
        if process.worker is None:
            process.worker = _IDLE.pop() if _IDLE else _Worker()
            process.worker.job = (self, process)
        process.worker.baton.release()

    def execute(self, process: Process) -> Process | None:
        """Run a process to its end; return the next one if it needs a thread."""
        try:
            if not process.is_killed:
                process.body()
        except Killed:
            pass
        except BaseException as error:  # noqa: BLE001  # raised by `run`
            self._crash = error
        process.is_done = True
        following = self._next()
        if following is not None and following.worker is None:
            return following
        worker = process.worker
        assert worker is not None
        _IDLE.append(worker)
        self._resume(following)
        return None


class _Worker(threading.Thread):
    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.baton = threading.Lock()
        self.baton.acquire()
        self.job: tuple[Scheduler, Process] | None = None
        self.start()

    def run(self) -> None:
        while True:
            self.baton.acquire()
            assert self.job is not None
            scheduler, process = self.job
            following: Process | None = process
            while following is not None:
                following.worker = self
                following = scheduler.execute(following)


_IDLE: Final[list[_Worker]] = []
