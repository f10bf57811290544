"""Arrow batches as the columns of which kernels make records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

import numpy as np
import pyarrow as pa

from ...domain.errors import InvalidRecordError
from .column_buffers import MAX_BYTES
from .encode_kernel import NO_ROW, measure_records, sum_payloads
from .record_blocks import read_only

if TYPE_CHECKING:
    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
    Bytes: TypeAlias = np.ndarray[Any, np.dtype[np.uint8]]
    Longs: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
    Variable: TypeAlias = tuple[Array, Bytes, Bytes]

_PER_MILLISECOND: Final = {"ms": 1, "us": 1_000, "ns": 1_000_000}
_PAIR: Final = {"key", "value"}


@final
@dataclass(frozen=True, slots=True)
class ProducerColumns:
    """The columns of a batch that go into records, as arrays over Arrow's own buffers.

    A column of values is where each of them begins and the last ends, their bytes, and a byte per
    row that is 0 for null. The arrays keep the buffers.
    """

    num_rows: int
    arrays: tuple[Any, ...]
    """What kernels take: timestamps in milliseconds, keys, values, and headers."""

    sizes: Longs
    """A bound of the bytes that each row's record has."""

    @classmethod
    def of(cls, batch: pa.RecordBatch, now_ms: int) -> ProducerColumns:
        """Take ``key``, ``value``, ``headers`` and ``timestamp``, each of which may be absent.

        Rows without a timestamp get ``now_ms``, in milliseconds.

        :raises InvalidRecordError: if a header has no key.
        :raises TypeError: if a column is of a type that is not written.
        """
        rows = batch.num_rows
        arrays = (
            _timestamps(_column(batch, "timestamp"), rows, now_ms),
            _variable("key", _column(batch, "key"), rows),
            _variable("value", _column(batch, "value"), rows),
            _headers(_column(batch, "headers"), rows),
        )
        sizes: Longs = np.empty(rows, np.int64)
        if measure_records(arrays, sizes) != NO_ROW:
            raise InvalidRecordError("a header has no key", "Remove such headers.")
        return cls(rows, arrays, read_only(sizes))

    def payload_bytes(self, rows: Longs) -> int:
        """Give the bytes of the rows' keys, values and headers.

        :raises IndexError: if there is no such row.
        """
        total: int = sum_payloads(self.arrays, kernel_rows(rows))
        return checked(total)

    def record_sizes(self) -> Longs:
        """Give a bound of the bytes of each row's record, its length before it included."""
        return self.sizes


def kernel_rows(rows: Longs) -> Longs:
    """Give rows as kernels are compiled for them."""
    return read_only(rows) if rows.flags.writeable else rows


def checked(result: int) -> int:
    """Give what a kernel came back with.

    :raises IndexError: if it came upon a row that there is not.
    """
    if result == NO_ROW:
        raise IndexError("there is no such row")
    return result


def _column(batch: pa.RecordBatch, name: str) -> pa.Array[Any] | None:
    place = batch.schema.get_field_index(name)
    if place < 0 or pa.types.is_null(batch.schema.field(place).type):
        return None
    return batch.column(place)


def _timestamps(array: pa.Array[Any] | None, rows: int, now_ms: int) -> Longs:
    if array is None:
        return read_only(np.full(rows, now_ms, np.int64))
    kind = array.type
    if not isinstance(kind, pa.TimestampType) or kind.unit not in _PER_MILLISECOND:
        raise TypeError(
            f"the column 'timestamp' is of {kind}, and has to be of timestamp(ms, us or ns)"
        )
    ticks = _view(array.buffers()[1], np.int64)[array.offset : array.offset + rows]
    per_millisecond = _PER_MILLISECOND[kind.unit]
    milliseconds = ticks if per_millisecond == 1 else np.floor_divide(ticks, per_millisecond)
    if array.null_count:
        milliseconds = np.where(_valid(array), milliseconds, now_ms)
    return read_only(milliseconds)


def _variable(name: str, array: pa.Array[Any] | None, rows: int) -> Variable:
    if array is None:
        return (
            read_only(np.zeros(rows + 1, np.int32)),
            read_only(np.empty(0, np.uint8)),
            read_only(np.zeros(rows, np.uint8)),
        )
    kind = array.type
    is_large = pa.types.is_large_binary(kind) or pa.types.is_large_string(kind)
    if not (is_large or pa.types.is_binary(kind) or pa.types.is_string(kind)):
        raise TypeError(f"the column '{name}' is of {kind}, and has to be of binary or string")
    _, ends, data = array.buffers()
    starts, first = _starts(ends, array, is_large=is_large)
    return starts, _view(data, np.uint8)[first:], _valid(array)


def _headers(array: pa.Array[Any] | None, rows: int) -> tuple[Array, Bytes, Variable, Variable]:
    if array is None:
        return (
            read_only(np.zeros(rows + 1, np.int32)),
            read_only(np.zeros(rows, np.uint8)),
            _variable("headers", None, 0),
            _variable("headers", None, 0),
        )
    is_large = isinstance(array, pa.LargeListArray)
    pairs = array.values if isinstance(array, (pa.ListArray, pa.LargeListArray)) else None
    if not isinstance(pairs, pa.StructArray) or not _PAIR.issubset(at.name for at in pairs.type):
        raise TypeError(
            f"the column 'headers' is of {array.type}, and has to be of "
            "list<struct<key: string, value: binary>>"
        )
    starts, first = _starts(array.buffers()[1], array, is_large=is_large)
    pairs = pairs.slice(first)
    key, value = pairs.field("key"), pairs.field("value")
    key_starts, key_bytes, key_valid = _variable("headers.key", key, len(pairs))
    if pairs.null_count:
        key_valid = read_only(key_valid & _valid(pairs))
    values = _variable("headers.value", value, len(pairs))
    return starts, _valid(array), (key_starts, key_bytes, key_valid), values


def _starts(buffer: pa.Buffer | None, array: pa.Array[Any], *, is_large: bool) -> tuple[Array, int]:
    """Give where each value begins and the last ends, counted from a place that comes with them.

    They are of 32 bits where they fit, so that one kernel does for both of Arrow's types.
    """
    kind = np.int64 if is_large else np.int32
    if not len(array):
        # Arrow may leave out the one offset that there is.
        return read_only(np.zeros(1, np.int32)), 0
    starts = _view(buffer, kind)[array.offset : array.offset + len(array) + 1]
    if not is_large:
        return starts, 0
    first = int(starts[0])
    if int(starts[-1]) - first > MAX_BYTES:
        return starts, 0
    return read_only((starts - first).astype(np.int32)), first


def _valid(array: pa.Array[Any]) -> Bytes:
    """Give a byte for each value, 0 for null."""
    if not array.null_count:
        return read_only(np.ones(len(array), np.uint8))
    bits = _view(array.buffers()[0], np.uint8)[array.offset // 8 :]
    skipped = array.offset % 8
    unpacked = np.unpackbits(bits, count=skipped + len(array), bitorder="little")
    return read_only(unpacked[skipped:])


def _view(buffer: pa.Buffer | None, kind: type[np.generic]) -> Array:
    if buffer is None or not buffer.size:
        return read_only(np.empty(0, kind))
    size = np.dtype(kind).itemsize
    view: Array = np.frombuffer(memoryview(buffer), kind, buffer.size // size)
    # Kernels are compiled for what is aligned, as Arrow's own memory is.
    return read_only(view if view.flags.aligned else view.copy())
