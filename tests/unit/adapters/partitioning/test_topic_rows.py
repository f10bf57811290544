"""The rows of a batch by topic, the partitions chosen for them, and their sizes to Java."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from pyspark_kafka.adapters.kafka_format.producer_columns import ProducerColumns
from pyspark_kafka.adapters.partitioning.topic_rows import (
    ExplicitPartitions,
    partitions_by_key,
    rows_by_topic,
)
from pyspark_kafka.domain.errors import NullTopicError

if TYPE_CHECKING:
    from collections.abc import Sequence

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def of(**columns: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


def by_topic(batch: pa.RecordBatch, topic: str | None = None) -> dict[str, list[int]]:
    return {name: rows.tolist() for name, rows in rows_by_topic(batch, topic)}


def some(rows: Sequence[int]) -> np.ndarray[Any, np.dtype[np.int64]]:
    found: np.ndarray[Any, np.dtype[np.int64]] = np.array(rows, np.int64)
    found.flags.writeable = False
    return found


def test_rows_keep_their_order_in_each_topic() -> None:
    """Topics come in the order in which they are named first."""
    batch = of(topic=["b", "a", "b", "c", "a", "b"])
    assert by_topic(batch) == {"b": [0, 2, 5], "a": [1, 4], "c": [3]}


def test_a_topic_that_is_given_has_all_rows() -> None:
    """The column is ignored."""
    assert by_topic(of(topic=["b", None]), "t") == {"t": [0, 1]}


def test_a_slice_has_rows_of_its_own() -> None:
    """They are counted from its beginning, and topics outside of it are none of its."""
    assert by_topic(of(topic=["a", "b", "b", "c"]).slice(1, 3)) == {"b": [0, 1], "c": [2]}
    names = pa.array(["a", "b", "c"]).dictionary_encode()
    assert by_topic(of(topic=names).slice(1, 2)) == {"b": [0], "c": [1]}


@pytest.mark.parametrize(
    "batch",
    [of(topic=["a", None]), of(topic=pa.nulls(1)), of(value=[b"v"])],
    ids=["a null", "nulls alone", "no column"],
)
def test_a_row_without_a_topic_is_an_error(batch: pa.RecordBatch) -> None:
    """A single one is enough."""
    with pytest.raises(NullTopicError):
        rows_by_topic(batch, None)


def test_no_rows_need_no_topic() -> None:
    """A batch without rows goes nowhere."""
    assert by_topic(of(value=pa.array([], pa.binary()))) == {}


def chosen(batch: pa.RecordBatch, rows: Sequence[int], partitioner: str | None = None) -> Any:
    found, is_chosen = ExplicitPartitions(batch, partitioner).of(some(rows), 4)
    return [
        partition if known else None
        for partition, known in zip(found.tolist(), is_chosen.tolist(), strict=True)
    ]


def test_the_column_says_the_partition() -> None:
    """A negative one is not taken for none."""
    batch = of(partition=pa.array([3, None, -1, 0], pa.int64()))
    assert chosen(batch, [0, 1, 2]) == [3, None, -1]


def test_without_a_column_no_partition_is_chosen() -> None:
    """The same holds for a column of Arrow's null type."""
    assert chosen(of(value=[b"v"]), [0]) == [None]
    assert chosen(of(partition=pa.nulls(1)), [0]) == [None]


def value_is_partition(batch: pa.RecordBatch, _partitions: int) -> pa.Array[Any]:
    return batch.column("value")


def test_a_partitioner_is_asked_for_the_rest() -> None:
    """It sees the rows without a partition alone, and may leave some of them."""
    batch = of(
        partition=pa.array([None, 1, None, None], pa.int32()),
        value=pa.array([2, 9, None, 3], pa.int32()),
    )
    name = f"{__name__}:value_is_partition"
    assert chosen(batch, [3, 1, 0, 2], name) == [3, 1, 2, None]
    assert chosen(batch.select(["value"]), [0, 1, 2, 3], name) == [2, 9, None, 3]


def test_sizes_are_javas() -> None:
    """Each field has its length before it, a record 21 bytes more, and its batch 61."""
    headers = pa.array([[{"key": "ab", "value": b"c"}, {"key": "d", "value": None}], None], HEADERS)
    batch = of(key=[b"k" * 64, None], value=[b"v" * 8192, b""], headers=headers)
    columns = ProducerColumns.of(batch, 0)
    first = 82 + (2 + 64) + (3 + 8192) + 1 + (1 + 2 + 1 + 1) + (1 + 1 + 1)
    second = 82 + 1 + 1 + 1
    for row, size in ((0, first), (1, second)):
        assert columns.first_oversized(some([row]), size) is None
        assert columns.first_oversized(some([row]), size - 1) == (0, size)
    assert columns.first_oversized(some([1, 0]), second) == (1, first)


def test_keys_decide_where_nothing_was_chosen() -> None:
    """Rows without a key go together to the sticky partition."""
    columns = ProducerColumns.of(of(key=[b"abc", None, b"abc", b"abc"]), 0)
    explicit = np.array([-1, -1, 1, -1], np.int32), np.array([False, False, True, False])
    placed = partitions_by_key(columns, some([3, 1, 2, 0]), explicit, 7, sticky=4)
    # 479470107 is the murmur2 of abc, by Kafka's own UtilsTest.
    assert placed.tolist() == [479470107 % 7, 4, 1, 479470107 % 7]
