"""The processes of a session of the system's, as psutil shows them."""

import os
import signal
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import psutil

from tests.slowness import bound_s

_DAEMONS: Final = ("pyspark_kafka.bootstrap.worker_daemon", "pyspark.daemon")
_POLL_S: Final = 0.01
_GONE_S: Final = bound_s(30)


@dataclass(frozen=True, slots=True)
class Process:
    pid: int
    parent: int
    command: str

    @property
    def is_java(self) -> bool:
        """Whether it is Spark's JVM, which has to go before it can hear of the others' end."""
        return "org.apache.spark" in self.command

    @property
    def is_for_tasks(self) -> bool:
        """Whether it runs tasks, and does not plan or commit for the driver."""
        return self.command.endswith(" pyspark.worker")

    @property
    def is_daemon(self) -> bool:
        """Whether it is a daemon of Spark's Python workers, or a worker, which has its name."""
        return any(name in self.command for name in _DAEMONS)

    @property
    def is_executor(self) -> bool:
        return "CoarseGrainedExecutorBackend" in self.command


def session_of(session: int) -> list[Process]:
    """Return the processes of a session, without zombies.

    A driver that was started in a session of its own has all in it that it starts: the JVM, and
    the daemons of Python workers too, which have process groups of their own.
    """
    found = []
    for process in psutil.process_iter(["ppid", "cmdline", "status"]):
        # It may end while it is looked at.
        with suppress(ProcessLookupError):
            is_there = process.info["status"] not in {psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD}
            if is_there and os.getsid(process.pid) == session:
                command = " ".join(process.info["cmdline"] or ()).strip()
                found.append(Process(process.pid, process.info["ppid"], command))
    return found


def workers_of(session: int) -> list[Process]:
    """Return Spark's Python workers, which its daemon has forked."""
    daemons = {process.pid: process for process in session_of(session) if process.is_daemon}
    return [process for process in daemons.values() if process.parent in daemons]


def kill_session(session: int) -> None:
    """End all of a session at once, the caller last if it is one of them."""
    deadline = time.monotonic() + _GONE_S
    while others := [one for one in session_of(session) if one.pid != os.getpid()]:
        for process in sorted(others, key=lambda one: not one.is_java):
            kill(process.pid)
        if time.monotonic() > deadline:
            raise TimeoutError(f"processes do not end: {others}")
        time.sleep(_POLL_S)
    if os.getsid(0) == session:
        kill(os.getpid())


def end_with_parent() -> None:
    """Wait for the end of what standard input comes from, and end with all that was started."""
    # Python's own object for it is locked while it is read, and an end would wait for that lock.
    os.read(sys.stdin.fileno(), 1)
    kill_session(os.getsid(0))


def kill(pid: int) -> None:
    send_signal(pid, signal.SIGKILL)


def send_signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)
