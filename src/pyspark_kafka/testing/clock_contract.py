"""What every ``Clock`` owes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ..ports.clock import Clock


class ClockContract:
    """Holds a ``Clock`` to its contract; a subclass gives it in the fixture ``clock``."""

    @pytest.fixture
    def clock(self) -> Clock:
        """Give the clock that is held to the contract."""
        raise NotImplementedError(f"{type(self).__name__} is to override the fixture 'clock'")

    def test_time_does_not_go_back(self, clock: Clock) -> None:
        """A later look never gives an earlier time."""
        times = [clock.now_ms() for _ in range(1_000)]
        assert times == sorted(times)

    def test_time_passes_while_one_sleeps(self, clock: Clock) -> None:
        """After a sleep at least that much time has passed."""
        before = clock.now_ms()
        clock.sleep_ms(20)
        assert clock.now_ms() - before >= 20

    def test_sleeping_no_time_returns(self, clock: Clock) -> None:
        """A sleep of 0 ms is no error, and does not turn time back."""
        before = clock.now_ms()
        clock.sleep_ms(0)
        assert clock.now_ms() >= before
