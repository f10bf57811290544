"""Events of a source, kept for tests."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, final

from ...domain.errors import PysparkKafkaError
from ...domain.lag.lag import Lag
from ...domain.partition_offsets import PartitionOffsets
from ...domain.reading.data_loss import DataLoss
from ...domain.reading.errors import OffsetOutOfRangeError
from ...domain.topic_partition import TopicPartition
from ...domain.values.errors import BadRecordStats
from ...domain.writing.transaction import DeliveryStats
from ...ports.reading import SourceEvents

MAX_BUFFERED: Final = 10_000


@final
@dataclass(frozen=True, slots=True)
class Report:
    """The name of a ``SourceEvents`` method, and its arguments."""

    event: str
    facts: tuple[object, ...]


@final
class MemorySourceEvents(SourceEvents):
    """Keeps the newest reports, oldest first. Thread-safe."""

    def __init__(self) -> None:
        self._reports: deque[Report] = deque(maxlen=MAX_BUFFERED)

    @property
    def reports(self) -> tuple[Report, ...]:
        """The reports so far."""
        return tuple(self._reports)

    def named(self, event: str) -> tuple[tuple[object, ...], ...]:
        """Return the arguments of each report of one event."""
        return tuple(report.facts for report in self.reports if report.event == event)

    def initial_offsets(self, offsets: PartitionOffsets) -> None:
        self._keep("initial_offsets", offsets)

    def partitions_added(self, offsets: PartitionOffsets) -> None:
        self._keep("partitions_added", offsets)

    def partitions_left_out(self, partitions: Collection[TopicPartition]) -> None:
        self._keep("partitions_left_out", partitions)

    def data_lost(self, loss: DataLoss) -> None:
        self._keep("data_lost", loss)

    def offset_out_of_range(self, error: OffsetOutOfRangeError) -> None:
        self._keep("offset_out_of_range", error)

    def offsets_retried(self, attempt: int, attempts: int, reason: str) -> None:
        self._keep("offsets_retried", attempt, attempts, reason)

    def lag_measured(self, lag: Lag) -> None:
        self._keep("lag_measured", lag)

    def group_commit_failed(self, group_id: str, error: PysparkKafkaError) -> None:
        self._keep("group_commit_failed", group_id, error)

    def records_failed(self, found: BadRecordStats, partition: TopicPartition, offset: int) -> None:
        self._keep("records_failed", found, partition, offset)

    def tasks_are_small(self, tasks: int, offsets: int) -> None:
        self._keep("tasks_are_small", tasks, offsets)

    def records_delivered(self, delivered: DeliveryStats) -> None:
        self._keep("records_delivered", delivered)

    def _keep(self, event: str, *facts: object) -> None:
        self._reports.append(Report(event, facts))
