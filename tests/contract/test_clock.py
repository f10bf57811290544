"""What every ``Clock`` owes."""

from __future__ import annotations

import pytest

from pyspark_kafka.adapters.memory.clock import MemoryClock
from pyspark_kafka.adapters.system.clock import SystemClock
from pyspark_kafka.ports.clock import Clock


@pytest.fixture(params=[MemoryClock, SystemClock])
def clock(request: pytest.FixtureRequest) -> Clock:
    """Give each clock in turn."""
    made: Clock = request.param()
    return made


def test_time_does_not_go_back(clock: Clock) -> None:
    """A later look never gives an earlier time."""
    times = [clock.now_ms() for _ in range(1_000)]
    assert times == sorted(times)


def test_time_passes_while_one_sleeps(clock: Clock) -> None:
    """After a sleep at least that much time has passed."""
    before = clock.now_ms()
    clock.sleep_ms(20)
    assert clock.now_ms() - before >= 20
