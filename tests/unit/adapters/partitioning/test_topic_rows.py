"""The rows of a batch by topic, the partitions chosen for them, and their sizes to Java."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from pyspark_kafka.adapters.kafka_format.producer_columns import ProducerColumns
from pyspark_kafka.adapters.partitioning.row_partitioner import require_sizes
from pyspark_kafka.adapters.partitioning.topic_rows import (
    RowTopics,
    custom_partitions,
    explicit_partitions,
    partitions_by_key,
    require_partitions,
)
from pyspark_kafka.domain.errors import OptionsError
from pyspark_kafka.domain.options.settings_table import ROUND_ROBIN
from pyspark_kafka.domain.writing.errors import (
    NullTopicError,
    RecordTooLargeError,
    UnknownPartitionError,
)

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def of(**columns: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


def by_topic(batch: pa.RecordBatch, topic: str | None = None) -> dict[str, list[int]]:
    topics = RowTopics.of(batch, topic)
    return {
        name: np.flatnonzero(topics.codes == code).tolist()
        for code, name in enumerate(topics.names)
    }


def test_rows_keep_their_order_in_each_topic():
    batch = of(topic=["b", "a", "b", "c", "a", "b"])
    assert by_topic(batch) == {"b": [0, 2, 5], "a": [1, 4], "c": [3]}
    assert list(by_topic(batch)) == ["b", "a", "c"]


def test_a_topic_that_is_given_has_all_rows():
    assert by_topic(of(topic=["b", None]), "t") == {"t": [0, 1]}


def test_a_slice_has_rows_of_its_own():
    assert by_topic(of(topic=["a", "b", "b", "c"]).slice(1, 3)) == {"b": [0, 1], "c": [2]}
    names = pa.array(["a", "b", "c"]).dictionary_encode()
    assert by_topic(of(topic=names).slice(1, 2)) == {"b": [0], "c": [1]}


@pytest.mark.parametrize(
    "batch",
    [of(topic=["a", None]), of(topic=pa.nulls(1)), of(value=[b"v"])],
    ids=["a null", "nulls alone", "no column"],
)
def test_a_row_without_a_topic_is_an_error(batch):
    with pytest.raises(NullTopicError):
        RowTopics.of(batch, None)


def test_no_rows_need_no_topic():
    assert by_topic(of(value=pa.array([], pa.binary()))) == {}
    assert by_topic(of(value=pa.array([], pa.binary())), "t") == {}


def chosen(batch: pa.RecordBatch, partitioner: str | None = None) -> Any:
    topics = RowTopics.of(batch, None if "topic" in batch.schema.names else "t")
    counts = np.arange(4, 4 + len(topics.names))
    found, is_chosen = explicit_partitions(batch, partitioner, topics, counts)
    return [
        partition if known else None
        for partition, known in zip(found.tolist(), is_chosen.tolist(), strict=True)
    ]


def test_the_column_says_the_partition():
    batch = of(partition=pa.array([3, None, -1, 0], pa.int64()))
    assert chosen(batch) == [3, None, -1, 0]


def test_without_a_column_no_partition_is_chosen():
    assert chosen(of(value=[b"v"])) == [None]
    assert chosen(of(partition=pa.nulls(1))) == [None]


def value_is_partition(batch: pa.RecordBatch, _partitions: int) -> pa.Array[Any]:
    return batch.column("value")


def test_a_partitioner_is_asked_for_the_rest():
    """A partitioner sees only rows without a partition, and may leave some of them."""
    batch = of(
        partition=pa.array([None, 1, None, None], pa.int32()),
        value=pa.array([2, 9, None, 3], pa.int32()),
    )
    name = f"{__name__}:value_is_partition"
    assert chosen(batch, name) == [2, 1, None, 3]
    assert chosen(batch.select(["value"]), name) == [2, 9, None, 3]


def rows_and_partitions(batch: pa.RecordBatch, partitions: int) -> pa.Array[Any]:
    return pa.array([100 * batch.num_rows + partitions] * batch.num_rows, pa.int32())


def test_a_partitioner_is_asked_for_each_topic():
    batch = of(
        topic=["a", "b", "a", "a", "c"], partition=pa.array([None, None, 1, None, 2], pa.int32())
    )
    name = f"{__name__}:rows_and_partitions"
    assert chosen(batch, name) == [204, 105, 1, 204, 2]


def test_partitions_have_to_exist_in_their_topic():
    batch = of(topic=["a", "b", "a", "b"], value=[b"1", b"22", b"333", b"4444"])
    columns, topics = ProducerColumns.of(batch, 0), RowTopics.of(batch, None)
    counts = np.array([1, 3])
    partitions, is_chosen = np.array([7, 2, 1, 3], np.int32), np.array([False, True, True, True])
    with pytest.raises(UnknownPartitionError, match="the topic's partitions are 0 to 0") as caught:
        require_partitions(columns, topics, counts, (partitions, is_chosen))
    assert (caught.value.topic, caught.value.partition, caught.value.size) == ("a", 1, 3)
    require_partitions(columns, topics, counts + 1, (partitions, is_chosen))
    require_partitions(columns, topics, counts, (partitions, np.zeros(4, np.bool_)))


def test_sizes_are_javas():
    """Each field has its length before it, a record 21 bytes more, and its batch 61."""
    headers = pa.array([[{"key": "ab", "value": b"c"}, {"key": "d", "value": None}], None], HEADERS)
    batch = of(key=[b"k" * 64, None], value=[b"v" * 8192, b""], headers=headers)
    first = 82 + (2 + 64) + (3 + 8192) + 1 + (1 + 2 + 1 + 1) + (1 + 1 + 1)
    second = 82 + 1 + 1 + 1
    for row, size in ((0, first), (1, second)):
        columns = ProducerColumns.of(batch.slice(row, 1), 0)
        assert columns.first_oversized(size) is None
        assert columns.first_oversized(size - 1) == (0, size)
    columns = ProducerColumns.of(batch.take(pa.array([1, 0])), 0)
    assert columns.first_oversized(second) == (1, first)


def test_a_record_that_is_too_large_is_named():
    batch = of(topic=["a", "b", "b"], value=[b"v", b"v" * 1_000, b"v" * 2_000])
    columns, topics = ProducerColumns.of(batch, 0), RowTopics.of(batch, None)
    for partition in (4, None):
        partitions = np.array([0, -1 if partition is None else partition, 0], np.int32)
        with pytest.raises(RecordTooLargeError, match=r"the max\.request\.size") as caught:
            require_sizes(columns, topics, partitions, max_size=1_000)
        error = caught.value
        assert (error.topic, error.partition, error.size) == ("b", partition, 1_000)
    require_sizes(columns, topics, partitions, max_size=3_000)


def test_keys_decide_where_nothing_was_chosen():
    batch = of(key=[b"abc", None, b"abc", b"abc"])
    columns, topics = ProducerColumns.of(batch, 0), RowTopics.of(batch, "t")
    explicit = np.array([-1, -1, 1, -1], np.int32), np.array([False, False, True, False])
    placed = partitions_by_key(columns, topics, np.array([7]), explicit, np.array([4]))
    # 479470107 is the murmur2 of abc, by Kafka's own UtilsTest.
    assert placed.tolist() == [479470107 % 7, 4, 1, 479470107 % 7]


if TYPE_CHECKING:
    from collections.abc import Callable

BATCH = pa.RecordBatch.from_pydict({"value": [b"a", b"bb", b"ccc"]})
NO_FUNCTION = 3


def last(batch: pa.RecordBatch, partitions: int) -> pa.Array[Any]:
    return pa.array([partitions - 1, None, batch.num_rows], pa.int32())


class Nested:
    """A class that a function is part of."""

    first = staticmethod(lambda batch, _: pa.array([0] * batch.num_rows, pa.int32()))


def longs(_batch: pa.RecordBatch, _partitions: int) -> pa.Array[Any]:
    return pa.array([0, 0, 0], pa.int64())


def too_few(_batch: pa.RecordBatch, _partitions: int) -> pa.Array[Any]:
    return pa.array([0, 0], pa.int32())


def numbers(_batch: pa.RecordBatch, _partitions: int) -> list[int]:
    return [0, 0, 0]


def failing(_batch: pa.RecordBatch, _partitions: int) -> list[int]:
    raise ZeroDivisionError


def named(function: Callable[..., object]) -> str:
    return f"{__name__}:{function.__name__}"


def test_turns_go_on_from_batch_to_batch():
    found = [
        partition
        for _ in range(4)
        for partition in custom_partitions(ROUND_ROBIN, BATCH, 5).to_pylist()
    ]
    first = found[0] or 0
    assert found == [(first + number) % 5 for number in range(12)]


def test_the_partitions_of_the_turns_are_an_array_like_a_functions():
    assert custom_partitions(ROUND_ROBIN, BATCH, 1) == pa.array([0, 0, 0], pa.int32())


def test_a_function_is_given_the_batch_and_the_number():
    assert custom_partitions(named(last), BATCH, 8) == pa.array([7, None, 3], pa.int32())


def test_a_function_may_be_part_of_something():
    assert custom_partitions(f"{__name__}:Nested.first", BATCH, 8).to_pylist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("no.such.module:f", "ModuleNotFoundError: No module named 'no'"),
        (f"{__name__}:nothing", "AttributeError: .* has no attribute 'nothing'"),
        (f"{__name__}:NO_FUNCTION", "is not a function"),
        (f"{__name__}:pa.array", "TypeError: 'pa' is another module"),
    ],
)
def test_a_function_that_cannot_be_loaded_is_an_error_of_options(name, said):
    with pytest.raises(OptionsError, match=f"'kafka.partitioner.class': '{name}' .*{said}"):
        custom_partitions(name, BATCH, 1)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (longs, "returned Int64Array of int64 with 3"),
        (too_few, "returned Int32Array of int32 with 2"),
        (numbers, "returned list"),
    ],
)
def test_what_a_function_gives_is_checked(function, said):
    with pytest.raises(OptionsError, match=said):
        custom_partitions(named(function), BATCH, 1)


def test_what_a_function_raises_is_raised():
    with pytest.raises(ZeroDivisionError):
        custom_partitions(named(failing), BATCH, 1)
