"""The contract suite of ``SourceEvents``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pytest

from ..domain.data_loss import partitions_deleted
from ..domain.errors import OffsetOutOfRangeError
from ..domain.lag import Lag
from ..domain.partition_offsets import PartitionOffsets
from ..domain.topic_partition import TopicPartition
from ..domain.write_result import DeliveryStats
from ..ports.source_events import SourceEvents

_PARTITION: Final = TopicPartition("t", 0)
_OFFSETS: Final = PartitionOffsets({_PARTITION: 5})
_OUT_OF_RANGE: Final = OffsetOutOfRangeError(_PARTITION, 1, earliest=3, latest=5)

REPORTS: Final[Mapping[str, tuple[object, ...]]] = {
    "initial_offsets": (_OFFSETS,),
    "partitions_added": (_OFFSETS,),
    "data_lost": (partitions_deleted([_PARTITION]),),
    "offset_out_of_range": (_OUT_OF_RANGE,),
    "offsets_retried": (1, 3, "why"),
    "lag_measured": (Lag({_PARTITION: 7}),),
    "group_commit_failed": ("g", _OUT_OF_RANGE),
    "records_delivered": (DeliveryStats(3, 120),),
}
"""The port's methods, with arguments for each."""


def report_all(events: SourceEvents) -> None:
    """Report one event of each kind."""
    for name, arguments in REPORTS.items():
        getattr(events, name)(*arguments)


class SourceEventsContract:
    """The contract of ``SourceEvents``; a subclass overrides the fixture ``events``."""

    @pytest.fixture
    def events(self) -> SourceEvents:
        """Return the listener under test."""
        raise NotImplementedError(f"{type(self).__name__} must override the fixture 'events'")

    @pytest.mark.parametrize("report", sorted(REPORTS))
    def test_an_event_is_accepted(self, events: SourceEvents, report: str) -> None:
        """An event is accepted, also twice, without an error for the source."""
        for _ in range(2):
            assert getattr(events, report)(*REPORTS[report]) is None

    def test_events_without_partitions_are_accepted(self, events: SourceEvents) -> None:
        """A stream whose pattern matches no topic reports empty offsets and lag."""
        events.initial_offsets(PartitionOffsets())
        events.lag_measured(Lag({}))
