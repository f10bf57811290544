"""Clocks that break a promise of ``Clock``."""

from __future__ import annotations

from typing import Final

from pyspark_kafka.adapters.memory.clock import MemoryClock
from pyspark_kafka.ports.clock import Clock
from pyspark_kafka.testing import ClockContract

from .adapter import Faults, suite_with


class Passing(Clock):
    """Passes every call to another clock."""

    def __init__(self) -> None:
        self.clock = MemoryClock(1_000)

    def now_ms(self) -> int:
        return self.clock.now_ms()

    def sleep_ms(self, milliseconds: int) -> None:
        self.clock.sleep_ms(milliseconds)


def _suite(adapter: type[Clock]) -> type:
    return suite_with(ClockContract, clock=adapter)


wrong: Final = Faults(Passing, _suite)


@wrong(ClockContract.test_time_does_not_go_back, "now_ms")
def is_a_millisecond_earlier_at_each_look(self):
    self.clock.sleep_ms(-1)
    return self.clock.now_ms()


@wrong(ClockContract.test_time_passes_during_a_sleep, "sleep_ms")
def returns_from_a_sleep_at_once(self, milliseconds):
    pass


@wrong(ClockContract.test_each_sleep_takes_its_time, "sleep_ms")
def sleeps_the_first_time_only(self, milliseconds):
    if self.clock.now_ms() == 1_000:
        self.clock.sleep_ms(milliseconds)


@wrong(ClockContract.test_a_sleep_of_no_time_returns, "sleep_ms")
def fails_if_there_is_no_time_to_sleep(self, milliseconds):
    if not milliseconds:
        raise ValueError("no time")
    self.clock.sleep_ms(milliseconds)
