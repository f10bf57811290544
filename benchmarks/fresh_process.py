"""Functions in new processes, so that nothing else affects the measurement."""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
R = TypeVar("R")


def on_one_core(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Run a module's function in a new process on one core, and return its result."""
    last = max(os.sched_getaffinity(0))
    return _run({last}, function, *args, **kwargs)


def on_all_cores(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Run a module's function in a new process, and return its result."""
    return _run(os.sched_getaffinity(0), function, *args, **kwargs)


def _run(cores: set[int], function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    # Spawned, since clients do not survive a fork and a fork would have its parent's memory. The
    # affinity is set before the process imports anything, so that every thread inherits it.
    with ProcessPoolExecutor(
        max_workers=1,
        mp_context=get_context("spawn"),
        initializer=os.sched_setaffinity,
        initargs=(0, cores),
    ) as pool:
        return pool.submit(function, *args, **kwargs).result()
