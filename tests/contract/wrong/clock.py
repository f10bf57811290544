from typing import Final

from pyspark_kafka.adapters.memory.clock import MemoryClock
from pyspark_kafka.ports.clock import Clock
from pyspark_kafka.testing import ClockContract

from .adapter import Faults, PassesOn, suite_with


class Passing(PassesOn, Clock):
    """Passes every call to another clock."""


def _suite(adapter: type[Passing]) -> type:
    return suite_with(ClockContract, clock=lambda: adapter(MemoryClock(1_000)))


wrong: Final = Faults(Passing, _suite)


@wrong(ClockContract.test_time_does_not_go_back, "now_ms")
def is_a_millisecond_earlier_at_each_look(self):
    self.inner.sleep_ms(-1)
    return self.inner.now_ms()


@wrong(ClockContract.test_time_passes_during_a_sleep, "sleep_ms")
def returns_from_a_sleep_at_once(self, milliseconds):
    pass


@wrong(ClockContract.test_each_sleep_takes_its_time, "sleep_ms")
def sleeps_the_first_time_only(self, milliseconds):
    if self.inner.now_ms() == 1_000:
        self.inner.sleep_ms(milliseconds)


@wrong(ClockContract.test_a_sleep_of_no_time_returns, "sleep_ms")
def fails_if_there_is_no_time_to_sleep(self, milliseconds):
    if not milliseconds:
        raise ValueError("no time")
    self.inner.sleep_ms(milliseconds)
