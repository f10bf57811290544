from dataclasses import replace

import pytest

from benchmarks.results import (
    MILLISECONDS,
    RECORDS_PER_SECOND,
    Comparison,
    Latencies,
    Percentiles,
    Samples,
)

from .sections import OURS, PEER, RATES


def test_the_median_and_the_extent_of_samples():
    samples = Samples("ours", (3.0, 1.0, 9.0))
    assert (samples.min, samples.median, samples.max) == (1.0, 3.0, 9.0)


@pytest.mark.parametrize("kind", [Samples, Latencies])
def test_what_was_never_measured(kind):
    with pytest.raises(ValueError, match="'ours' was never measured"):
        kind("ours", ())


def test_a_higher_rate_is_the_better_one():
    assert RECORDS_PER_SECOND.times_as_good(200.0, peer=100.0) == 2.0


def test_a_shorter_time_is_the_better_one():
    assert MILLISECONDS.times_as_good(50.0, peer=100.0) == 2.0


def test_the_median_of_latencies():
    rounds = Percentiles(1, 5, 6, 9), Percentiles(2, 3, 8, 8), Percentiles(3, 4, 7, 70)
    assert Latencies("ours", rounds).median == Percentiles(2, 4, 7, 9)


def test_competitors_of_a_section_are_those_of_all_its_cases():
    more = Samples("more", (1.0,))
    cases = Comparison("first", (PEER, OURS)), Comparison("second", (PEER, more))
    assert replace(RATES, comparisons=cases).competitors == ["peer", "ours", "more"]


def test_a_case_without_a_peer():
    with pytest.raises(ValueError, match="'peer' was not measured in 'only ours'"):
        replace(RATES, comparisons=(Comparison("only ours", (OURS,)),))
