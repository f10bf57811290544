import pickle
import struct
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from kernel_build.development import compile_now
from pyspark_kafka.adapters.kafka_format.encode_kernel import sum_sizes
from pyspark_kafka.adapters.kernels.kernel import Flat, kernel


@compile_now
@kernel("int64", ("const int64[]", "int32[,]"), "int64", results=3)
def added(number: int, arrays: Any, more: int) -> Any:
    one, other = arrays
    other[1, 2] += np.int32(more)
    return number + one[-1], len(other), np.uint8(more)


@compile_now
@kernel("int64")
def nothing(_number: int) -> None:
    pass


@compile_now
@kernel("int64")
def allocated(number: int) -> int:
    return int(np.zeros(number)[0])


def test_arguments_and_results():
    """Numbers, arrays of one and two dimensions in tuples, and a result for each number."""
    one, other = np.arange(4), np.zeros((2, 3), np.int32)
    one.flags.writeable = False
    assert added(7, (one, other), 2) == (10, 2, 2)
    assert added(-7, Flat((one, other)), 300) == (-4, 2, 300 - 256)
    assert other.tolist() == [[0, 0, 0], [0, 0, 302]]
    nothing(1)


def test_a_wrong_argument_is_refused():
    array = np.zeros((2, 3), np.int32)
    for arguments in (
        (1, (np.arange(4), array)),
        (1, (np.arange(4)[::2], array), 1),
        (1 << 63, (np.arange(4), array), 1),
        ("1x", (np.arange(4), array), 1),
    ):
        with pytest.raises((TypeError, ValueError, struct.error)):
            added(*arguments)


def test_code_that_needs_a_runtime_is_refused():
    with pytest.raises(RuntimeError, match="calls NRT_"):
        allocated(3)


def test_kernels_are_called_by_many_threads():
    sizes = np.arange(1_000)
    with ThreadPoolExecutor(8) as pool:
        rows = [np.arange(number) for number in range(200)]
        found = list(pool.map(lambda each: sum_sizes(sizes, each), rows))
    assert found == [number * (number - 1) // 2 for number in range(200)]


def test_a_kernel_is_pickled_by_its_name():
    assert pickle.loads(pickle.dumps(sum_sizes)) is sum_sizes  # noqa: S301  # our own
