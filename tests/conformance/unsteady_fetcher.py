"""A fetcher of offsets that fails at first."""

from collections.abc import Collection, Mapping
from typing import final

from pyspark_kafka.domain.errors import KafkaRequestError
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.subscription import Subscription
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.ports.reading import OffsetFetcher


@final
class UnsteadyFetcher(OffsetFetcher):
    """Counts requests for partitions, fails so many of them, and then lets another answer."""

    def __init__(self, fetcher: OffsetFetcher, failures: int = 0) -> None:
        self._fetcher = fetcher
        self._failures = failures
        self.calls = 0

    def partitions(self, subscription: Subscription) -> frozenset[TopicPartition]:
        self.calls += 1
        if self.calls <= self._failures:
            raise KafkaRequestError("a request for partitions", "the leader is not available")
        return self._fetcher.partitions(subscription)

    def latest(self, partitions: Collection[TopicPartition]) -> PartitionOffsets:
        return self._fetcher.latest(partitions)

    def earliest(self, partitions: Collection[TopicPartition]) -> PartitionOffsets:
        return self._fetcher.earliest(partitions)

    def for_timestamps(
        self, timestamps: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, int | None]:
        return self._fetcher.for_timestamps(timestamps)

    def committed(self, group_id: str, partitions: Collection[TopicPartition]) -> PartitionOffsets:
        return self._fetcher.committed(group_id, partitions)

    def commit(self, group_id: str, offsets: PartitionOffsets) -> None:
        self._fetcher.commit(group_id, offsets)

    def close(self) -> None:
        """Do nothing: the other fetcher belongs to its container."""
