"""The rows of a batch, as librdkafka gets them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from ..partitioning.murmur2 import RowGroups

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from ..kafka_format.producer_columns import ProducerColumns
    from ..kernels.arrays import Int32Array, Int64Array
    from ..partitioning.topic_rows import RowTopics


@final
@dataclass(frozen=True, slots=True)
class PartitionedRows:
    """The rows of a batch, by topic and partition.

    ``NO_PARTITION`` leaves the choice to librdkafka. No array can be written to.
    """

    batch: pa.RecordBatch
    columns: ProducerColumns
    rows: Int64Array
    partitions: Int32Array
    """The partition of each of ``rows``."""

    groups: int
    """The number of different partitions."""

    topics: Sequence[str]
    """Those that rows are for, in the order of their rows."""

    topic_ends: Int64Array
    """Where the rows of each topic end in ``rows``."""

    topic_bytes: Int64Array
    """The bytes of the keys, values and headers of each topic's rows."""

    @classmethod
    def of(
        cls,
        batch: pa.RecordBatch,
        columns: ProducerColumns,
        topics: RowTopics,
        partitions: Int32Array,
    ) -> PartitionedRows:
        """Put the rows of each partition together, in their order.

        librdkafka then looks up a partition once instead of for each record, and what it sends
        together is adjacent in memory: it takes half the time.
        """
        groups = RowGroups.of(topics.codes, partitions)
        rows = groups.rows
        ends: Int64Array = np.cumsum(np.bincount(topics.codes, minlength=len(topics.names)))
        topic_bytes, _ = columns.measure_groups(rows, ends)
        return cls(
            batch,
            columns,
            rows,
            partitions[rows],
            len(groups.ends),
            topics.names,
            ends,
            topic_bytes,
        )

    @property
    def is_plain(self) -> bool:
        """Whether there are keys and values only."""
        names = self.batch.schema.names
        return "timestamp" not in names and "headers" not in names

    @property
    def payload_bytes(self) -> int:
        """The bytes of all keys, values and headers."""
        return int(self.topic_bytes.sum())

    def topic(self, place: int) -> str:
        """Return the topic of one of the rows."""
        return self.topics[int(np.searchsorted(self.topic_ends, place, "right"))]

    def size(self, place: int) -> int:
        """Return the bytes of key, value and headers of one of the rows."""
        return self.columns.payload_bytes(self.rows[place : place + 1])
