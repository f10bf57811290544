"""The topics of a batch's rows, and the partitions that they ask for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

import numpy as np
import pyarrow as pa

from ...domain.writing.errors import NullTopicError, UnknownPartitionError
from ..kernels.arrays import BoolArray, Int32Array
from .murmur2 import murmur2_partitions

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..kafka_format.producer_columns import ProducerColumns
    from ..kernels.arrays import Int64Array
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING

from ...domain.errors import OptionsError
from ...domain.options.option import PREFIX
from ...domain.options.settings_table import ROUND_ROBIN
from ..named_functions import named_function

NO_PARTITION: Final = -1
"""The key decides (``RD_KAFKA_PARTITION_UA``)."""

Chosen: TypeAlias = tuple[Int32Array, BoolArray]
"""The partition of each row, and whether one was chosen; ``NO_PARTITION`` where not."""


def require_topic(batch: pa.RecordBatch, topic: str | None) -> None:
    """Check that every row has a topic; ``topic`` overrides the column.

    :raises NullTopicError: if a row has none.
    """
    if topic is not None or not batch.num_rows:
        return
    if "topic" not in batch.schema.names or batch.column("topic").null_count:
        raise NullTopicError


@final
@dataclass(frozen=True, slots=True)
class RowTopics:
    """The topic of each row of a batch."""

    names: Sequence[str]
    """The topics, in the order in which rows name them first."""

    codes: Int32Array
    """For each row, the place of its topic in ``names``."""

    @classmethod
    def of(cls, batch: pa.RecordBatch, topic: str | None) -> RowTopics:
        """Return the topics of the column, or ``topic``, which overrides it.

        :raises NullTopicError: if a row has no topic.
        """
        require_topic(batch, topic)
        if topic is not None or not batch.num_rows:
            names = [topic] if topic is not None and batch.num_rows else []
            return cls(names, np.zeros(batch.num_rows, np.int32))
        column = batch.column("topic")
        if isinstance(column, pa.DictionaryArray):
            # A slice keeps the names of rows outside of it.
            column = column.dictionary_decode()
        encoded = column.dictionary_encode()
        names = [str(name) for name in encoded.dictionary.to_pylist()]
        return cls(names, encoded.indices.to_numpy(zero_copy_only=False))

    def rows_of_each(self, rows: Int64Array) -> Iterator[tuple[int, Int64Array]]:
        """Yield the code of each topic that these rows have, with those of them that have it."""
        ordered = rows[np.argsort(self.codes[rows], kind="stable")]
        codes = self.codes[ordered]
        for of_topic in np.split(ordered, np.flatnonzero(np.diff(codes)) + 1):
            yield int(self.codes[of_topic[0]]), of_topic


def explicit_partitions(
    batch: pa.RecordBatch, partitioner: str | None, topics: RowTopics, counts: Int64Array
) -> Chosen:
    """Return the partition of each row, and whether one was chosen.

    It is the column's, else the partitioner's for the topic's number of partitions in ``counts``,
    else ``NO_PARTITION``.

    :raises OptionsError: if the partitioner cannot be loaded, or does not return partitions.
    """
    partitions, is_chosen = _column_partitions(batch)
    if partitioner is None or is_chosen.all():
        return partitions, is_chosen
    partitions, is_chosen = partitions.copy(), is_chosen.copy()
    for code, rows in topics.rows_of_each(np.flatnonzero(~is_chosen)):
        some = batch if len(rows) == batch.num_rows else batch.take(pa.array(rows, pa.int64()))
        custom = custom_partitions(partitioner, some, int(counts[code]))
        found = rows[custom.is_valid().to_numpy(zero_copy_only=False)]
        partitions[found] = custom.drop_null().to_numpy(zero_copy_only=False)
        is_chosen[found] = True
    return partitions, is_chosen


def _column_partitions(batch: pa.RecordBatch) -> Chosen:
    rows = batch.num_rows
    if "partition" not in batch.schema.names:
        return np.full(rows, NO_PARTITION, np.int32), np.zeros(rows, np.bool_)
    column: pa.Array[Any] = batch.column("partition")
    # Each of Arrow's functions takes longer than a small batch takes otherwise.
    if column.type != pa.int32():
        column = column.cast(pa.int32())
    if not column.null_count:
        return column.to_numpy(), np.ones(rows, np.bool_)
    return (
        column.fill_null(NO_PARTITION).to_numpy(zero_copy_only=False),
        column.is_valid().to_numpy(zero_copy_only=False),
    )


def require_partitions(
    columns: ProducerColumns, topics: RowTopics, counts: Int64Array, chosen: Chosen
) -> None:
    """Check the partitions that ``explicit_partitions`` chose.

    :raises UnknownPartitionError: for the first row whose partition does not exist.
    """
    partitions, is_chosen = chosen
    if not is_chosen.any():
        return
    invalid = is_chosen & ((partitions < 0) | (partitions >= counts[topics.codes]))
    if invalid.any():
        row = int(invalid.argmax())
        code = topics.codes[row]
        raise UnknownPartitionError(
            topics.names[code],
            int(partitions[row]),
            columns.payload_bytes(np.array([row])),
            f"the topic's partitions are 0 to {counts[code] - 1}",
        )


def partitions_by_key(
    columns: ProducerColumns,
    topics: RowTopics,
    counts: Int64Array,
    chosen: Chosen,
    sticky: Int64Array,
) -> Int32Array:
    """Return the partitions that were chosen, else from the keys, else the topic's ``sticky``."""
    partitions, is_chosen = chosen
    if is_chosen.all():
        return partitions
    by_key = murmur2_partitions(columns, topics.codes, counts, sticky)
    return np.where(is_chosen, partitions, by_key) if is_chosen.any() else by_key


_OPTION: Final = f"{PREFIX}partitioner.class"


@final
class _Counter:
    """A counter that threads share."""

    def __init__(self) -> None:
        self._next = 0
        self._lock = Lock()

    def take(self, count: int) -> int:
        """Advance by ``count``, and return the number before."""
        with self._lock:
            first = self._next
            self._next += count
            return first


_rows: Final = _Counter()


def custom_partitions(
    partitioner: str, batch: pa.RecordBatch, partitions: int
) -> pa.Array[pa.Int32Scalar]:
    """Return the partition of each row of one topic, null where the key decides.

    ``partitioner`` is ``ROUND_ROBIN``, which continues where this process stopped, or a function
    as ``module:function``. The function is called with the batch and the topic's number of
    ``partitions``; its exceptions are raised.

    :raises OptionsError: if the function cannot be loaded, or does not return an array of int32
        with a value for each row.
    """
    if partitioner == ROUND_ROBIN:
        numbers = _rows.take(batch.num_rows) + np.arange(batch.num_rows)
        return pa.array(numbers % partitions, pa.int32())
    found = _function(partitioner)(batch, partitions)
    if not isinstance(found, pa.Int32Array) or len(found) != batch.num_rows:
        problem = (
            f"Option '{_OPTION}': '{partitioner}' must return an Arrow array of int32 with "
            f"{batch.num_rows} values, one for each row, but returned {_describe(found)}"
        )
        raise OptionsError([problem])
    return found


@lru_cache
def _function(name: str) -> Callable[[pa.RecordBatch, int], object]:
    try:
        return named_function(name)
    except ValueError as error:
        raise OptionsError([f"Option '{_OPTION}': {error}"]) from None


def _describe(found: object) -> str:
    if isinstance(found, (pa.Array, pa.ChunkedArray)):
        return f"{type(found).__name__} of {found.type} with {len(found)}"
    return type(found).__name__
