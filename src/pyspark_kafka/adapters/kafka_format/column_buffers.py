"""The columns that kernels write, and the Arrow batches made of them."""

from __future__ import annotations

import re
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, final

import numpy as np
import pyarrow as pa

from ...ports.record_schema import HEADERS, TYPES, record_schema
from ..kernels.kernel import Flat
from . import decode_cursor as at
from . import status

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...domain.reading.records import Projection
    from ...domain.topic_partition import TopicPartition
    from ..kernels.arrays import Array, Int32Array, Int64Array, UInt8Array

MAX_ROWS: Final = 16_384
"""The rows of a batch: Spark takes batches of thousands of rows faster than small ones."""

DEFAULT_BYTES: Final = 2 * 1024 * 1024
"""The bytes that a column has room for, unless a single record needs more."""

MAX_BYTES: Final = 2**31 - 1
"""The bytes that Arrow's 32-bit offsets can address."""

DEFAULT_HEADERS: Final = 4 * MAX_ROWS

MAX_POOLED_BYTES: Final = 32 * 1024 * 1024
"""Columns that grew beyond this for a large record are used once."""


class ColumnFullError(MemoryError):
    """A field of one record is larger than an Arrow column can be."""


@final
@dataclass(slots=True)
class VariableColumn:
    """Values of variable length: Arrow's offsets and data, and a validity byte per row."""

    offsets: Int32Array
    data: UInt8Array
    validity: UInt8Array

    @classmethod
    def of(cls, rows: int, size: int) -> VariableColumn:
        return cls(_offsets(rows), np.empty(size, np.uint8), np.empty(rows, np.uint8))

    @property
    def arrays(self) -> tuple[Int32Array, UInt8Array, UInt8Array]:
        return self.offsets, self.data, self.validity

    def grow(self) -> None:
        """Double the size of the data, and discard the content."""
        size = len(self.data)
        if size >= MAX_BYTES:
            raise ColumnFullError
        self.data = np.empty(min(2 * size, MAX_BYTES), np.uint8)

    def array(self, kind: pa.DataType, rows: int, used: int, lease: Lease) -> pa.Array[Any]:
        buffers = [
            _validity_bitmap(self.validity[:rows]),
            lease.buffer(self.offsets[: rows + 1]),
            lease.buffer(self.data[:used]),
        ]
        return pa.Array.from_buffers(kind, rows, buffers)


@final
@dataclass(slots=True)
class HeaderColumn:
    """Lists of headers: Arrow's list offsets, a validity byte per row, and all keys and values."""

    offsets: Int32Array
    validity: UInt8Array
    keys: VariableColumn
    values: VariableColumn

    @classmethod
    def of(cls, rows: int) -> HeaderColumn:
        keys, values = (VariableColumn.of(DEFAULT_HEADERS, DEFAULT_BYTES) for _ in range(2))
        return cls(_offsets(rows), np.empty(rows, np.uint8), keys, values)

    def grow(self) -> None:
        """Double the number of headers, and discard those there are."""
        capacity = 2 * len(self.keys.validity)
        self.keys = VariableColumn.of(capacity, len(self.keys.data))
        self.values = VariableColumn.of(capacity, len(self.values.data))

    def array(self, rows: int, cursor: Int64Array, lease: Lease) -> pa.Array[Any]:
        entries = int(cursor[at.HEADERS])
        keys = self.keys.array(pa.binary(), entries, int(cursor[at.HEADER_KEY_BYTES]), lease)
        values = self.values.array(pa.binary(), entries, int(cursor[at.HEADER_VALUE_BYTES]), lease)
        pairs = pa.StructArray.from_arrays(
            [valid_utf8(keys), values], fields=list(HEADERS.value_type)
        )
        buffers = [_validity_bitmap(self.validity[:rows]), lease.buffer(self.offsets[: rows + 1])]
        return pa.Array.from_buffers(HEADERS, rows, buffers, children=[pairs])


@final
class ColumnBuffers:
    """Memory for the rows of one Arrow batch."""

    __slots__ = ("_flat", "headers", "keys", "offsets", "timestamp_types", "timestamps", "values")

    def __init__(self) -> None:
        self.offsets: Int64Array = np.empty(MAX_ROWS, np.int64)
        self.timestamps: Int64Array = np.empty(MAX_ROWS, np.int64)
        self.timestamp_types: Int32Array = np.empty(MAX_ROWS, np.int32)
        self.keys = VariableColumn.of(MAX_ROWS, DEFAULT_BYTES)
        self.values = VariableColumn.of(MAX_ROWS, DEFAULT_BYTES)
        self.headers = HeaderColumn.of(MAX_ROWS)
        self._flat: Flat | None = None

    @property
    def arrays(self) -> Flat:
        """The arrays, grouped as kernels unpack them."""
        if self._flat is None:
            headers = self.headers
            self._flat = Flat(
                (
                    self.offsets,
                    self.timestamps,
                    self.timestamp_types,
                    self.keys.arrays,
                    self.values.arrays,
                    (headers.offsets, headers.validity, headers.keys.arrays, headers.values.arrays),
                )
            )
        return self._flat

    @property
    def data_bytes(self) -> int:
        """The bytes of keys, values and headers that there is room for."""
        headers = self.headers
        columns = (self.keys, self.values, headers.keys, headers.values)
        return sum(array.nbytes for column in columns for array in column.arrays)

    def grow(self, full: int) -> None:
        """Enlarge the column that a kernel found full before it wrote a row.

        :raises ColumnFullError: if an Arrow column cannot be larger.
        """
        columns: dict[int, VariableColumn | HeaderColumn] = {
            status.KEYS_FULL: self.keys,
            status.VALUES_FULL: self.values,
            status.HEADERS_FULL: self.headers,
            status.HEADER_KEYS_FULL: self.headers.keys,
            status.HEADER_VALUES_FULL: self.headers.values,
        }
        self._flat = None
        columns[full].grow()


@final
class BatchBuilder:
    """Builds Arrow batches of one partition's rows, in pooled memory."""

    def __init__(
        self,
        partition: TopicPartition,
        projection: Projection,
        pool: BufferPool[ColumnBuffers] | None = None,
    ) -> None:
        self._pool = BufferPool(ColumnBuffers) if pool is None else pool
        self._projection = projection
        self._schema = record_schema(projection)
        self._topic = _repeated(partition.topic, TYPES["topic"])
        self._partition = _repeated(partition.partition, TYPES["partition"])
        self.cursor: Int64Array = np.zeros(at.FIELD_COUNT, np.int64)
        self._buffers: ColumnBuffers | None = None

    @property
    def buffers(self) -> ColumnBuffers:
        """The memory for the next rows, acquired from the pool at first use."""
        if self._buffers is None:
            self._buffers = self._pool.acquire()
        return self._buffers

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self.cursor[at.ROWS])

    def reset(self) -> None:
        """Discard the rows of a read that was abandoned."""
        self.cursor[:] = 0
        self.cursor[at.OFFSET] = -1

    def finish(self) -> pa.RecordBatch:
        """Return the rows as a batch, and start the next one."""
        rows = self.rows
        buffers = self.buffers
        is_large = buffers.data_bytes > MAX_POOLED_BYTES
        lease = Lease(buffers) if is_large else self._pool.lease(buffers)
        batch = pa.RecordBatch.from_arrays(
            [self._column(name, rows, lease) for name in self._projection.columns],
            schema=self._schema,
        )
        self.cursor[at.ROWS :] = 0
        self._buffers = None
        return batch

    def _column(self, name: str, rows: int, lease: Lease) -> pa.Array[Any]:
        buffers, cursor = self.buffers, self.cursor
        match name:
            case "key":
                return buffers.keys.array(TYPES[name], rows, int(cursor[at.KEY_BYTES]), lease)
            case "value":
                return buffers.values.array(TYPES[name], rows, int(cursor[at.VALUE_BYTES]), lease)
            case "headers":
                return buffers.headers.array(rows, cursor, lease)
            case "topic":
                return self._topic.slice(0, rows)
            case "partition":
                return self._partition.slice(0, rows)
            case "offset":
                numbers: Array = buffers.offsets
            case "timestamp":
                numbers = buffers.timestamps
            case _:
                numbers = buffers.timestamp_types
        return pa.Array.from_buffers(TYPES[name], rows, [None, lease.buffer(numbers[:rows])])


def _repeated(value: object, kind: pa.DataType) -> pa.Array[Any]:
    repeated: pa.Array[Any] = pa.repeat(pa.scalar(value, kind), MAX_ROWS)  # type: ignore[call-overload]  # of a scalar of any type
    return repeated


def _offsets(rows: int) -> Int32Array:
    offsets = np.empty(rows + 1, np.int32)
    offsets[0] = 0
    return offsets


def _validity_bitmap(validity: UInt8Array) -> pa.Buffer | None:
    """Return Arrow's validity bitmap, ``None`` if no value is null."""
    if validity.all():
        return None
    return pa.py_buffer(np.packbits(validity, bitorder="little").data)


T = TypeVar("T")

MAX_IDLE: Final = 4
"""Spark holds the batch that it writes while it asks for the next one: two alternate."""


@final
class Lease:
    """The owner of Arrow's buffers over one item; it ends with the last of them."""

    __slots__ = ("__weakref__", "item")

    def __init__(self, item: object = None) -> None:
        """Take an item that no pool takes back, to keep it alive."""
        self.item = item

    def buffer(self, array: Array) -> pa.Buffer:
        """Return an Arrow buffer over an array's bytes, without a copy."""
        return pa.foreign_buffer(array.ctypes.data, array.nbytes, base=self)


@final
class BufferPool(Generic[T]):
    """Lends items, and takes each item back when its lease ends.

    A consumer that keeps a batch keeps its memory; one that drops it before the next, as Spark's
    worker does, has the memory refilled.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._idle: list[T] = []

    def acquire(self) -> T:
        """Return the idle item that was released first, or else a new one."""
        return self._idle.pop(0) if self._idle else self._make()

    def lease(self, item: T) -> Lease:
        """Return a lease that releases the item with the last buffer made of it."""
        lease = Lease()
        weakref.finalize(lease, self.release, item).atexit = False
        return lease

    def release(self, item: T) -> None:
        """Take back an item that nothing refers to."""
        if len(self._idle) < MAX_IDLE:
            self._idle.append(item)


_SURROGATE: Final = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
"""A lone UTF-16 surrogate, encoded: one U+FFFD in Java, and three in Python."""


def valid_utf8(binary: pa.Array[Any]) -> pa.Array[Any]:
    """Decode bytes as UTF-8, with U+FFFD for invalid sequences, as Java's ``String`` does.

    Valid UTF-8 is not copied.
    """
    try:
        return binary.cast(pa.string())
    except pa.ArrowInvalid:
        texts = [_SURROGATE.sub(b"\xff", value or b"") for value in binary.to_pylist()]
        return pa.array([text.decode(errors="replace") for text in texts], pa.string())
