"""The rows of a batch by the topic that they go to, and the partitions chosen for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from ...domain.errors import NullTopicError
from ..kafka_format.record_blocks import read_only
from .custom_partitioner import chosen_partitions

if TYPE_CHECKING:
    Integers: TypeAlias = np.ndarray[Any, np.dtype[np.int32]]
    Flags: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]
    Longs: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]

NO_PARTITION: Final = -1
"""Stands for one that the key is to decide."""


def rows_by_topic(batch: pa.RecordBatch, topic: str | None) -> list[tuple[str, Longs]]:
    """Give each topic, with its rows in their order; ``topic`` stands above the column.

    :raises NullTopicError: if a row names none.
    """
    if not batch.num_rows:
        return []
    if topic is not None:
        return [(topic, read_only(np.arange(batch.num_rows)))]
    if "topic" not in batch.schema.names or batch.column("topic").null_count:
        raise NullTopicError
    encoded = batch.column("topic").dictionary_encode()
    names = [str(name) for name in encoded.dictionary.to_pylist()]
    if len(names) == 1:
        return [(names[0], read_only(np.arange(batch.num_rows)))]
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    in_order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=len(names)))
    return [
        (name, read_only(rows))
        for name, rows in zip(names, np.split(in_order, ends[:-1]), strict=True)
        if len(rows)
    ]


def partitions_of(
    batch: pa.RecordBatch, rows: Longs, partitioner: str | None, partitions: int
) -> tuple[Integers, Flags]:
    """Give the partition of each of the rows, and whether one was chosen at all.

    It is that of the column, or else the partitioner's, and where neither says one
    ``NO_PARTITION``.

    :raises OptionsError: if the partitioner cannot be loaded, or does not return partitions.
    """
    found: Integers = np.full(len(rows), NO_PARTITION, np.int32)
    is_open = np.ones(len(rows), np.bool_)
    if "partition" in batch.schema.names:
        column = batch.column("partition").cast(pa.int32())
        is_open = column.is_null().to_numpy(zero_copy_only=False)[rows]
        given = column.fill_null(NO_PARTITION).to_numpy(zero_copy_only=False)
        found = given[rows]
    if partitioner is not None and is_open.any():
        chosen = chosen_partitions(partitioner, _taken(batch, rows[is_open]), partitions)
        is_chosen = chosen.is_valid().to_numpy(zero_copy_only=False)
        places = np.flatnonzero(is_open)[is_chosen]
        found[places] = chosen.drop_null().to_numpy(zero_copy_only=False)
        is_open[places] = False
    return found, ~is_open


def _taken(batch: pa.RecordBatch, rows: Longs) -> pa.RecordBatch:
    return batch if len(rows) == batch.num_rows else batch.take(pa.array(rows, pa.int64()))
