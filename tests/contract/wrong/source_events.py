"""Listeners that break a promise of ``SourceEvents``."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import pytest

from pyspark_kafka.adapters.memory.source_events import MemorySourceEvents
from pyspark_kafka.ports.reading import SourceEvents
from pyspark_kafka.testing import SourceEventsContract

from .adapter import PortFaults, WrongAdapter

if TYPE_CHECKING:
    from collections.abc import Callable

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


class OncePerKind(Passing):
    """Swallows an event if there was one of its kind."""

    def take(self, event: str, *facts: object) -> None:
        if not self.kept.named(event):
            super().take(event, *facts)


class Twice(Passing):
    """Passes every event on twice."""

    def take(self, event: str, *facts: object) -> None:
        super().take(event, *facts)
        super().take(event, *facts)


class OneLate(Passing):
    """Holds every event back until the next one."""

    def __init__(self) -> None:
        super().__init__()
        self._held: list[tuple[object, ...]] = []

    def take(self, event: str, *facts: object) -> None:
        self._held.append((event, *facts))
        if len(self._held) > 1:
            name, *others = self._held.pop(0)
            super().take(str(name), *others)


class Raising(Passing):
    """Raises for an event that it has taken."""

    def take(self, event: str, *facts: object) -> None:
        super().take(event, *facts)
        raise RuntimeError("the log is full")


class Slow(Passing):
    """Takes a third of a second for an event."""

    def take(self, event: str, *facts: object) -> None:
        time.sleep(0.3)
        super().take(event, *facts)


class WithoutGroup(Passing):
    """Drops the group's name."""

    def group_commit_failed(self, group_id: str, error: PysparkKafkaError) -> None:
        del group_id
        self.take("group_commit_failed", "", error)


class WithoutReason(Passing):
    """Drops the reason of an attempt."""

    def offsets_retried(self, attempt: int, attempts: int, reason: str) -> None:
        del reason
        self.take("offsets_retried", attempt, attempts, "")


class WithoutReasons(Passing):
    """Drops the reasons of bad records."""

    def records_failed(self, found: BadRecordStats, partition: TopicPartition, offset: int) -> None:
        self.take("records_failed", (found.total, found.dead_letters), partition, offset)


class NoEmptyEvents(Passing):
    """Swallows events without partitions."""

    def initial_offsets(self, offsets: PartitionOffsets) -> None:
        if offsets:
            super().initial_offsets(offsets)


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


def _wrong(
    adapter: type[Passing],
    caught_by: Callable[..., None] = SourceEventsContract.test_an_event_is_observed,
) -> WrongAdapter:
    return WrongAdapter(adapter, _suite(adapter), caught_by)


FAULTS: Final = PortFaults(
    _suite(Passing),
    (
        *(_wrong(_swallowing(event)) for event in sorted(SourceEvents.__abstractmethods__)),
        _wrong(OncePerKind),
        _wrong(Twice),
        _wrong(OneLate, SourceEventsContract.test_events_are_observed_in_order),
        _wrong(Raising),
        _wrong(Slow, SourceEventsContract.test_an_event_delays_nothing),
        _wrong(WithoutGroup),
        _wrong(WithoutReason),
        _wrong(WithoutReasons),
        _wrong(NoEmptyEvents, SourceEventsContract.test_events_without_partitions_are_observed),
    ),
)
