"""The contract suite of ``SourceEvents``."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import pytest

from ..domain.lag.lag import Lag
from ..domain.partition_offsets import PartitionOffsets
from ..domain.reading.data_loss import partitions_deleted
from ..domain.reading.errors import OffsetOutOfRangeError
from ..domain.topic_partition import TopicPartition
from ..domain.values.errors import BadRecordStats, FailureReason
from ..domain.writing.transaction import DeliveryStats
from ..ports.reading import SourceEvents
from .fixtures import required_fixture

_PARTITION: Final = TopicPartition("orders", 3)
_BAD_RECORDS: Final = BadRecordStats({FailureReason.BAD_ENUM: 21, FailureReason.TRUNCATED: 43}, 63)
_OUT_OF_RANGE: Final = OffsetOutOfRangeError(_PARTITION, 271, earliest=314, latest=1_618)

REPORTS: Final[Mapping[str, tuple[object, ...]]] = {
    "initial_offsets": (PartitionOffsets({_PARTITION: 4_711}),),
    "partitions_added": (PartitionOffsets({TopicPartition("payments", 0): 815}),),
    "partitions_left_out": ({TopicPartition("refunds", 3)},),
    "data_lost": (partitions_deleted([TopicPartition("customers", 1)]),),
    "offset_out_of_range": (_OUT_OF_RANGE,),
    "offsets_retried": (2, 5, "the coordinator is loading"),
    "lag_measured": (Lag({_PARTITION: 577}),),
    "group_commit_failed": ("auditors", _OUT_OF_RANGE),
    "records_failed": (_BAD_RECORDS, _PARTITION, 8_128),
    "tasks_are_small": (512, 2_048),
    "records_delivered": (DeliveryStats(1_234, 98_765),),
}
"""The port's methods, with arguments for each."""

_FACTS: Final[Mapping[str, tuple[str, ...]]] = {
    "initial_offsets": ("orders", "4711"),
    "partitions_added": ("payments", "815"),
    "partitions_left_out": ("refunds", "3"),
    "data_lost": ("customers",),
    "offset_out_of_range": (_OUT_OF_RANGE.message,),
    "offsets_retried": ("2", "5", "the coordinator is loading"),
    "lag_measured": ("577",),
    "group_commit_failed": ("auditors", _OUT_OF_RANGE.message),
    "records_failed": ("21", "BAD_ENUM", "43", "TRUNCATED", "63", "orders", "8128"),
    "tasks_are_small": ("512", "2048"),
    "records_delivered": ("1234", "98765"),
}
"""The facts that the text of an event contains."""

_MAX_SECONDS: Final = 2.0
"""How long an event may take, on a busy machine."""

Observed = Callable[[], Sequence[str]]


def report_all(events: SourceEvents) -> None:
    """Report one event of each kind."""
    for name, arguments in REPORTS.items():
        getattr(events, name)(*arguments)


class SourceEventsContract:
    """The contract of ``SourceEvents``; a subclass overrides ``events`` and ``observed``."""

    events = required_fixture("Return the listener under test.")
    observed = required_fixture(
        "Return a function that returns a text for each event that ``events`` took, in order. "
        "These are the lines of a log, say. A text contains the arguments of the event."
    )

    @pytest.mark.parametrize("report", sorted(REPORTS))
    def test_an_event_is_observed(
        self, events: SourceEvents, observed: Observed, report: str
    ) -> None:
        """Each event is observed once, with its facts, as often as it is reported."""
        for count in (1, 2):
            assert getattr(events, report)(*REPORTS[report]) is None
            texts = observed()
            assert len(texts) == (count if report in _taken(events) else 0)
            assert all(fact in text for text in texts for fact in _FACTS[report])

    def test_events_are_observed_in_order(self, events: SourceEvents, observed: Observed) -> None:
        """Events of several kinds come in the order in which they were reported."""
        report_all(events)
        for report, text in zip(_taken(events), observed(), strict=True):
            assert all(fact in text for fact in _FACTS[report])

    def test_events_without_partitions_are_observed(
        self, events: SourceEvents, observed: Observed
    ) -> None:
        """A stream whose pattern matches no topic reports empty offsets and lag."""
        events.initial_offsets(PartitionOffsets())
        events.lag_measured(Lag({}))
        assert len(observed()) == 1 + events.takes_lag

    def test_an_event_delays_nothing(self, events: SourceEvents) -> None:
        """The methods return immediately: sources and sinks call them while they work."""
        before = time.monotonic()
        report_all(events)
        assert time.monotonic() - before < _MAX_SECONDS


def _taken(events: SourceEvents) -> list[str]:
    """Return the events that a listener takes; it may ignore lag."""
    return [report for report in REPORTS if report != "lag_measured" or events.takes_lag]
