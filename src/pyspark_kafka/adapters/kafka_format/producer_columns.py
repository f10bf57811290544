"""Arrow batches as the columns from which kernels encode records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

import numpy as np
import pyarrow as pa

from ...domain.writing.errors import InvalidRecordError
from ..kernels.kernel import Flat
from .column_buffers import MAX_BYTES
from .encode_kernel import (
    NO_ROW,
    UPPER_BOUND_OVERHEAD,
    first_oversized,
    measure_records,
    sum_groups,
)

if TYPE_CHECKING:
    from ..kernels.arrays import Array, Int64Array, UInt8Array

    Variable: TypeAlias = tuple[Array, UInt8Array, UInt8Array]

_PER_MILLISECOND: Final = {"ms": 1, "us": 1_000, "ns": 1_000_000}
_HEADER_FIELDS: Final = {"key", "value"}


@final
@dataclass(frozen=True, slots=True)
class ProducerColumns:
    """The columns of a batch that go into records, as arrays over Arrow's own buffers.

    A column of variable length is its offsets, its data, and a validity byte per row. The arrays
    keep the buffers alive.
    """

    num_rows: int
    arrays: Flat
    """The arguments of kernels: timestamps in milliseconds, keys, values, and headers."""

    sizes: Int64Array
    """An upper bound of the bytes of each row's record, with the length before it."""

    max_size: int
    """The largest of them, 0 without rows."""

    @classmethod
    def of(cls, batch: pa.RecordBatch, now_ms: int) -> ProducerColumns:
        """Take ``key``, ``value``, ``headers`` and ``timestamp``; any of them may be absent.

        Rows without a timestamp get ``now_ms``, in milliseconds.

        :raises InvalidRecordError: if a header has no key.
        :raises TypeError: if a column has a type that cannot be written.
        """
        rows, arrays = batch.num_rows, kernel_columns(batch, now_ms)
        sizes: Int64Array = np.empty(rows, np.int64)
        if measure_records(arrays, sizes) != NO_ROW:
            raise InvalidRecordError("a header has no key", "Remove such headers.")
        return cls(rows, arrays, sizes, int(sizes.max(initial=0)))

    def payload_bytes(self, rows: Int64Array) -> int:
        """Return the bytes of the rows' keys, values and headers.

        :raises IndexError: if a row does not exist.
        """
        payloads, _ = self.measure_groups(rows, np.array([len(rows)]))
        return int(payloads[0])

    def measure_groups(self, rows: Int64Array, ends: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Return the bytes of keys, values and headers of groups of rows, and sums of ``sizes``.

        ``ends`` are the places in ``rows`` where the groups end.

        :raises IndexError: if a row does not exist.
        """
        payloads: Int64Array = np.empty(len(ends), np.int64)
        bounds: Int64Array = np.empty(len(ends), np.int64)
        checked(sum_groups(self.arrays, self.sizes, rows, ends, payloads, bounds))
        return payloads, bounds

    def first_oversized(self, max_size: int) -> tuple[int, int] | None:
        """Return the first row with a record of more than ``max_size``, and its size.

        The size is the one that Java's producer compares with ``max.request.size``.
        """
        if self.max_size + UPPER_BOUND_OVERHEAD <= max_size:
            return None
        row, size = first_oversized(self.arrays, max_size)
        return None if row == NO_ROW else (row, size)


def kernel_columns(batch: pa.RecordBatch, now_ms: int) -> Flat:
    """Return the columns of a batch as kernels take them.

    :raises TypeError: if a column has a type that cannot be written.
    """
    rows = batch.num_rows
    columns = (
        _timestamps(_column(batch, "timestamp"), rows, now_ms),
        _variable("key", _column(batch, "key"), rows),
        _variable("value", _column(batch, "value"), rows),
        _headers(_column(batch, "headers"), rows),
    )
    _, key, value, (lists, _, header_key, header_value) = columns
    offsets = (key[0], value[0], lists, header_key[0], header_value[0])
    is_wide = any(each.dtype == np.int64 for each in offsets)
    return Flat(_widened(columns) if is_wide else columns)


def _widened(columns: Any) -> Any:
    """Return columns with offsets of 64 bits: kernels are compiled for all or none of them."""
    timestamps, *rest = columns
    return (timestamps, *map(_wide, rest))


def _wide(each: Any) -> Any:
    if isinstance(each, tuple):
        return tuple(map(_wide, each))
    return each.astype(np.int64) if each.dtype == np.int32 else each


def checked(result: int) -> int:
    """Return a kernel's result.

    :raises IndexError: if it is ``NO_ROW``.
    """
    if result == NO_ROW:
        raise IndexError("there is no such row")
    return result


def _column(batch: pa.RecordBatch, name: str) -> pa.Array[Any] | None:
    place = batch.schema.get_field_index(name)
    if place < 0 or pa.types.is_null(batch.schema.field(place).type):
        return None
    return batch.column(place)


def _timestamps(array: pa.Array[Any] | None, rows: int, now_ms: int) -> Int64Array:
    if array is None:
        return np.full(rows, now_ms, np.int64)
    kind = array.type
    if not isinstance(kind, pa.TimestampType) or kind.unit not in _PER_MILLISECOND:
        raise TypeError(f"the column 'timestamp' is {kind}; it must be timestamp(ms, us or ns)")
    ticks = _view(array.buffers()[1], np.int64)[array.offset : array.offset + rows]
    per_millisecond = _PER_MILLISECOND[kind.unit]
    milliseconds = ticks if per_millisecond == 1 else np.floor_divide(ticks, per_millisecond)
    if array.null_count:
        milliseconds = np.where(_validity(array), milliseconds, now_ms)
    return milliseconds


def _variable(name: str, array: pa.Array[Any] | None, rows: int) -> Variable:
    if array is None:
        return (
            np.zeros(rows + 1, np.int32),
            np.empty(0, np.uint8),
            np.zeros(rows, np.uint8),
        )
    kind = array.type
    is_large = pa.types.is_large_binary(kind) or pa.types.is_large_string(kind)
    if not (is_large or pa.types.is_binary(kind) or pa.types.is_string(kind)):
        raise TypeError(f"the column '{name}' is {kind}; it must be binary or string")
    _, offsets, data = array.buffers()
    starts, first = _offsets(offsets, array, is_large=is_large)
    return starts, _view(data, np.uint8)[first:], _validity(array)


def _headers(
    array: pa.Array[Any] | None, rows: int
) -> tuple[Array, UInt8Array, Variable, Variable]:
    if array is None:
        return (
            np.zeros(rows + 1, np.int32),
            np.zeros(rows, np.uint8),
            _variable("headers", None, 0),
            _variable("headers", None, 0),
        )
    is_large = isinstance(array, pa.LargeListArray)
    pairs = array.values if isinstance(array, (pa.ListArray, pa.LargeListArray)) else None
    if not isinstance(pairs, pa.StructArray) or not _HEADER_FIELDS.issubset(
        field.name for field in pairs.type
    ):
        raise TypeError(
            f"the column 'headers' is {array.type}; it must be "
            "list<struct<key: string, value: binary>>"
        )
    offsets, first = _offsets(array.buffers()[1], array, is_large=is_large)
    pairs = pairs.slice(first)
    key, value = pairs.field("key"), pairs.field("value")
    key_offsets, key_data, key_validity = _variable("headers.key", key, len(pairs))
    if pairs.null_count:
        key_validity = key_validity & _validity(pairs)
    values = _variable("headers.value", value, len(pairs))
    return offsets, _validity(array), (key_offsets, key_data, key_validity), values


def _offsets(
    buffer: pa.Buffer | None, array: pa.Array[Any], *, is_large: bool
) -> tuple[Array, int]:
    """Return an array's offsets, and the place in its data from which they count.

    64-bit offsets become 32-bit ones where they fit, so that one kernel serves both Arrow types.
    """
    kind = np.int64 if is_large else np.int32
    if not len(array):
        # Arrow may omit the only offset.
        return np.zeros(1, np.int32), 0
    offsets = _view(buffer, kind)[array.offset : array.offset + len(array) + 1]
    if not is_large:
        return offsets, 0
    first = int(offsets[0])
    if int(offsets[-1]) - first > MAX_BYTES:
        return offsets, 0
    return (offsets - first).astype(np.int32), first


def _validity(array: pa.Array[Any]) -> UInt8Array:
    """Return a byte for each value, 0 for null."""
    if not array.null_count:
        return np.ones(len(array), np.uint8)
    bits = _view(array.buffers()[0], np.uint8)[array.offset // 8 :]
    skipped = array.offset % 8
    unpacked = np.unpackbits(bits, count=skipped + len(array), bitorder="little")
    return unpacked[skipped:]


def _view(buffer: pa.Buffer | None, kind: type[np.generic]) -> Array:
    if buffer is None or not buffer.size:
        return np.empty(0, kind)
    size = np.dtype(kind).itemsize
    view: Array = np.frombuffer(memoryview(buffer), kind, buffer.size // size)
    # Kernels are compiled for aligned arrays, as Arrow's own memory is.
    return view if view.flags.aligned else view.copy()
