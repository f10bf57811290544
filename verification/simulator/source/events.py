"""Passes the source's reports on to the oracle."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from pyspark_kafka.domain.errors import PysparkKafkaError
from pyspark_kafka.domain.lag.lag import Lag
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.reading.data_loss import DataLoss
from pyspark_kafka.domain.reading.errors import OffsetOutOfRangeError
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.domain.values.errors import BadRecordStats
from pyspark_kafka.domain.writing.transaction import DeliveryStats
from pyspark_kafka.ports.reading import SourceEvents

from .losses import Loss, parse_loss

if TYPE_CHECKING:
    from .world import World


class SimulatedEvents(SourceEvents):
    """Keeps the reports of one driver and of its tasks."""

    takes_lag = False

    def __init__(self, world: World) -> None:
        self._world = world
        self.losses: list[Loss] = []
        self.found: PartitionOffsets | None = None
        """The initial offsets that this driver has determined."""
        self.found_at: tuple[int, int] | None = None
        self.retries = 0

    def data_lost(self, loss: DataLoss) -> None:
        found = parse_loss(loss.condition, loss.warning)
        self._world.tell("report a loss", loss.warning.split("\n")[0])
        self._world.oracle.check_loss(found)
        self.losses += found

    def initial_offsets(self, offsets: PartitionOffsets) -> None:
        self.found = offsets
        self.found_at = self._world.changes

    def partitions_added(self, offsets: PartitionOffsets) -> None:
        """Called with new partitions."""

    def partitions_left_out(self, partitions: Collection[TopicPartition]) -> None:
        """Called with partitions that a kept plan has no bounds for."""

    def offset_out_of_range(self, error: OffsetOutOfRangeError) -> None:
        """Called before it is reported as a loss."""

    def offsets_retried(self, attempt: int, attempts: int, reason: str) -> None:  # noqa: ARG002
        self.retries += 1

    def lag_measured(self, lag: Lag) -> None:
        """Called with the lag."""

    def group_commit_failed(self, group_id: str, error: PysparkKafkaError) -> None:
        """Called when it is to be tried again later."""

    def records_failed(self, found: BadRecordStats, partition: TopicPartition, offset: int) -> None:
        """Called with values that cannot be decoded: there are none."""

    def tasks_are_small(self, tasks: int, offsets: int) -> None:
        """Called if there are many tasks."""

    def records_delivered(self, delivered: DeliveryStats) -> None:
        """Called by sinks."""
