"""The kernels that read and write record batches, with the arguments that they take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from ...domain.projection import ALL_COLUMNS
from ...domain.record_limits import RecordLimits
from ...domain.topic_partition import TopicPartition
from ..kernels.arrays import read_only
from ..kernels.kernel_call import KernelCall
from . import block_fields, encode_kernel, legacy_kernel, snappy_kernel
from .column_buffers import BatchBuilder
from .decode_kernel import decode_records
from .producer_columns import kernel_columns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..kernels.arrays import Int64Array, UInt8Array

ROWS: Final[Int64Array] = read_only(np.empty(0, np.int64))
"""Rows, and other numbers that kernels only read."""

_NUMBERS: Final[Int64Array] = np.empty(0, np.int64)
_BYTES: Final[UInt8Array] = np.empty(0, np.uint8)


def producer_arrays() -> tuple[Any, ...]:
    """Return the columns of no rows, as kernels take them."""
    nothing = pa.array([], pa.binary())
    return kernel_columns(pa.RecordBatch.from_pydict({"key": nothing, "value": nothing}), 0)


def read_calls() -> Iterator[KernelCall]:
    """Yield the kernel of every read."""
    yield KernelCall(decode_records, _decoding())


def rare_read_calls() -> Iterator[KernelCall]:
    """Yield the kernels for old formats of records, and for Snappy."""
    yield KernelCall(legacy_kernel.decode_messages, _decoding())
    yield KernelCall(legacy_kernel.scan_messages, (_BYTES, 0, 0))
    yield KernelCall(snappy_kernel.decompress, (read_only(_BYTES), _BYTES, _NUMBERS))


def write_calls() -> Iterator[KernelCall]:
    """Yield the kernels that measure and encode rows."""
    columns = producer_arrays()
    yield KernelCall(encode_kernel.measure_records, (columns, _NUMBERS))
    yield KernelCall(encode_kernel.sum_groups, (columns, ROWS, ROWS, ROWS, _NUMBERS, _NUMBERS))
    yield KernelCall(encode_kernel.sum_sizes, (ROWS, ROWS))
    yield KernelCall(encode_kernel.split_rows, (ROWS, ROWS, 0, _NUMBERS))
    yield KernelCall(encode_kernel.first_oversized, (columns, 0))
    yield KernelCall(encode_kernel.encode_records, (columns, ROWS, ROWS, _BYTES, 0))


def kernel_calls() -> Iterator[KernelCall]:
    """Yield all kernels of this folder."""
    yield from read_calls()
    yield from write_calls()
    yield from rare_read_calls()


def _decoding() -> tuple[Any, ...]:
    builder = BatchBuilder(TopicPartition("none", 0), ALL_COLUMNS)
    blocks = np.empty((0, block_fields.FIELD_COUNT), np.int64)
    limits, arrays = RecordLimits().numbers, builder.buffers.arrays
    return (read_only(_BYTES), blocks, builder.cursor, 0, 0, 0, limits, arrays)
