from typing import Final

import pytest

from verification.simulator.engine.search import run_part
from verification.simulator.engine.story import MAX_LINES
from verification.simulator.reading import SIMULATOR

_FOUND_BY: Final = {
    "a partition is fetched elsewhere while its records are not decoded": 832,
    "metadata have no age": 16,
    "a connection that ends at once": 41,
    "progress is where the response ends": 2,
    "the first batch is handed out from its start": 1,
    "a replica's word counts as a leader's": 262,
    "divergence is ignored": 50,
    "aborted transactions are ignored": 8,
    "no checksum is checked": 40,
    "a topic that was created again is not noticed": 28,
    "leases of replicas do not end": 427,
    "the last epoch is not sent": 1181,
    "old leaders are not left": 16,
    "a broker that is cut off is asked again and again": 490,
    "records of an earlier assignment are handed out": 33,
    "a replica that fails is not left": 952,
    "a request in flight is never overdue": 73,
    "a part of a response is taken for all": 159,
}
"""Seeds that find planted faults."""


@pytest.mark.parametrize("first", range(0, 300, 100))
def test_schedules_keep_every_promise(first):
    assert run_part("reading", range(first, first + 100)).stories == []


def test_a_seed_decides_everything():
    told = [repr(SIMULATOR.run(seed).told) for seed in (3, 9, 3, 9)]
    assert told[:2] == told[2:]
    assert told[0] != told[1]


@pytest.mark.parametrize("name", SIMULATOR.planted)
def test_planted_faults_are_found(name):
    seed = _FOUND_BY[name]
    with SIMULATOR.plant(name):
        assert SIMULATOR.run(seed).violation is not None
    assert SIMULATOR.run(seed).violation is None


def test_a_failing_schedule_is_shrunk_and_told():
    name = "aborted transactions are ignored"
    found = SIMULATOR.first_found(name, [_FOUND_BY[name]])
    assert found is not None
    assert found.violation is not None
    story = SIMULATOR.story_of(found)
    assert len(story) <= MAX_LINES
    assert story[-1].startswith(f"    => {found.violation.kind}")
