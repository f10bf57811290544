from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from pyspark_kafka.adapters.partitioning.topic_rows import custom_partitions
from pyspark_kafka.domain.errors import OptionsError
from pyspark_kafka.domain.options.settings_table import ROUND_ROBIN

if TYPE_CHECKING:
    from collections.abc import Callable

BATCH = pa.RecordBatch.from_pydict({"value": [b"a", b"bb", b"ccc"]})
NO_FUNCTION = 3


def last(batch: pa.RecordBatch, partitions: int) -> pa.Array[Any]:
    return pa.array([partitions - 1, None, batch.num_rows], pa.int32())


class Nested:
    """What a function may be part of."""

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
