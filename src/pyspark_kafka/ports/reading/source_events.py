"""Events of sources and sinks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...domain.errors import OffsetOutOfRangeError, PysparkKafkaError
    from ...domain.lag.lag import Lag
    from ...domain.partition_offsets import PartitionOffsets
    from ...domain.reading.data_loss import DataLoss
    from ...domain.topic_partition import TopicPartition
    from ...domain.values.errors import BadRecordStats
    from ...domain.writing.transaction import DeliveryStats


class SourceEvents(ABC):
    """A listener. Its methods return immediately and raise nothing."""

    @abstractmethod
    def initial_offsets(self, offsets: PartitionOffsets) -> None:
        """Called with the offsets at which a new stream starts."""

    @abstractmethod
    def partitions_added(self, offsets: PartitionOffsets) -> None:
        """Called with new partitions and the offsets from which they are read."""

    @abstractmethod
    def data_lost(self, loss: DataLoss) -> None:
        """Called when data is lost and the query continues.

        Either ``failOnDataLoss`` is false, or ``skipOversizedRecords`` is true.
        """

    @abstractmethod
    def offset_out_of_range(self, error: OffsetOutOfRangeError) -> None:
        """Called when a read starts outside of the broker's log."""

    @abstractmethod
    def offsets_retried(self, attempt: int, attempts: int, reason: str) -> None:
        """Called when a fetch of offsets failed and is retried; ``attempt`` counts from 1."""

    @property
    def takes_lag(self) -> bool:
        """Whether to measure lag, which takes milliseconds with thousands of partitions."""
        return True

    @abstractmethod
    def lag_measured(self, lag: Lag) -> None:
        """Called with the lag between committed and latest offsets."""

    @abstractmethod
    def group_commit_failed(self, group_id: str, error: PysparkKafkaError) -> None:
        """Called when a commit of offsets to a consumer group failed."""

    @abstractmethod
    def records_failed(self, found: BadRecordStats, partition: TopicPartition, offset: int) -> None:
        """Called when records of a task could not be decoded, and the query continues.

        The partition and the offset are the first one's. Dead letters are acknowledged by then.
        """

    @abstractmethod
    def tasks_are_small(self, tasks: int, offsets: int) -> None:
        """Called once if a query has many tasks that read few offsets each, all together these."""

    @abstractmethod
    def records_delivered(self, delivered: DeliveryStats) -> None:
        """Called when all records of a sink's task are acknowledged."""
