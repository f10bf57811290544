"""Some seconds of each simulator; the programs under ``verification`` search for hours."""

import os
import re
import socket
import subprocess
import sys
import time
from threading import Event, Thread
from typing import Final

import pytest

from verification.simulator.__main__ import SIMULATORS
from verification.simulator.engine.search import in_parts, run_part, simulator_of
from verification.simulator.engine.story import MAX_LINES

_SEEDS: Final = {"sink": 600, "source": 600, "reading": 300, "delivery": 600}

_PLANTED: Final = [(each, name) for each in SIMULATORS for name in simulator_of(each).found_by]


@pytest.mark.parametrize(
    ("name", "first"), [(each, at) for each in SIMULATORS for at in range(0, _SEEDS[each], 100)]
)
def test_schedules_keep_every_promise(name, first):
    assert run_part(name, range(first, first + 100)).stories == []


@pytest.mark.parametrize("name", SIMULATORS)
def test_other_threads_keep_their_clock_and_their_network(name):
    """A process of tests has threads of py4j's, which sleep now and then."""
    is_over, failures = Event(), list[BaseException]()

    def use() -> None:
        while not is_over.is_set():
            try:
                time.sleep(0.001)
                socket.socket().close()
            except BaseException as error:  # noqa: BLE001  # also what only a schedule raises
                failures.append(error)
                return

    other = Thread(target=use)
    other.start()
    run_part(name, range(20))
    is_over.set()
    other.join()
    assert failures == []


def test_several_processes_share_the_schedules():
    parts = list(in_parts("sink", 1, 4, 2, is_strict=False))
    assert [part.stories for part in parts] == [[]]
    assert parts[0].sizes["ids"] > 0


@pytest.mark.parametrize("name", SIMULATORS)
def test_a_seed_decides_everything_in_every_process(name):
    """The order of a set of strings, for one, differs between processes."""
    program = f"""
from verification.simulator.{name} import SIMULATOR
print(*(SIMULATOR.run(seed).told for seed in range(20)), sep="\\n")
"""
    found = [_told(program, seed) for seed in (1, 2)]
    assert found[0] == found[1]
    assert len({*found[0].splitlines()}) > 10


def _told(program: str, hash_seed: int) -> str:
    variables = {"PYTHONHASHSEED": str(hash_seed), "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **variables},
        capture_output=True,
        check=True,
        text=True,
    ).stdout


@pytest.mark.parametrize(("name", "fault"), _PLANTED)
def test_planted_faults_are_found(name, fault):
    simulator = simulator_of(name)
    seed, is_strict = simulator.found_by[fault], fault in simulator.strict
    with simulator.plant(fault):
        violation = simulator.run(seed, is_strict=is_strict).violation
    assert violation is not None
    # A planted function whose arguments are those of before would be found, too.
    assert not re.search("(Type|Attribute|Name)Error", str(violation))
    assert simulator.run(seed, is_strict=is_strict).violation is None


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("sink", "W2: no transaction is checked before PREPARED"),
        ("source", "new partitions start at their end"),
        ("reading", "aborted transactions are ignored"),
    ],
)
def test_a_failing_schedule_is_shrunk_and_told(name, fault):
    simulator = simulator_of(name)
    found = simulator.first_found(fault, [simulator.found_by[fault]])
    assert found is not None
    assert found.violation is not None
    story = simulator.story_of(found)
    assert len(story) <= MAX_LINES
    assert story[-1].startswith(f"    => {found.violation.kind}")
