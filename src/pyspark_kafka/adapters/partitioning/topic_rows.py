"""The rows of a batch by topic, and the partitions that they ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
import pyarrow as pa

from ...domain.errors import NullTopicError, UnknownPartitionError
from ..kernels.arrays import read_only
from .custom_partitioner import custom_partitions
from .murmur2 import group_by_partition, murmur2_partitions

if TYPE_CHECKING:
    from ..kafka_format.producer_columns import ProducerColumns
    from ..kernels.arrays import BoolArray, Int32Array, Int64Array

NO_PARTITION: Final = -1
"""The key decides (``RD_KAFKA_PARTITION_UA``)."""


def require_topic(batch: pa.RecordBatch, topic: str | None) -> None:
    """Check that every row has a topic; ``topic`` overrides the column.

    :raises NullTopicError: if a row has none.
    """
    if topic is not None or not batch.num_rows:
        return
    if "topic" not in batch.schema.names or batch.column("topic").null_count:
        raise NullTopicError


def rows_by_topic(batch: pa.RecordBatch, topic: str | None) -> list[tuple[str, Int64Array]]:
    """Return each topic with its rows in their order; ``topic`` overrides the column.

    :raises NullTopicError: if a row has no topic.
    """
    if not batch.num_rows:
        return []
    rows = read_only(np.arange(batch.num_rows))
    if topic is not None:
        return [(topic, rows)]
    require_topic(batch, topic)
    encoded = batch.column("topic").dictionary_encode()
    names = [str(name) for name in encoded.dictionary.to_pylist()]
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    return [(names[code], found) for code, found in group_by_partition(codes, rows)]


@final
class ExplicitPartitions:
    """The partitions that a batch's column and a custom partitioner choose, by row."""

    def __init__(self, batch: pa.RecordBatch, partitioner: str | None) -> None:
        self._batch = batch
        self._partitioner = partitioner
        self._column: tuple[Int32Array, BoolArray] | None = None
        if "partition" in batch.schema.names:
            self._column = _explicit_column(batch.column("partition"))

    def of(self, rows: Int64Array, count: int) -> tuple[Int32Array, BoolArray]:
        """Return the partition of each of a topic's rows, and whether one was chosen.

        It is the column's, else the partitioner's for a topic of ``count`` partitions, else
        ``NO_PARTITION``.

        :raises OptionsError: if the partitioner cannot be loaded, or does not return partitions.
        """
        if self._column is None:
            partitions: Int32Array = np.full(len(rows), NO_PARTITION, np.int32)
            is_chosen: BoolArray = np.zeros(len(rows), np.bool_)
        else:
            explicit, is_explicit = self._column
            partitions, is_chosen = explicit[rows], is_explicit[rows]
        if self._partitioner is not None and not is_chosen.all():
            places = np.flatnonzero(~is_chosen)
            custom = custom_partitions(self._partitioner, self._take(rows[places]), count)
            places = places[custom.is_valid().to_numpy(zero_copy_only=False)]
            partitions[places] = custom.drop_null().to_numpy(zero_copy_only=False)
            is_chosen[places] = True
        return partitions, is_chosen

    def _take(self, rows: Int64Array) -> pa.RecordBatch:
        batch = self._batch
        return batch if len(rows) == batch.num_rows else batch.take(pa.array(rows, pa.int64()))


def _explicit_column(column: pa.Array[Any]) -> tuple[Int32Array, BoolArray]:
    # Each of Arrow's functions takes longer than a small batch takes otherwise.
    if column.type != pa.int32():
        column = column.cast(pa.int32())
    if not column.null_count:
        return column.to_numpy(), np.ones(len(column), np.bool_)
    return (
        column.fill_null(NO_PARTITION).to_numpy(zero_copy_only=False),
        column.is_valid().to_numpy(zero_copy_only=False),
    )


def require_partitions(
    topic: str,
    columns: ProducerColumns,
    rows: Int64Array,
    chosen: tuple[Int32Array, BoolArray],
    count: int,
) -> None:
    """Check the partitions that ``ExplicitPartitions`` chose for rows of a topic.

    :raises UnknownPartitionError: for the first row whose partition does not exist.
    """
    partitions, is_chosen = chosen
    invalid = np.flatnonzero(is_chosen & ((partitions < 0) | (partitions >= count)))
    if len(invalid):
        first = int(invalid[0])
        size = columns.payload_bytes(rows[first : first + 1])
        reason = f"the topic's partitions are 0 to {count - 1}"
        raise UnknownPartitionError(topic, int(partitions[first]), size, reason)


def partitions_by_key(
    columns: ProducerColumns,
    rows: Int64Array,
    chosen: tuple[Int32Array, BoolArray],
    count: int,
    sticky: int,
) -> Int32Array:
    """Return the partitions that were chosen, else from the keys, else ``sticky``."""
    partitions, is_chosen = chosen
    if is_chosen.all():
        return partitions
    by_key = murmur2_partitions(columns, rows, count, sticky)
    return np.where(is_chosen, partitions, by_key) if is_chosen.any() else by_key
