"""Which partition rows go to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2

from pyspark_kafka.adapters.kafka_format.producer_columns import ProducerColumns
from pyspark_kafka.adapters.partitioning.murmur2 import (
    MAX_PARTITIONS,
    group_by_partition,
    murmur2_partitions,
)

keys = st.none() | st.binary(max_size=9) | st.binary(max_size=300)
STICKY = 77


def partitions_of(found: list[bytes | None], partitions: int) -> list[int]:
    columns = ProducerColumns.of(pa.record_batch({"key": pa.array(found, pa.binary())}), 0)
    result = murmur2_partitions(columns, np.arange(len(found)), partitions, STICKY)
    assert result.dtype == np.int32
    return [int(partition) for partition in result]


def integers(numbers: list[int], kind: type[np.integer[Any]]) -> np.ndarray[Any, Any]:
    return np.array(numbers, kind)


@given(st.lists(keys, max_size=20), st.integers(1, 1_000))
def test_murmur2(found: list[bytes | None], partitions: int) -> None:
    """A key's hash decides, as in Java, and rows without a key go to the sticky partition."""
    assert partitions_of(found, partitions) == [
        STICKY if key is None else (murmur2(key) & 0x7FFFFFFF) % partitions for key in found
    ]


@pytest.mark.parametrize("fill", [b"\x00", b"\x7f", b"\x80", b"\xff"])
def test_each_length(fill: bytes) -> None:
    """Keys of every length are hashed as in Java, also with the highest bits set."""
    found: list[bytes | None] = [length * fill for length in range(301)]
    expected = [murmur2(key) & 0x7FFFFFFF for key in found]
    assert partitions_of(found, 2**31 - 1) == [number % (2**31 - 1) for number in expected]


def test_a_batch_without_keys() -> None:
    """Without the column, all rows go to the sticky partition."""
    columns = ProducerColumns.of(pa.record_batch({"value": pa.array([b"a", b"b"])}), 0)
    rows = integers([0, 1], np.int64)
    assert murmur2_partitions(columns, rows, 3, STICKY).tolist() == [STICKY, STICKY]


@given(st.lists(keys, min_size=1, max_size=20), st.data())
def test_some_rows(found: list[bytes | None], data: st.DataObject) -> None:
    """Rows in any order have the partitions that they have among all."""
    rows = data.draw(st.lists(st.integers(0, len(found) - 1), max_size=30))
    columns = ProducerColumns.of(pa.record_batch({"key": pa.array(found, pa.binary())}), 0)
    some = murmur2_partitions(columns, integers(rows, np.int64), 7, STICKY)
    everything = partitions_of(found, 7)
    assert some.tolist() == [everything[row] for row in rows]


@given(st.lists(st.integers(0, 9) | st.integers(0, 3_000), min_size=1, max_size=60), st.data())
@example([5, 5, 5], None)
def test_groups(partitions: list[int], data: st.DataObject | None) -> None:
    """Rows are grouped by partition, ascending, and stay in their order within each."""
    place = st.integers(0, len(partitions) - 1)
    rows = data.draw(st.lists(place, max_size=80)) if data else [2, 0, 1]
    of_rows = integers([partitions[row] for row in rows], np.int32)
    groups = group_by_partition(of_rows, integers(rows, np.int64))
    assert [(partition, found.tolist()) for partition, found in groups] == [
        (partition, [row for row in rows if partitions[row] == partition])
        for partition in sorted({partitions[row] for row in rows})
    ]


def test_groups_are_of_one_array() -> None:
    """Groups are views, not copies."""
    groups = group_by_partition(integers([0, 1, 0], np.int32), integers([0, 1, 2], np.int64))
    assert len({id(found.base) for _, found in groups}) == 1


@pytest.mark.parametrize("row", [-1, 3])
def test_rows_that_there_are_not(row: int) -> None:
    """A row that there is not is refused."""
    columns = ProducerColumns.of(pa.record_batch({"key": pa.array([b"a", b"b", b"c"])}), 0)
    with pytest.raises(IndexError, match=r"^there is no such row$"):
        murmur2_partitions(columns, integers([0, row], np.int64), 3, STICKY)


def test_a_partition_for_each_row() -> None:
    """Rows and partitions belong together."""
    with pytest.raises(ValueError, match=r"^there are 2 rows and 3 partitions$"):
        group_by_partition(integers([0, 1, 2], np.int32), integers([0, 1], np.int64))


@pytest.mark.parametrize("partition", [-2, -1, MAX_PARTITIONS, 2**31 - 1])
@pytest.mark.parametrize("other", [[], [1]])
def test_partitions_that_there_are_not(partition: int, other: list[int]) -> None:
    """A partition that no cluster has is refused, and no memory is taken for it."""
    partitions = [*other, partition]
    rows = list(range(len(partitions)))
    with pytest.raises(ValueError, match=f"^there is no partition {partition}$"):
        group_by_partition(integers(partitions, np.int32), integers(rows, np.int64))
