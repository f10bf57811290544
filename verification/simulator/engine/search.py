"""Many schedules, in several processes."""

import gc
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from importlib import import_module
from itertools import cycle, islice
from multiprocessing import get_context
from multiprocessing.queues import SimpleQueue
from typing import NamedTuple

from .simulator import Simulator

_CHUNK = 200


class Part(NamedTuple):
    """The outcome of some schedules: kinds of violations with their stories."""

    stories: list[tuple[str, list[str]]]
    known: Counter[str]
    sizes: Counter[str]
    """The largest of each."""


def simulator_of(name: str) -> Simulator:
    """Return the simulator that a package beside this one has."""
    found: Simulator = import_module(f"...{name}", __name__).SIMULATOR
    return found


def in_parts(
    name: str, first: int, schedules: int, processes: int, *, is_strict: bool
) -> Iterator[Part]:
    end = first + schedules
    chunks = [range(at, min(at + _CHUNK, end)) for at in range(first, end, _CHUNK)]
    run = partial(run_part, name, is_strict=is_strict)
    context = get_context("spawn")
    cores: SimpleQueue[int] = context.SimpleQueue()
    for core in islice(cycle(os.sched_getaffinity(0)), processes):
        cores.put(core)
    with context.Pool(processes, _stay_on_a_core, (cores,)) as pool:
        yield from pool.imap_unordered(run, chunks)


def _stay_on_a_core(cores: SimpleQueue[int]) -> None:
    os.sched_setaffinity(0, {cores.get()})


def run_part(name: str, seeds: Iterable[int], *, is_strict: bool = False) -> Part:
    simulator = simulator_of(name)
    part = Part([], Counter(), Counter())
    gc.collect()
    gc.disable()  # a tenth of the time
    for seed in seeds:
        outcome = simulator.run(seed, is_strict=is_strict)
        part.known.update(outcome.known)
        part = part._replace(sizes=part.sizes | Counter(outcome.sizes))
        if outcome.violation is not None:
            story = simulator.story_of(simulator.shrink(outcome))
            part.stories.append((outcome.violation.kind, story))
    gc.enable()
    return part
