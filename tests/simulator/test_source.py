from itertools import chain
from typing import Final

import pytest

from verification.simulator.engine.search import run_part
from verification.simulator.engine.story import MAX_LINES
from verification.simulator.source import SIMULATOR

_MAX_TRIED: Final = 20_000

_FOUND_BY: Final = {
    "a first batch that runs again starts where the options lead now": 119,
    "a first batch at the end may end before it starts": 89,
    "pushed filters of the last use apply to every use": 23,
    "a kept plan has the bounds of its first use": 7,
    "a kept plan has the partitions of its first use": 1200,
    "new partitions start at their end": 1,
    "a share of a limit is rounded to nothing": 16,
    "shares of a limit do not depend on the backlog": 16,
    "offsets are not compared with a log that is shorter": 29,
    "an answer of a broker that lags is believed": 12,
    "partitions that are gone are forgotten": 89,
    "losses in planning are never errors": 36,
    "deleted records are skipped in silence": 12,
    "the end of available now is taken anew for each batch": 164,
    "a batch waits for enough records for ever": 70,
    "initial offsets are determined at each question": 12,
    "stored initial offsets are not read": 1,
    "a group gets offsets of batches that have not run": 1,
    "a group gets initial offsets": 251,
    "the last part of a split range is lost": 6,
    "a reader of Spark 4.0 does not remember where the query continues": 20,
}
"""Seeds that find planted faults; `... verification.simulator source --planted` finds more."""


@pytest.mark.parametrize("first", range(0, 600, 100))
def test_schedules_keep_every_promise(first):
    assert run_part("source", range(first, first + 100)).stories == []


def test_a_seed_decides_everything():
    told = [repr(SIMULATOR.run(seed).told) for seed in (3, 7, 23, 3, 7, 23)]
    assert told[:3] == told[3:]
    assert told[0] != told[1]


@pytest.mark.parametrize("name", SIMULATOR.planted)
def test_planted_faults_are_found(name):
    known = [_FOUND_BY[name]] if name in _FOUND_BY else []
    assert SIMULATOR.first_found(name, chain(known, range(_MAX_TRIED))) is not None


def test_a_failing_schedule_is_shrunk_and_told():
    name = "new partitions start at their end"
    found = SIMULATOR.first_found(name, [_FOUND_BY[name]])
    assert found is not None
    assert found.violation is not None
    story = SIMULATOR.story_of(found)
    assert len(story) <= MAX_LINES
    assert story[-1].startswith(f"    => {found.violation.kind}")
