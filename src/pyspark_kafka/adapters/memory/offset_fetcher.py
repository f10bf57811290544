"""Offsets of a cluster in memory."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import final

from ...domain.options.source import SourceOptions
from ...domain.partition_offsets import PartitionOffsets
from ...domain.subscription import Assign, Subscribe, SubscribePattern, Subscription
from ...domain.topic_partition import TopicPartition
from ...ports.reading import OffsetFetcher
from .cluster import MemoryCluster


@final
class MemoryOffsetFetcher(OffsetFetcher):
    """Reads offsets from a ``MemoryCluster``."""

    def __init__(self, cluster: MemoryCluster, options: SourceOptions) -> None:
        self._cluster = cluster
        self._committed_only = options.reads_committed_only

    def partitions(self, subscription: Subscription) -> frozenset[TopicPartition]:
        sizes = self._cluster.topics()
        match subscription:
            case Assign(partitions):
                return frozenset(
                    partition
                    for partition in partitions
                    if partition.partition < sizes.get(partition.topic, 0)
                )
            case Subscribe(topics):
                self._cluster.require(topics, "subscribe")
            case SubscribePattern():
                topics = tuple(topic for topic in sizes if subscription.matches(topic))
        return frozenset(
            TopicPartition(topic, number) for topic in topics for number in range(sizes[topic])
        )

    def earliest(self, partitions: Collection[TopicPartition]) -> PartitionOffsets:
        return PartitionOffsets(
            (partition, earliest) for partition, earliest, _ in self._watermarks(partitions)
        )

    def latest(self, partitions: Collection[TopicPartition]) -> PartitionOffsets:
        return PartitionOffsets(
            (partition, latest) for partition, _, latest in self._watermarks(partitions)
        )

    def for_timestamps(
        self, timestamps: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, int | None]:
        return {
            partition: self._cluster.offset_for_timestamp(partition, timestamps[partition])
            for partition, _, _ in self._watermarks(timestamps)
        }

    def committed(self, group_id: str, partitions: Collection[TopicPartition]) -> PartitionOffsets:
        return PartitionOffsets(self._cluster.committed(group_id)).restrict(partitions)

    def commit(self, group_id: str, offsets: PartitionOffsets) -> None:
        self._cluster.commit(group_id, offsets)

    def close(self) -> None:
        """Do nothing: the cluster belongs to the caller."""

    def _watermarks(
        self, partitions: Collection[TopicPartition]
    ) -> Iterator[tuple[TopicPartition, int, int]]:
        for partition in partitions:
            watermarks = self._cluster.watermarks(partition, committed_only=self._committed_only)
            if watermarks is not None:
                yield partition, *watermarks
