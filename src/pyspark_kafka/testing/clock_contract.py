"""The contract suite of ``Clock``."""

from __future__ import annotations

from ..ports.clock import Clock
from .fixtures import required_fixture


class ClockContract:
    """The contract of ``Clock``; a subclass overrides the fixture ``clock``."""

    clock = required_fixture("Return the clock under test.")

    def test_time_does_not_go_back(self, clock: Clock) -> None:
        """A later call never returns an earlier time."""
        times = [clock.now_ms() for _ in range(1_000)]
        assert times == sorted(times)

    def test_time_passes_during_a_sleep(self, clock: Clock) -> None:
        """After a sleep at least that much time has passed, in milliseconds."""
        before = clock.now_ms()
        clock.sleep_ms(20)
        assert 20 <= clock.now_ms() - before < 10_000

    def test_each_sleep_takes_its_time(self, clock: Clock) -> None:
        """Time passes during every sleep, not during the first one only."""
        before = clock.now_ms()
        for _ in range(3):
            clock.sleep_ms(10)
        assert clock.now_ms() - before >= 30

    def test_a_sleep_of_no_time_returns(self, clock: Clock) -> None:
        """A sleep of 0 ms is valid, and time does not go back."""
        before = clock.now_ms()
        clock.sleep_ms(0)
        assert clock.now_ms() >= before
