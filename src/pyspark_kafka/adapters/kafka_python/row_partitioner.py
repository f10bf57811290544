"""The partitions to which the rows of Arrow batches are written."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final, TypeAlias, final

import numpy as np

from ...domain.errors import UnknownTopicError
from ...domain.topic_partition import TopicPartition
from ...ports.clock import epoch_ms
from ...ports.deadline import Deadline
from ..kafka_format.producer_columns import ProducerColumns
from ..kafka_format.size_limits import require_sizes
from ..partitioning.murmur2 import group_by_partition
from ..partitioning.topic_rows import (
    ExplicitPartitions,
    partitions_by_key,
    require_partitions,
    rows_by_topic,
)
from .failures import RETRIABLE_ERRORS

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from ...domain.kafka_settings import ProducerSettings
    from ..kernels.arrays import Int32Array, Int64Array
    from .cluster_metadata import ClusterMetadata
    from .failures import ErrorMapper

    PartitionRows: TypeAlias = tuple[TopicPartition, Int64Array]

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
        self._sticky = random.randrange(1 << 16)  # noqa: S311  # no secret

    def partition(
        self, batch: pa.RecordBatch, topic: str | None
    ) -> Iterator[tuple[ProducerColumns, list[PartitionRows]]]:
        """Yield the rows of each topic by partition, with the columns of all rows.

        Waits for topics that are about to be created. ``topic`` overrides the column.

        :raises UnknownTopicError: if a topic does not exist.
        :raises NullTopicError: if a row has no topic.
        :raises InvalidRecordError: if a row cannot become a record.
        :raises RecordDeliveryError: if a partition does not exist, or a record is too large.
        """
        columns = ProducerColumns.of(batch, epoch_ms())
        explicit = ExplicitPartitions(batch, self._producer.partitioner)
        by_topic = rows_by_topic(batch, topic)
        self._metadata.add_topics(name for name, _ in by_topic)
        for name, rows in by_topic:
            partitions = self._partitions_of(name, columns, rows, explicit)
            yield (
                columns,
                [
                    (TopicPartition(name, number), of_partition)
                    for number, of_partition in group_by_partition(partitions, rows)
                ],
            )

    def _partition_count(self, topic: str) -> int:
        """Return the number of partitions of a topic, which may be about to be created."""
        deadline = Deadline.after(self._producer.max_block_ms / 1_000)
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
            return found

        if found := deadline.poll(count, _TOPIC_PAUSE_S):
            return found
        raise UnknownTopicError([topic], "topic", self._errors.bootstrap_servers)

    def _partitions_of(
        self, topic: str, columns: ProducerColumns, rows: Int64Array, explicit: ExplicitPartitions
    ) -> Int32Array:
        """Return the partition of each of a topic's rows."""
        settings, count = self._producer, self._partition_count(topic)
        self._sticky += 1
        sticky = self._sticky % count
        partitions, is_chosen = explicit.of(rows, count)
        require_partitions(topic, columns, rows, (partitions, is_chosen), count)
        if settings.ignores_keys:
            partitions = np.where(is_chosen, partitions, np.int32(sticky))
        else:
            partitions = partitions_by_key(columns, rows, (partitions, is_chosen), count, sticky)
        require_sizes(
            topic,
            columns,
            rows,
            partitions,
            max_size=settings.max_request_size,
            buffer_memory=settings.buffer_memory,
        )
        return partitions
