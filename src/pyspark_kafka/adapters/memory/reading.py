"""Readers of a cluster in memory, and its offsets."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import partial
from typing import Final, final

import pyarrow as pa

from ...domain.errors import UnknownTopicError
from ...domain.options.source import SourceOptions
from ...domain.partition_offsets import PartitionOffsets
from ...domain.reading.data_loss import DataLoss
from ...domain.reading.errors import OffsetOutOfRangeError, TopicRecreatedError
from ...domain.reading.ranges import OffsetRange
from ...domain.reading.record_limits import OversizedRecords
from ...domain.reading.records import Projection
from ...domain.subscription import Assign, Subscribe, SubscribePattern, Subscription
from ...domain.topic_partition import TopicPartition
from ...ports.reading import OffsetFetcher, RecordReader
from ..kafka_format.record_columns import record_batches
from .cluster import ADDRESS, MemoryCluster, StoredRecord

RECORDS_PER_BATCH: Final = 1_000


@final
class MemoryRecordReader(RecordReader):
    """Reads from a ``MemoryCluster``."""

    def __init__(self, cluster: MemoryCluster, options: SourceOptions) -> None:
        self._cluster = cluster
        self._committed_only = options.reads_committed_only
        self._oversized = OversizedRecords(options.record_limits)
        self._option = options.subscription.option

    def read(self, offset_range: OffsetRange, projection: Projection) -> Iterator[pa.RecordBatch]:
        partition, until = offset_range.partition, offset_range.until_offset
        position = offset_range.from_offset
        topic_id = self._cluster.topic_id(partition.topic)
        while position < until:
            # Nothing is deleted during the call.
            records, position = self._cluster.wait_for(
                partial(self._fetch, partition, topic_id, position, until), 0
            )
            yield from record_batches(records, partition, projection, self._oversized)

    def take_skipped(self) -> Iterator[DataLoss]:
        return self._oversized.take_skipped()

    def close(self) -> None:
        """Do nothing: the cluster belongs to the caller."""

    def _fetch(
        self, partition: TopicPartition, topic_id: int | None, position: int, until: int
    ) -> tuple[list[StoredRecord], int]:
        """Return records and the offset after them, or after offsets without a record."""
        watermarks = self._cluster.watermarks(partition, committed_only=self._committed_only)
        if watermarks is None or topic_id is None:
            raise UnknownTopicError([partition.topic], self._option, ADDRESS)
        earliest, latest = watermarks
        if self._cluster.topic_id(partition.topic) != topic_id:
            raise TopicRecreatedError(partition, position, earliest=earliest)
        if not earliest <= position < latest:
            raise OffsetOutOfRangeError(partition, position, earliest=earliest, latest=latest)
        records = self._cluster.fetch(
            partition,
            position,
            until,
            committed_only=self._committed_only,
            max_records=RECORDS_PER_BATCH,
        )
        return records, records[-1].offset + 1 if records else min(until, latest)


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
            partition: self._cluster.offset_for_timestamp(
                partition, timestamps[partition], committed_only=self._committed_only
            )
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
