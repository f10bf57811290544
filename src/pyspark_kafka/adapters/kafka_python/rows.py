"""The rows of a batch that become record batches, by their partitions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias, final

import numpy as np

from ...domain.errors import UnknownTopicError
from ...domain.topic_partition import TopicPartition
from ..partitioning.murmur2 import RowGroups
from ..partitioning.row_partitioner import RowPartitioner, TopicWait
from .failures import RETRIABLE_ERRORS

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from ...domain.continuous.epochs import Output
    from ...domain.options.client_settings import ProducerSettings
    from ..kafka_format.producer_columns import ProducerColumns
    from ..kernels.arrays import Int64Array
    from .cluster_metadata import ClusterMetadata
    from .failures import ErrorMapper

_TOPIC_PAUSE_S: Final = 0.1


@final
@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Some rows of columns, which become a batch; the caller tracks the ``output``."""

    columns: ProducerColumns
    rows: Int64Array
    payload_bytes: int
    max_bytes: int
    """An upper bound of the bytes of the encoded records, without compression."""

    output: Output | None = None

    @classmethod
    def of(cls, columns: ProducerColumns, rows: Int64Array, output: Output | None = None) -> Rows:
        """Return rows with their size."""
        payloads, bounds = columns.measure_groups(rows, np.array([len(rows)]))
        return cls(columns, rows, int(payloads[0]), int(bounds[0]), output)

    @classmethod
    def of_groups(cls, columns: ProducerColumns, groups: RowGroups) -> list[Rows]:
        """Return the rows of each group with their size."""
        payloads, bounds = columns.measure_groups(groups.rows, groups.ends)
        found = []
        start = 0
        for end, payload, bound in zip(
            groups.ends.tolist(), payloads.tolist(), bounds.tolist(), strict=True
        ):
            found.append(cls(columns, groups.rows[start:end], payload, bound))
            start = end
        return found

    def __len__(self) -> int:
        return len(self.rows)

    def first_record_bytes(self) -> int:
        """Return ``payload_bytes`` of the first row."""
        return self.columns.payload_bytes(self.rows[:1])

    def halves(self) -> tuple[Rows, Rows]:
        """Return the first and the second half."""
        half = len(self.rows) // 2
        return (
            Rows.of(self.columns, self.rows[:half], self.output),
            Rows.of(self.columns, self.rows[half:], self.output),
        )


PartitionRows: TypeAlias = tuple[TopicPartition, Rows]


@final
class BatchPartitioner:
    """Divides batches into the rows of each partition."""

    def __init__(
        self, metadata: ClusterMetadata, errors: ErrorMapper, producer: ProducerSettings
    ) -> None:
        """Take the metadata of the cluster that is written to."""
        self._metadata = metadata
        self._errors = errors
        self._producer = producer
        self._rows = RowPartitioner(producer, buffer_memory=producer.buffer_memory)

    def partition(self, batch: pa.RecordBatch, topic: str | None) -> list[PartitionRows]:
        """Return the rows of each partition, by topic; raises as ``RowPartitioner.partition``."""
        found = self._rows.partition(batch, topic, self._partition_counts)
        topics, groups = found.topics, RowGroups.of(found.topics.codes, found.partitions)
        names = [topics.names[code] for code in topics.codes[groups.first_rows].tolist()]
        numbers = found.partitions[groups.first_rows].tolist()
        rows = Rows.of_groups(found.columns, groups)
        self._rows.add_bytes(zip(names, (each.payload_bytes for each in rows), strict=True))
        return list(zip(map(TopicPartition, names, numbers), rows, strict=True))

    def change_sticky_partitions(self) -> None:
        """Choose other partitions for rows without a key: the rows before were sent."""
        self._rows.change_sticky_partitions()

    def _partition_counts(self, topics: Sequence[str], *, refresh: bool = False) -> list[int]:
        self._metadata.in_use.add(topics)
        if refresh:
            with self._errors.one_deadline(self._producer.max_block_ms / 1_000):
                self._errors.retry(self._metadata.refresh, _TOPIC_PAUSE_S)
        known = (self._metadata.known_partition_count(topic) for topic in topics)
        return [
            count or self._partition_count(topic)
            for topic, count in zip(topics, known, strict=True)
        ]

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
                # The deadline may cut the last request short: an earlier answer counts.
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
