import os
import subprocess
import sys
from itertools import chain
from typing import Final

import pytest

from verification.simulator.engine.search import in_parts, run_part
from verification.simulator.engine.story import MAX_LINES
from verification.simulator.sink import SIMULATOR

_MAX_TRIED: Final = 20_000

_FOUND_BY: Final = {
    "all runs have the same ids": 3737,
    "W1: abort does not look at the log": 208,
    "W5: attempt numbers in ids, without slots": 35,
    "W7: no digest of offsets": 688,
    "PREPARED is not logged": 24,
    "a batch that another driver has decided is cleaned up": 269,
    "older backups are not noticed": 99,
    "W2: no transaction is checked before PREPARED": 52,
    "W6: no query id in the log": 2102,
    "COMMITTED before the last EndTxn": 1,
    "abort does not take the entry's number": 4780,
    "every id is free": 40,
    "REPLACED is taken for lost": 485,
    "a fence is called a time-out": 3,
    "a copy has the original's ids": 1,
    "a time-out is taken for a commit": 4,
    "the time left is ignored": 791,
    "abandoned transactions stay open": 12,
}
"""Seeds that find planted faults; `python -m verification.simulator sink --planted` finds more."""


@pytest.mark.parametrize("first", range(0, 1200, 200))
def test_schedules_keep_every_promise(first):
    assert run_part("sink", range(first, first + 200)).stories == []


def test_several_processes_share_the_schedules():
    parts = list(in_parts("sink", 1, 4, 2, is_strict=False))
    assert [part.stories for part in parts] == [[]]
    assert parts[0].sizes["ids"] > 0


def _told(seed: int) -> str:
    return repr(SIMULATOR.run(seed).told)


def test_a_seed_decides_everything():
    told = [_told(seed) for seed in (3, 7, 3, 7)]
    assert told[:2] == told[2:]
    assert told[0] != told[1]


def test_a_seed_decides_everything_in_every_process():
    """The order of a set of strings, for one, differs between processes."""
    seeds = range(40)
    program = f"""
from hashlib import sha256
from verification.simulator.sink import SIMULATOR
print(*(sha256(repr(SIMULATOR.run(seed).told).encode()).hexdigest() for seed in {seeds}))
"""
    found = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={
                **os.environ,
                "PYTHONHASHSEED": str(number),
                "PYTHONPATH": os.pathsep.join(sys.path),
            },
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for number in (1, 2)
    }
    assert len(found) == 1


@pytest.mark.parametrize("name", SIMULATOR.planted)
def test_planted_faults_are_found(name):
    known = [_FOUND_BY[name]] if name in _FOUND_BY else []
    assert SIMULATOR.first_found(name, chain(known, range(_MAX_TRIED))) is not None


def test_a_failing_schedule_is_shrunk_and_told():
    name = "W2: no transaction is checked before PREPARED"
    found = SIMULATOR.first_found(name, range(_MAX_TRIED))
    assert found is not None
    assert found.violation is not None
    story = SIMULATOR.story_of(found)
    assert len(story) <= MAX_LINES
    assert story[-1].startswith(f"    => {found.violation.kind}")
