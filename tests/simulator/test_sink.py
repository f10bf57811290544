import os
import subprocess
import sys
from typing import Final

import pytest

from verification.simulator.engine.search import in_parts, run_part
from verification.simulator.engine.story import MAX_LINES
from verification.simulator.sink import SIMULATOR

_FOUND_BY: Final = {
    "all runs have the same ids": 6172,
    "W1: abort does not look at the log": 1934,
    "W5: attempt numbers in ids, without slots": 189,
    "W7: no digest of offsets": 1355,
    "PREPARED is not logged": 66,
    "a batch that another driver has decided is cleaned up": 311,
    "older backups are not noticed": 348,
    "W2: no transaction is checked before PREPARED": 8,
    "W6: no query id in the log": 12809,
    "COMMITTED before the last EndTxn": 66,
    "every id is free": 27,
    "REPLACED is taken for lost": 1475,
    "a fence is called a time-out": 386,
    "a copy has the original's ids": 89,
    "a time-out is taken for a commit": 8,
    "the time left is ignored": 2690,
    "abandoned transactions stay open": 22,
    "stop leaves tasks that stand still": 253,
    "a continuous query only looks at the sink's log": 11,
    "a batch is handed over without an entry": 11,
    "micro-batches do not take the group over": 91,
    "a batch is written whatever the group has": 19,
    "tasks are fenced before the group is looked at": 20,
    "a late driver takes over from later epochs": 355,
    "tasks do not look for seals": 144,
    "a continuous query does not look for newer ones": 2606,
    "rewritten offsets are taken for a restored checkpoint": 612,
}
"""Seeds that find planted faults; `python -m verification.simulator sink --planted` finds more."""


@pytest.mark.parametrize("first", range(0, 600, 200))
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


@pytest.mark.parametrize("name", _FOUND_BY)
def test_planted_faults_are_found(name):
    seed, is_strict = _FOUND_BY[name], name in SIMULATOR.strict
    with SIMULATOR.plant(name):
        assert SIMULATOR.run(seed, is_strict=is_strict).violation is not None
    assert SIMULATOR.run(seed, is_strict=is_strict).violation is None


def test_a_failing_schedule_is_shrunk_and_told():
    name = "W2: no transaction is checked before PREPARED"
    found = SIMULATOR.first_found(name, [_FOUND_BY[name]])
    assert found is not None
    assert found.violation is not None
    story = SIMULATOR.story_of(found)
    assert len(story) <= MAX_LINES
    assert story[-1].startswith(f"    => {found.violation.kind}")
