"""Listeners that break a promise of ``SourceEvents``."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import pytest

from pyspark_kafka.adapters.memory.source_events import MemorySourceEvents
from pyspark_kafka.ports.reading import SourceEvents
from pyspark_kafka.testing import SourceEventsContract

from .adapter import Faults

if TYPE_CHECKING:
    from pyspark_kafka.domain.errors import PysparkKafkaError
    from pyspark_kafka.domain.lag.lag import Lag
    from pyspark_kafka.domain.partition_offsets import PartitionOffsets
    from pyspark_kafka.domain.reading.data_loss import DataLoss
    from pyspark_kafka.domain.reading.errors import OffsetOutOfRangeError
    from pyspark_kafka.domain.topic_partition import TopicPartition
    from pyspark_kafka.domain.values.errors import BadRecordStats
    from pyspark_kafka.domain.writing.transaction import DeliveryStats


class Passing(SourceEvents):
    """Passes every event to another listener."""

    def __init__(self) -> None:
        self.kept = MemorySourceEvents()

    def take(self, event: str, *facts: object) -> None:
        getattr(self.kept, event)(*facts)

    def initial_offsets(self, offsets: PartitionOffsets) -> None:
        self.take("initial_offsets", offsets)

    def partitions_added(self, offsets: PartitionOffsets) -> None:
        self.take("partitions_added", offsets)

    def data_lost(self, loss: DataLoss) -> None:
        self.take("data_lost", loss)

    def offset_out_of_range(self, error: OffsetOutOfRangeError) -> None:
        self.take("offset_out_of_range", error)

    def offsets_retried(self, attempt: int, attempts: int, reason: str) -> None:
        self.take("offsets_retried", attempt, attempts, reason)

    def lag_measured(self, lag: Lag) -> None:
        self.take("lag_measured", lag)

    def group_commit_failed(self, group_id: str, error: PysparkKafkaError) -> None:
        self.take("group_commit_failed", group_id, error)

    def records_failed(self, found: BadRecordStats, partition: TopicPartition, offset: int) -> None:
        self.take("records_failed", found, partition, offset)

    def tasks_are_small(self, tasks: int, offsets: int) -> None:
        self.take("tasks_are_small", tasks, offsets)

    def records_delivered(self, delivered: DeliveryStats) -> None:
        self.take("records_delivered", delivered)


def _swallowing(swallowed: str) -> type[Passing]:
    class Swallowing(Passing):
        def take(self, event: str, *facts: object) -> None:
            if event != swallowed:
                super().take(event, *facts)

    Swallowing.__name__ = f"Swallows_{swallowed}"
    Swallowing.__doc__ = f"Swallows {swallowed}."
    return Swallowing


def _suite(adapter: type[Passing]) -> type:
    class Suite(SourceEventsContract):
        @pytest.fixture
        def events(self):
            return adapter()

        @pytest.fixture
        def observed(self, events):
            return lambda: [f"{report.event} {report.facts}" for report in events.kept.reports]

    return Suite


wrong: Final = Faults(Passing, _suite)

for _event in sorted(SourceEvents.__abstractmethods__):
    wrong(SourceEventsContract.test_an_event_is_observed)(_swallowing(_event))


@wrong(SourceEventsContract.test_an_event_is_observed, "take")
def swallows_an_event_if_there_was_one_of_its_kind(self, event, *facts):
    if not self.kept.named(event):
        Passing.take(self, event, *facts)


@wrong(SourceEventsContract.test_events_are_observed_in_order)
class OneLate(Passing):
    """Holds every event back until the next one."""

    def __init__(self):
        super().__init__()
        self._held: list[tuple[object, ...]] = []

    def take(self, event, *facts):
        self._held.append((event, *facts))
        if len(self._held) > 1:
            name, *others = self._held.pop(0)
            super().take(str(name), *others)


@wrong(SourceEventsContract.test_an_event_delays_nothing, "take")
def takes_a_third_of_a_second_for_an_event(self, event, *facts):
    time.sleep(0.3)
    Passing.take(self, event, *facts)


@wrong(SourceEventsContract.test_events_without_partitions_are_observed, "initial_offsets")
def swallows_events_without_partitions(self, offsets):
    if offsets:
        Passing.initial_offsets(self, offsets)
