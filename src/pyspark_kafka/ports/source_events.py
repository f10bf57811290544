"""The need to tell what happens to a source, and to a sink."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..domain.data_loss import DataLoss
    from ..domain.errors import OffsetOutOfRangeError, PysparkKafkaError
    from ..domain.lag import Lag
    from ..domain.partition_offsets import PartitionOffsets
    from ..domain.write_result import DeliveryStats


class SourceEvents(ABC):
    """Takes reports. Returns at once, and never fails the source: it raises nothing."""

    @abstractmethod
    def initial_offsets(self, offsets: PartitionOffsets) -> None:
        """Take the offsets with which a new stream begins."""

    @abstractmethod
    def partitions_added(self, offsets: PartitionOffsets) -> None:
        """Take partitions that were not there before, with the offsets they are read from."""

    @abstractmethod
    def data_lost(self, loss: DataLoss) -> None:
        """Take a finding with which the query goes on, since ``failOnDataLoss`` is false."""

    @abstractmethod
    def offset_out_of_range(self, error: OffsetOutOfRangeError) -> None:
        """Take a read that began outside of what the broker holds."""

    @abstractmethod
    def offsets_retried(self, attempt: int, attempts: int, reason: str) -> None:
        """Take an attempt to learn offsets that did not succeed and is made again.

        ``attempt`` counts from 1.
        """

    @property
    def takes_lag(self) -> bool:
        """Whether lag is to be measured: with thousands of partitions that takes milliseconds."""
        return True

    @abstractmethod
    def lag_measured(self, lag: Lag) -> None:
        """Take the offsets between what a stream has committed and the latest that it knows of."""

    @abstractmethod
    def group_commit_failed(self, group_id: str, error: PysparkKafkaError) -> None:
        """Take a commit of offsets to a consumer group that did not succeed."""

    @abstractmethod
    def records_delivered(self, delivered: DeliveryStats) -> None:
        """Take what a task of a sink has written, once all of it is acknowledged."""
