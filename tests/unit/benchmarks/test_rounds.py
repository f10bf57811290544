import itertools
from functools import partial

from benchmarks.plan import Plan
from benchmarks.results import Samples
from benchmarks.rounds import alternate


def test_every_competitor_runs_once_a_round():
    """Runs alternate, and runs of the first round are not counted."""
    clock = itertools.count()
    tick = partial(next, clock)
    samples = alternate({"a": tick, "b": tick}, Plan(runs=2, warm_up_rounds=1))
    assert samples == (Samples("a", (2, 4)), Samples("b", (3, 5)))
