"""One deadline for all that a call waits for."""

from __future__ import annotations

import math
import threading
from contextlib import suppress

import pytest

from pyspark_kafka.adapters import call_deadline
from pyspark_kafka.adapters.call_deadline import (
    MAX_ATTEMPT_S,
    Attempts,
    CallDeadline,
)
from pyspark_kafka.adapters.kafka_python.failures import ErrorMapper


def test_a_call_within_a_call_ends_with_it() -> None:
    """The earlier deadline counts, and the outer one again afterwards."""
    calls = CallDeadline()
    with calls.within(100) as outer:
        with calls.within(1_000) as later:
            assert later == outer
        with calls.within(10) as earlier:
            assert earlier < outer
            with calls.within(50) as inner:
                assert inner == earlier
        with calls.within(math.inf) as again:
            assert again == outer


def test_calls_of_two_threads_have_deadlines_of_their_own() -> None:
    """Offsets may be asked for by several threads at once: neither ends with the other."""
    calls = CallDeadline()
    left: list[float] = []

    def call() -> None:
        with calls.within(1_000) as deadline:
            left.append(deadline.remaining)

    with calls.within(1):
        other = threading.Thread(target=call)
        other.start()
        other.join()
    assert left[0] > 500


def test_a_call_that_failed_leaves_no_deadline() -> None:
    """The next call has all of its time."""
    calls = CallDeadline()
    with suppress(ValueError), calls.within(1):
        raise ValueError
    with calls.within(100) as deadline:
        assert deadline.remaining > 50


def test_a_call_has_the_time_out_of_its_cluster_or_less() -> None:
    """No call waits for longer than 'default.api.timeout.ms'."""
    errors = ErrorMapper("broker:9092", 60_000)
    for seconds in (None, 1_000):
        with errors.one_deadline(seconds) as deadline:
            assert 50 < deadline.remaining <= 60
    with errors.one_deadline(10) as deadline:
        assert deadline.remaining <= 10


def test_an_attempt_that_ran_out_of_time_is_followed_by_a_longer_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Up to a limit, each thing by itself, and until an attempt ends in time."""
    monkeypatch.setattr(call_deadline, "MIN_ATTEMPT_S", 0.0)
    errors, attempts = ErrorMapper("broker:9092", 60_000), Attempts()
    for _ in range(9):
        with suppress(ValueError), attempts.next(errors.one_deadline, "slow"):
            raise ValueError
    monkeypatch.setattr(call_deadline, "MIN_ATTEMPT_S", 1.0)
    left: list[float] = []
    for key in ("slow", "slow", "other"):
        with attempts.next(errors.one_deadline, key), errors.one_deadline() as deadline:
            left.append(deadline.remaining)
    assert MAX_ATTEMPT_S / 2 < left[0] <= MAX_ATTEMPT_S
    assert max(left[1:]) <= 1.0
