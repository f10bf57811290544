"""The rows of a batch, by topic and by partition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from pyspark_kafka.adapters.confluent.partitioned_rows import PartitionedRows
from pyspark_kafka.adapters.confluent.produce_kernel import uncounted_bytes
from pyspark_kafka.adapters.kafka_format.producer_columns import ProducerColumns

if TYPE_CHECKING:
    from collections.abc import Sequence

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def of(**columns: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


def some(rows: Sequence[int]) -> np.ndarray[Any, np.dtype[np.int64]]:
    found: np.ndarray[Any, np.dtype[np.int64]] = np.array(rows, np.int64)
    found.flags.writeable = False
    return found


def test_rows_of_a_partition_are_put_together() -> None:
    """In their order, those without a partition first."""
    batch = of(value=[b"%d" % number for number in range(10)])
    partitions = np.array([2, -1, 0, 2, 2, 0], np.int32)
    columns = ProducerColumns.of(batch, 0)
    part = PartitionedRows("t", batch, columns, some([9, 8, 7, 3, 2, 1]), partitions).grouped()
    assert part.rows.tolist() == [8, 7, 1, 9, 3, 2]
    assert part.partitions.tolist() == [-1, 0, 0, 2, 2, 2]


@pytest.mark.parametrize("column", ["timestamp", "headers"])
def test_plain_rows_have_keys_and_values_alone(column: str) -> None:
    """A column of timestamps or headers makes them others."""
    plain = of(key=[b"k"], value=[b"v"], topic=["t"])
    more = plain.append_column(column, pa.nulls(1))
    columns = ProducerColumns.of(plain, 0)
    assert PartitionedRows("t", plain, columns, some([0]), np.zeros(1, np.int32)).is_plain
    assert not PartitionedRows("t", more, columns, some([0]), np.zeros(1, np.int32)).is_plain


def test_what_librdkafka_does_not_count_is_counted() -> None:
    """Keys and headers, and not values."""
    headers = pa.array([[{"key": "ab", "value": b"c"}, {"key": "d", "value": None}], None], HEADERS)
    batch = of(key=[b"key", None], value=[b"value", b"v"], headers=headers)
    columns = ProducerColumns.of(batch, 0)
    assert uncounted_bytes(columns.arrays, some([0, 1])) == 3 + 2 + 1 + 1
    assert uncounted_bytes(columns.arrays, some([1])) == 0
