from __future__ import annotations

import pytest

from pyspark_kafka.domain.continuous.restart_strategy import RestartLimits, RestartStrategy

LIMITS = RestartLimits(max_restarts=3, within_s=60, first_delay_s=1, max_delay_s=3)


def test_the_pause_grows_to_its_bound() -> None:
    strategy = RestartStrategy(LIMITS)
    assert [strategy.delay_after_failure(now) for now in (0, 10, 20)] == [1, 2, 3]


def test_the_pause_stays_at_its_bound_for_thousands_of_restarts() -> None:
    strategy = RestartStrategy(RestartLimits(max_restarts=3_000, max_delay_s=3))
    assert [strategy.delay_after_failure(0) for _ in range(3_000)][-1] == 3


def test_too_many_failures_within_the_time_are_given_up() -> None:
    strategy = RestartStrategy(LIMITS)
    for now in (0, 10, 20):
        strategy.delay_after_failure(now)
    assert strategy.delay_after_failure(59) is None
    assert strategy.delay_after_failure(59.9) is None


def test_old_failures_do_not_count() -> None:
    """One that is as old as the time is too old; a failure that was given up never counts."""
    strategy = RestartStrategy(LIMITS)
    for now in (0, 10, 20, 30):
        strategy.delay_after_failure(now)
    assert strategy.delay_after_failure(60) == 3
    assert strategy.delay_after_failure(75) == 3
    assert strategy.delay_after_failure(135) == 1


def test_without_restarts_the_first_failure_is_given_up() -> None:
    assert RestartStrategy(RestartLimits(max_restarts=0)).delay_after_failure(0) is None


@pytest.mark.parametrize(("restarts", "within"), [(-1, 60), (1, 0)])
def test_impossible_limits_are_refused(restarts: int, within: float) -> None:
    with pytest.raises(ValueError, match="limited"):
        RestartLimits(restarts, within)
