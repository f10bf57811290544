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
    RowGroups,
    murmur2_partitions,
)

keys = st.none() | st.binary(max_size=9) | st.binary(max_size=300)
STICKY = 77


def integers(numbers: list[int], kind: type[np.integer[Any]]) -> np.ndarray[Any, Any]:
    return np.array(numbers, kind)


def partitions_of(found: list[bytes | None], partitions: int) -> list[int]:
    columns = ProducerColumns.of(pa.record_batch({"key": pa.array(found, pa.binary())}), 0)
    topics = integers([0] * len(found), np.int32)
    counts, sticky = integers([partitions], np.int64), integers([STICKY], np.int64)
    result = murmur2_partitions(columns, topics, counts, sticky)
    assert result.dtype == np.int32
    return [int(partition) for partition in result]


@given(st.lists(keys, max_size=20), st.integers(1, 1_000))
def test_murmur2(found, partitions):
    """A key's hash decides, as in Java, and rows without a key go to the sticky partition."""
    assert partitions_of(found, partitions) == [
        STICKY if key is None else (murmur2(key) & 0x7FFFFFFF) % partitions for key in found
    ]


@pytest.mark.parametrize("fill", [b"\x00", b"\x7f", b"\x80", b"\xff"])
def test_keys_of_every_length_are_hashed_as_in_java_also_with_the_highest_bits_set(fill):
    found: list[bytes | None] = [length * fill for length in range(301)]
    expected = [murmur2(key) & 0x7FFFFFFF for key in found]
    assert partitions_of(found, 2**31 - 1) == [number % (2**31 - 1) for number in expected]


def test_without_the_column_all_rows_go_to_the_sticky_partition_of_their_topic():
    columns = ProducerColumns.of(pa.record_batch({"value": pa.array([b"a", b"b"])}), 0)
    topics, counts = integers([1, 0], np.int32), integers([3, 5], np.int64)
    assert murmur2_partitions(columns, topics, counts, counts - 1).tolist() == [4, 2]


@given(st.lists(st.tuples(keys, st.integers(0, 2)), max_size=20))
def test_topics_have_partitions_of_their_own(rows):
    """A row has the partition that it would have if all were of its topic."""
    counts, sticky = [1, 7, 300], [0, 4, 200]
    found, topics = [key for key, _ in rows], [topic for _, topic in rows]
    columns = ProducerColumns.of(pa.record_batch({"key": pa.array(found, pa.binary())}), 0)
    partitions = murmur2_partitions(
        columns, integers(topics, np.int32), integers(counts, np.int64), integers(sticky, np.int64)
    )
    assert partitions.tolist() == [
        sticky[topic] if key is None else (murmur2(key) & 0x7FFFFFFF) % counts[topic]
        for key, topic in rows
    ]


def groups_of(topics: list[int], partitions: list[int]) -> list[list[int]]:
    groups = RowGroups.of(integers(topics, np.int32), integers(partitions, np.int32))
    found = [rows.tolist() for rows in np.split(groups.rows, groups.ends[:-1])]
    assert groups.first_rows.tolist() == [rows[0] for rows in found if rows]
    return found if topics else []


numbers = st.integers(-1, 9) | st.integers(0, 3_000)


@given(st.lists(st.tuples(st.integers(0, 3), numbers), max_size=60))
@example([(0, 5), (0, 5), (0, 5)])
@example([(2, 5), (0, 5), (2, 5)])
@example([(1, 6), (1, 5), (1, 6)])
def test_groups(rows):
    """Rows are grouped by topic, then by partition, and stay in their order within each."""
    assert groups_of([topic for topic, _ in rows], [partition for _, partition in rows]) == [
        [row for row, each in enumerate(rows) if each == group] for group in sorted(set(rows))
    ]


@pytest.mark.parametrize("topic", [-1, 2])
def test_topics_that_there_are_not(topic):
    columns = ProducerColumns.of(pa.record_batch({"key": pa.array([b"a", b"b"])}), 0)
    counts = integers([1, 1], np.int64)
    with pytest.raises(IndexError, match=r"^there is no such row$"):
        murmur2_partitions(columns, integers([0, topic], np.int32), counts, counts - 1)


def test_a_topic_for_each_row():
    columns = ProducerColumns.of(pa.record_batch({"key": pa.array([b"a", b"b"])}), 0)
    counts = integers([1], np.int64)
    with pytest.raises(IndexError, match=r"^there is no such row$"):
        murmur2_partitions(columns, integers([0], np.int32), counts, counts - 1)
    with pytest.raises(ValueError, match=r"^there are 2 topics and 3 partitions$"):
        RowGroups.of(integers([0, 0], np.int32), integers([0, 1, 2], np.int32))


@pytest.mark.parametrize("partition", [-3, -2, MAX_PARTITIONS, 2**31 - 1])
@pytest.mark.parametrize("other", [[], [1]])
def test_partitions_that_there_are_not(partition, other):
    partitions = [*other, partition]
    topics = integers([0] * len(partitions), np.int32)
    with pytest.raises(ValueError, match=f"^there is no partition {partition}$"):
        RowGroups.of(topics, integers(partitions, np.int32))
