"""The kernels that exchange messages with librdkafka, with the arguments that they take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...domain.projection import ALL_COLUMNS
from ...domain.record_limits import RecordLimits
from ...domain.topic_partition import TopicPartition
from ..kafka_format.column_buffers import BatchBuilder
from ..kafka_format.kernel_calls import ROWS, producer_arrays
from ..kernels.arrays import read_only
from ..kernels.kernel_call import KernelCall
from . import gather_kernel, produce_kernel, report_kernel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..kernels.arrays import Int32Array, Int64Array, UInt64Array


def read_calls() -> Iterator[KernelCall]:
    """Yield the kernels of a consumer."""
    words = _words(0)
    builder = BatchBuilder(TopicPartition("none", 0), ALL_COLUMNS)
    limits, arrays = RecordLimits().numbers, builder.buffers.arrays
    gathered = (words, builder.cursor, 0, 0, limits, arrays, words)
    yield KernelCall(gather_kernel.gather, gathered)
    yield KernelCall(gather_kernel.destroy, (words, words))


def write_calls() -> Iterator[KernelCall]:
    """Yield the kernels of a producer that send rows without headers and timestamps."""
    yield KernelCall(produce_kernel.produce_plain, _sending())
    yield KernelCall(produce_kernel.uncounted_bytes, (producer_arrays(), ROWS))


def kernel_calls() -> Iterator[KernelCall]:
    """Yield all kernels of this folder."""
    yield from read_calls()
    yield from write_calls()
    yield KernelCall(produce_kernel.produce_full, _sending())
    runs: Int64Array = np.zeros((0, 2), np.int64)
    yield KernelCall(report_kernel.count_delivered, (_words(0), 0, runs))


def _sending() -> tuple[Any, ...]:
    columns = producer_arrays()
    numbers: Int32Array = np.empty(0, np.int32)
    topics = read_only(_words(0)), ROWS
    calls = _words(0), _words(0, 1), _words(0, 1)
    bases = produce_kernel.bases_of(columns)
    return (columns, bases, ROWS, read_only(numbers), 0, topics, 0, calls)


def _words(*shape: int) -> UInt64Array:
    return np.zeros(shape, np.uint64)
