import time
from typing import Any, Final

import pytest

from pyspark_kafka.adapters.memory.source_events import MemorySourceEvents
from pyspark_kafka.ports.reading import SourceEvents
from pyspark_kafka.testing import SourceEventsContract

from .adapter import Faults, PassesOn


class Passing(PassesOn, SourceEvents):
    """Passes every event to another listener."""

    def take(self, event: str, *facts: object) -> None:
        getattr(self.inner, event)(*facts)


def _taking(event: str) -> Any:
    return lambda self, *facts: self.take(event, *facts)


for _event in SourceEvents.__abstractmethods__:
    setattr(Passing, _event, _taking(_event))


def _swallowing(swallowed: str) -> type[Passing]:
    return type(f"Swallows_{swallowed}", (Passing,), {swallowed: lambda *_: None})


def _suite(adapter: type[Passing]) -> type:
    class Suite(SourceEventsContract):
        @pytest.fixture
        def events(self):
            return adapter(MemorySourceEvents())

        @pytest.fixture
        def observed(self, events):
            return lambda: [f"{report.event} {report.facts}" for report in events.inner.reports]

    return Suite


wrong: Final = Faults(Passing, _suite)

for _event in sorted(SourceEvents.__abstractmethods__):
    wrong(SourceEventsContract.test_an_event_is_observed)(_swallowing(_event))


@wrong(SourceEventsContract.test_an_event_is_observed, "take")
def swallows_an_event_if_there_was_one_of_its_kind(self, event, *facts):
    if not self.inner.named(event):
        Passing.take(self, event, *facts)


@wrong(SourceEventsContract.test_events_are_observed_in_order, "take")
def holds_every_event_back_until_the_next_one(self, event, *facts):
    held, self.seen = self.seen, {event: facts}
    for name, others in held.items():
        Passing.take(self, name, *others)


@wrong(SourceEventsContract.test_an_event_delays_nothing, "take")
def takes_a_third_of_a_second_for_an_event(self, event, *facts):
    time.sleep(0.3)
    Passing.take(self, event, *facts)


@wrong(SourceEventsContract.test_events_without_partitions_are_observed, "initial_offsets")
def swallows_events_without_partitions(self, offsets):
    if offsets:
        self.take("initial_offsets", offsets)
