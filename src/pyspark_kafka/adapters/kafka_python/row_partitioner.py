"""The partitions to which the rows of Arrow batches are written."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias, final

import numpy as np

from ...domain.errors import UnknownTopicError
from ...domain.topic_partition import TopicPartition
from ...ports.clock import epoch_ms
from ..kafka_format.producer_columns import ProducerColumns
from ..partitioning.murmur2 import RowGroups
from ..partitioning.size_limits import require_sizes
from ..partitioning.sticky_partitions import StickyPartitions
from ..partitioning.topic_rows import (
    RowTopics,
    explicit_partitions,
    partitions_by_key,
    require_partitions,
)
from ..partitioning.topic_wait import TopicWait
from .failures import RETRIABLE_ERRORS
from .rows import Rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from ...domain.options.client_settings import ProducerSettings
    from ..kernels.arrays import Int32Array, Int64Array
    from .cluster_metadata import ClusterMetadata
    from .failures import ErrorMapper

    PartitionRows: TypeAlias = tuple[TopicPartition, Rows]

_TOPIC_PAUSE_S: Final = 0.1


@final
class RowPartitioner:
    """Chooses partitions as Kafka's Java producer does, and checks sizes."""

    def __init__(
        self, metadata: ClusterMetadata, errors: ErrorMapper, producer: ProducerSettings
    ) -> None:
        """Take the metadata of the cluster that is written to."""
        self._metadata = metadata
        self._errors = errors
        self._producer = producer
        self._sticky = StickyPartitions(producer.batch_size)

    def partition(self, batch: pa.RecordBatch, topic: str | None) -> list[PartitionRows]:
        """Return the rows of each partition, by topic. All rows are checked.

        Waits for topics that are about to be created. ``topic`` overrides the column.

        :raises UnknownTopicError: if a topic does not exist.
        :raises NullTopicError: if a row has no topic.
        :raises InvalidRecordError: if a row cannot become a record.
        :raises RecordDeliveryError: if a partition does not exist, or a record is too large.
        """
        columns = ProducerColumns.of(batch, epoch_ms())
        topics = RowTopics.of(batch, topic)
        partitions = self._partitions(batch, columns, topics)
        groups = RowGroups.of(topics.codes, partitions)
        first_rows = groups.first_rows
        names = [topics.names[code] for code in topics.codes[first_rows].tolist()]
        found = Rows.of_groups(columns, groups)
        self._sticky.add(zip(names, (rows.payload_bytes for rows in found), strict=True))
        return [
            (TopicPartition(name, number), rows)
            for name, number, rows in zip(
                names, partitions[first_rows].tolist(), found, strict=True
            )
        ]

    def change_sticky_partitions(self) -> None:
        """Let rows without a key go on with other partitions: what was written is sent."""
        self._sticky.change()

    def _partition_counts(self, topics: Sequence[str]) -> Int64Array:
        self._metadata.add_topics(topics)
        known = (self._metadata.known_partition_count(topic) for topic in topics)
        counts = [
            count or self._partition_count(topic)
            for topic, count in zip(topics, known, strict=True)
        ]
        return np.array(counts, np.int64)

    def _partition_count(self, topic: str) -> int:
        """Return the number of partitions of a topic, which may be about to be created."""
        wait = TopicWait(topic, self._producer.max_block_ms / 1_000)
        deadline = wait.deadline
        is_answered = False

        def count() -> int:
            nonlocal is_answered
            try:
                with self._errors.one_deadline(deadline.remaining):
                    found = self._metadata.partition_count(topic)
            except RETRIABLE_ERRORS:
                # The deadline may cut the last request short: what was answered before counts.
                if deadline.has_passed and not is_answered:
                    raise
                return 0
            is_answered = True
            if not found:
                wait.topic_unknown()
            return found

        if found := deadline.poll(count, _TOPIC_PAUSE_S):
            return found
        raise UnknownTopicError([topic], "topic", self._errors.bootstrap_servers)

    def _refresh(self, topics: Sequence[str]) -> None:
        with self._errors.one_deadline(self._producer.max_block_ms / 1_000):
            self._errors.retry(partial(self._metadata.refresh_topics, topics), _TOPIC_PAUSE_S)

    def _partitions(
        self, batch: pa.RecordBatch, columns: ProducerColumns, topics: RowTopics
    ) -> Int32Array:
        """Return the partition of each row."""
        settings, counts = self._producer, self._partition_counts(topics.names)
        chosen = explicit_partitions(batch, settings.partitioner, topics, counts)
        partitions, is_chosen = chosen
        if is_chosen.any() and (partitions >= counts[topics.codes]).any():
            # The topics may have got more partitions.
            self._refresh(topics.names)
            counts = self._partition_counts(topics.names)
        require_partitions(columns, topics, counts, chosen)
        sticky = self._sticky.choose(topics.names, counts)
        if settings.ignores_keys:
            partitions = np.where(is_chosen, partitions, sticky[topics.codes].astype(np.int32))
        else:
            partitions = partitions_by_key(columns, topics, counts, chosen, sticky)
        require_sizes(
            columns,
            topics,
            partitions,
            max_size=settings.max_request_size,
            buffer_memory=settings.buffer_memory,
        )
        return partitions
