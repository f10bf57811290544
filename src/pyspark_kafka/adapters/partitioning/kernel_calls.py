"""The kernels that choose partitions and group rows by them, with the arguments that they take."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..kafka_format.kernel_calls import ROWS, producer_arrays
from ..kernels.arrays import read_only
from ..kernels.kernel_call import KernelCall
from . import murmur2

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..kernels.arrays import Int32Array, Int64Array


def kernel_calls() -> Iterator[KernelCall]:
    """Yield all kernels of this folder."""
    hashed: Int32Array = np.empty(0, np.int32)
    ends: Int64Array = np.empty(0, np.int64)
    numbers = read_only(hashed)
    keys = producer_arrays()[1]
    yield KernelCall(murmur2.partition_keys, (keys, numbers, ROWS, ROWS, hashed))
    yield KernelCall(murmur2.sort_rows, (numbers, ROWS, 0, ends, ends))
    yield KernelCall(murmur2.find_ends, (numbers, numbers, ROWS, ends))
