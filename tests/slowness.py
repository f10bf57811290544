"""How slow this machine is: limits of time that only end a hang grow with it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import Final

from .scheduling import cores_of_this_machine

_VARIABLE: Final = "PYSPARK_KAFKA_TEST_SLOWNESS"
"""The variable that passes the measured slowness to the other processes of a run."""

_WORK: Final = "for _ in range(5_000_000): pass"
_USUAL_S: Final = 0.25
"""How long the work takes where the limits are right, with two processes a core."""

_MAX: Final = 20.0


def bound_s(seconds: float) -> float:
    """Return a limit for what takes less than so many seconds on a usual machine, or hangs."""
    if _VARIABLE not in os.environ:
        os.environ[_VARIABLE] = str(min(_MAX, max(1.0, _work_s() / _USUAL_S)))
    return round(seconds * float(os.environ[_VARIABLE]), 1)


def _work_s() -> float:
    """Return how long the work takes while as many processes run as in a run of all tests."""
    command = [sys.executable, "-I", "-S", "-c", _WORK]
    begun = time.monotonic()
    running = [subprocess.Popen(command) for _ in range(2 * cores_of_this_machine())]
    for process in running:
        process.wait()
    return time.monotonic() - begun
