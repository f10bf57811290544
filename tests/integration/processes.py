"""Threads and children of a process in Linux."""

import os
import signal
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest


def threads() -> int:
    """Return how many threads this process has, those of libraries included."""
    if sys.platform != "linux":
        pytest.skip("asks Linux about threads")
    return len(list(Path("/proc/self/task").iterdir()))


def succeeds_in_child(do: Callable[[], bool]) -> bool:
    """Return what a function does in a forked child, in which nothing of pytest's runs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # there are threads, and we know it
        child = os.fork()
    if child == 0:
        signal.alarm(60)
        try:
            os._exit(0 if do() else 1)
        finally:
            os._exit(2)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) == 0
