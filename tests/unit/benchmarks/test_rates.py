import itertools

from benchmarks.rates import records_per_second


def test_a_rate_of_what_ends():
    """Finite input that ends before the time is over has a rate."""
    assert records_per_second([10, 20], seconds=3_600) > 0


def test_a_rate_of_what_never_ends():
    """What has no end is left when the time is over."""
    assert records_per_second(itertools.repeat(1), seconds=0) > 0
