import itertools

import pytest

from benchmarks.catch_up import Look, await_caught_up, rate_of


def test_the_rate_between_the_first_records_and_the_last():
    """What was visible at the first look came in a time that is unknown, and does not count."""
    assert rate_of([Look(1.0, 200), Look(2.0, 700), Look(3.0, 1_000)], 1_000) == 400


def test_markers_of_transactions_are_not_records():
    """Offsets beyond the number of records do not raise the rate."""
    assert rate_of([Look(1.0, 500), Look(2.0, 1_000)], 800) == 400


def test_all_records_at_once():
    """Records that become visible at once have no rate."""
    with pytest.raises(ValueError, match="more of them are needed"):
        rate_of([Look(1.0, 500)], 500)


def test_looks_at_a_growing_output(monkeypatch):
    """Only looks at which the output had grown are returned, once it grows no more."""
    monkeypatch.setattr("benchmarks.catch_up.SETTLED_SECONDS", 0.0)
    visible = itertools.chain([0, 0, 3, 3, 9], itertools.repeat(10)).__next__
    looks = await_caught_up(visible, 9, timeout_seconds=60)
    assert [look.visible for look in looks] == [3, 9, 10]


def test_an_output_that_stops_growing():
    """A pipeline that does not catch up in time is an error that tells how far it came."""
    with pytest.raises(TimeoutError, match="3 of 9 records came out in time"):
        await_caught_up(lambda: 3, 9, timeout_seconds=0)
