from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pyspark_kafka.adapters.confluent.partitioned_rows import PartitionedRows
from pyspark_kafka.adapters.confluent.produce_kernel import uncounted_bytes
from pyspark_kafka.adapters.kafka_format.producer_columns import ProducerColumns
from pyspark_kafka.adapters.partitioning.row_partitioner import PartitionedColumns
from pyspark_kafka.adapters.partitioning.topic_rows import RowTopics

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def of(**columns: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


def some(rows: Sequence[int]) -> np.ndarray[Any, np.dtype[np.int64]]:
    found: np.ndarray[Any, np.dtype[np.int64]] = np.array(rows, np.int64)
    found.flags.writeable = False
    return found


def rows_of(batch: pa.RecordBatch, topics: list[str], partitions: list[int]) -> PartitionedRows:
    named = RowTopics.of(pa.record_batch({"topic": topics}), None)
    columns = ProducerColumns.of(batch, 0)
    found = PartitionedColumns(columns, named, np.array(partitions, np.int32))
    return PartitionedRows.of(batch, found)


def test_rows_of_a_partition_are_put_together():
    batch = of(value=[b"%d" % number for number in range(7)])
    rows = rows_of(batch, ["t"] * 7, [2, -1, 0, 2, 2, 0, 0])
    assert rows.rows.tolist() == [1, 2, 5, 6, 0, 3, 4]
    assert rows.partitions.tolist() == [-1, 0, 0, 0, 2, 2, 2]
    assert (rows.groups, rows.topics, rows.topic_ends.tolist()) == (3, ["t"], [7])


def test_rows_of_a_topic_are_put_together():
    batch = of(key=[b"k", None, b"k", None], value=[b"v", b"vv", b"vvv", b"vvvv"])
    rows = rows_of(batch, ["u", "t", "u", "t"], [1, 0, 0, 0])
    assert rows.rows.tolist() == [2, 0, 1, 3]
    assert [rows.topic(place) for place in range(4)] == ["u", "u", "t", "t"]
    assert [rows.size(place) for place in range(4)] == [4, 2, 2, 4]
    assert (rows.groups, rows.topic_bytes.tolist(), rows.payload_bytes) == (3, [6, 6], 12)


@pytest.mark.parametrize("column", ["timestamp", "headers"])
def test_plain_rows_have_keys_and_values_alone(column):
    plain = of(key=[b"k"], value=[b"v"], topic=["t"])
    more = plain.append_column(column, pa.nulls(1))
    assert rows_of(plain, ["t"], [0]).is_plain
    assert not rows_of(more, ["t"], [0]).is_plain


def test_what_librdkafka_does_not_count_is_counted():
    headers = pa.array([[{"key": "ab", "value": b"c"}, {"key": "d", "value": None}], None], HEADERS)
    batch = of(key=[b"key", None], value=[b"value", b"v"], headers=headers)
    columns = ProducerColumns.of(batch, 0)
    assert uncounted_bytes(columns.arrays, some([0, 1])) == 3 + 2 + 1 + 1
    assert uncounted_bytes(columns.arrays, some([1])) == 0
