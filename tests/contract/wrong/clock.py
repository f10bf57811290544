"""Clocks that break a promise of ``Clock``."""

from __future__ import annotations

from typing import Final

from pyspark_kafka.adapters.memory.clock import MemoryClock
from pyspark_kafka.ports.clock import Clock
from pyspark_kafka.testing import ClockContract

from .adapter import PortFaults, suite_with, wrong_with


class Passing(Clock):
    """Passes every call to another clock."""

    def __init__(self) -> None:
        self.clock = MemoryClock(1_000)

    def now_ms(self) -> int:
        return self.clock.now_ms()

    def sleep_ms(self, milliseconds: int) -> None:
        self.clock.sleep_ms(milliseconds)


class GoesBack(Passing):
    """Is a millisecond earlier at each look."""

    def now_ms(self) -> int:
        self.clock.sleep_ms(-1)
        return self.clock.now_ms()


class DoesNotSleep(Passing):
    """Returns from a sleep at once."""

    def sleep_ms(self, milliseconds: int) -> None:
        pass


class SleepsOnce(Passing):
    """Sleeps the first time only."""

    def sleep_ms(self, milliseconds: int) -> None:
        if self.clock.now_ms() == 1_000:
            self.clock.sleep_ms(milliseconds)


class SleepsTooShort(Passing):
    """Sleeps half of the time."""

    def sleep_ms(self, milliseconds: int) -> None:
        self.clock.sleep_ms(milliseconds // 2)


class SleepsSeconds(Passing):
    """Takes milliseconds for seconds."""

    def sleep_ms(self, milliseconds: int) -> None:
        self.clock.sleep_ms(1_000 * milliseconds)


class TellsSeconds(Passing):
    """Returns seconds."""

    def now_ms(self) -> int:
        return self.clock.now_ms() // 1_000


class RefusesNoTime(Passing):
    """Fails if there is no time to sleep."""

    def sleep_ms(self, milliseconds: int) -> None:
        if not milliseconds:
            raise ValueError("no time")
        self.clock.sleep_ms(milliseconds)


def _suite(adapter: type[Clock]) -> type:
    return suite_with(ClockContract, clock=adapter)


_wrong: Final = wrong_with(_suite)


FAULTS: Final = PortFaults(
    _suite(Passing),
    (
        *_wrong(ClockContract.test_time_does_not_go_back, GoesBack),
        *_wrong(ClockContract.test_time_passes_during_a_sleep, DoesNotSleep),
        *_wrong(ClockContract.test_each_sleep_takes_its_time, SleepsOnce),
        *_wrong(ClockContract.test_time_passes_during_a_sleep, SleepsTooShort),
        *_wrong(ClockContract.test_time_passes_during_a_sleep, SleepsSeconds),
        *_wrong(ClockContract.test_time_passes_during_a_sleep, TellsSeconds),
        *_wrong(ClockContract.test_a_sleep_of_no_time_returns, RefusesNoTime),
    ),
)
