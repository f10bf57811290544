"""The rows that go to one topic, as they are handed to librdkafka."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np

from ..kafka_format.record_blocks import read_only
from ..partitioning.murmur2 import group_by_partition, murmur2_partitions
from ..partitioning.topic_rows import NO_PARTITION

if TYPE_CHECKING:
    import pyarrow as pa

    from ..kafka_format.producer_columns import ProducerColumns

    Integers: TypeAlias = np.ndarray[Any, np.dtype[np.int32]]
    Flags: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]
    Longs: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]


@final
@dataclass(frozen=True, slots=True)
class PartitionedRows:
    """Rows of a batch that go to one topic, in their order, each with its partition.

    ``NO_PARTITION`` leaves the choice to librdkafka. Neither array can be written to.
    """

    topic: str
    batch: pa.RecordBatch
    columns: ProducerColumns
    rows: Longs
    partitions: Integers

    @property
    def is_plain(self) -> bool:
        """Whether there are keys and values only."""
        names = self.batch.schema.names
        return "timestamp" not in names and "headers" not in names

    def size(self, place: int) -> int:
        """Give the bytes of key, value and headers of one of the rows."""
        return self.columns.payload_bytes(self.rows[place : place + 1])


def grouped(part: PartitionedRows) -> PartitionedRows:
    """Put rows of one partition together, in their order.

    librdkafka then looks for a partition once instead of for each record, and what it sends
    together lies together: it takes half the time.
    """
    least, most = int(part.partitions.min()), int(part.partitions.max())
    if least == most:
        return part
    groups = group_by_partition(part.partitions - NO_PARTITION, np.arange(len(part.rows)))
    order = np.concatenate([places for _, places in groups])
    rows, partitions = read_only(part.rows[order]), read_only(part.partitions[order])
    return replace(part, rows=rows, partitions=partitions)


def place_by_key(
    part: PartitionedRows, is_chosen: Flags, partitions: int, sticky: int
) -> PartitionedRows:
    """Give rows their keys' partition where none was chosen, and ``sticky`` those without a key.

    librdkafka would do both, and takes twice the time. What it is to place, it queues elsewhere
    than what has a partition, and so brings out of order.
    """
    if is_chosen.all():
        return part
    by_key = murmur2_partitions(part.columns, partitions, sticky)[part.rows]
    found = np.where(is_chosen, part.partitions, by_key)
    return replace(part, partitions=read_only(found))
