"""Many schedules, in several processes: a module of its own, since these do not see `__main__`."""

import gc
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import cycle, islice
from multiprocessing import get_context
from multiprocessing.queues import SimpleQueue
from typing import NamedTuple

from .faults import Settings
from .shrinking import shrink
from .simulation import simulate
from .story import story_of

_CHUNK = 200


class Part(NamedTuple):
    stories: list[tuple[str, list[str]]]
    known: Counter[str]
    ids: int


def in_parts(first: int, schedules: int, processes: int, *, is_strict: bool) -> Iterator[Part]:
    end = first + schedules
    chunks = [range(at, min(at + _CHUNK, end)) for at in range(first, end, _CHUNK)]
    run = partial(run_part, is_strict=is_strict)
    context = get_context("spawn")
    cores: SimpleQueue[int] = context.SimpleQueue()
    for core in islice(cycle(os.sched_getaffinity(0)), processes):
        cores.put(core)
    with context.Pool(processes, _stay_on_a_core, (cores,)) as pool:
        yield from pool.imap_unordered(run, chunks)


def _stay_on_a_core(cores: SimpleQueue[int]) -> None:
    """Keep a process on one core: threads that take turns are faster there."""
    os.sched_setaffinity(0, {cores.get()})


def run_part(seeds: Iterable[int], *, is_strict: bool = False) -> Part:
    part = Part([], Counter(), 0)
    gc.collect()
    gc.disable()  # a tenth of the time
    for seed in seeds:
        outcome = simulate(replace(Settings.of(seed), is_strict=is_strict))
        part.known.update(outcome.known)
        part = part._replace(ids=max(part.ids, outcome.ids))
        if outcome.violation is not None:
            part.stories.append((outcome.violation.kind, story_of(shrink(outcome))))
    gc.enable()
    return part
