"""The columns that kernels write, and the Arrow batches that they become."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

import numpy as np
import pyarrow as pa

from ...ports.record_schema import HEADERS, TYPES, record_schema
from . import decode_cursor as at
from . import status
from .buffer_pool import BufferPool, Lease
from .utf8 import valid_utf8

if TYPE_CHECKING:
    from ...domain.projection import Projection
    from ...domain.topic_partition import TopicPartition

    Bytes: TypeAlias = np.ndarray[Any, np.dtype[np.uint8]]
    Integers: TypeAlias = np.ndarray[Any, np.dtype[np.int32]]
    Longs: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]

MAX_ROWS: Final = 16_384
"""The rows of a batch: Spark takes some thousands at once faster than a few."""

DEFAULT_BYTES: Final = 2 * 1024 * 1024
"""The bytes that a column has room for, until one record alone has more."""

MAX_BYTES: Final = 2**31 - 1
"""The bytes that Arrow's 32-bit offsets reach."""

DEFAULT_HEADERS: Final = 4 * MAX_ROWS


class ColumnFullError(MemoryError):
    """One record's field is larger than an Arrow column can be."""


@final
@dataclass(slots=True)
class VariableColumn:
    """Values of any length: where each ends, their bytes, and which are not null."""

    ends: Integers
    bytes: Bytes
    valid: Bytes

    @classmethod
    def of(cls, rows: int, size: int) -> VariableColumn:
        ends = np.empty(rows + 1, np.int32)
        ends[0] = 0
        return cls(ends, np.empty(size, np.uint8), np.empty(rows, np.uint8))

    @property
    def arrays(self) -> tuple[Integers, Bytes, Bytes]:
        return self.ends, self.bytes, self.valid

    def grow(self) -> None:
        """Make room for more bytes; those there are go."""
        size = len(self.bytes)
        if size >= MAX_BYTES:
            raise ColumnFullError
        self.bytes = np.empty(min(2 * size, MAX_BYTES), np.uint8)

    def array(self, kind: pa.DataType, rows: int, used: int, lease: Lease) -> pa.Array[Any]:
        buffers = [
            validity(self.valid[:rows]),
            lease.buffer(self.ends[: rows + 1]),
            lease.buffer(self.bytes[:used]),
        ]
        return pa.Array.from_buffers(kind, rows, buffers)


@final
@dataclass(slots=True)
class HeaderColumn:
    """The lists of headers: where each ends, which are not null, and the headers of all."""

    ends: Integers
    valid: Bytes
    keys: VariableColumn
    values: VariableColumn

    @classmethod
    def of(cls, rows: int) -> HeaderColumn:
        ends = np.empty(rows + 1, np.int32)
        ends[0] = 0
        keys, values = (VariableColumn.of(DEFAULT_HEADERS, DEFAULT_BYTES) for _ in range(2))
        return cls(ends, np.empty(rows, np.uint8), keys, values)

    def grow(self) -> None:
        """Make room for more headers; those there are go."""
        room = 2 * len(self.keys.valid)
        self.keys = VariableColumn.of(room, len(self.keys.bytes))
        self.values = VariableColumn.of(room, len(self.values.bytes))

    def array(self, rows: int, cursor: Longs, lease: Lease) -> pa.Array[Any]:
        entries = int(cursor[at.HEADERS])
        keys = self.keys.array(pa.binary(), entries, int(cursor[at.HEADER_KEY_BYTES]), lease)
        values = self.values.array(pa.binary(), entries, int(cursor[at.HEADER_VALUE_BYTES]), lease)
        pairs = pa.StructArray.from_arrays(
            [valid_utf8(keys), values], fields=list(HEADERS.value_type)
        )
        buffers = [validity(self.valid[:rows]), lease.buffer(self.ends[: rows + 1])]
        return pa.Array.from_buffers(HEADERS, rows, buffers, children=[pairs])


@final
class ColumnBuffers:
    """Memory for the rows of one Arrow batch."""

    __slots__ = ("headers", "keys", "offsets", "timestamp_types", "timestamps", "values")

    def __init__(self) -> None:
        self.offsets: Longs = np.empty(MAX_ROWS, np.int64)
        self.timestamps: Longs = np.empty(MAX_ROWS, np.int64)
        self.timestamp_types: Integers = np.empty(MAX_ROWS, np.int32)
        self.keys = VariableColumn.of(MAX_ROWS, DEFAULT_BYTES)
        self.values = VariableColumn.of(MAX_ROWS, DEFAULT_BYTES)
        self.headers = HeaderColumn.of(MAX_ROWS)

    @property
    def arrays(self) -> tuple[Any, ...]:
        """What a kernel takes: the arrays, grouped as it unpacks them."""
        headers = self.headers
        return (
            self.offsets,
            self.timestamps,
            self.timestamp_types,
            self.keys.arrays,
            self.values.arrays,
            (headers.ends, headers.valid, headers.keys.arrays, headers.values.arrays),
        )

    def grow(self, full: int) -> None:
        """Make room in the column that a kernel said is full with not a row written.

        :raises ColumnFullError: if an Arrow column cannot be larger.
        """
        match full:
            case status.KEYS_FULL:
                self.keys.grow()
            case status.VALUES_FULL:
                self.values.grow()
            case status.HEADERS_FULL:
                self.headers.grow()
            case status.HEADER_KEYS_FULL:
                self.headers.keys.grow()
            case status.HEADER_VALUES_FULL:
                self.headers.values.grow()


@final
class BatchBuilder:
    """Makes Arrow batches of one partition's rows, in memory that goes round."""

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
        self.cursor: Longs = np.zeros(at.FIELDS, np.int64)
        self._buffers: ColumnBuffers | None = None

    @property
    def buffers(self) -> ColumnBuffers:
        """What the next rows are written into; taken from the pool when it is first needed."""
        if self._buffers is None:
            self._buffers = self._pool.take()
        return self._buffers

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return int(self.cursor[at.ROWS])

    def begin(self) -> None:
        """Forget the rows there are, which are those of a reading that was given up."""
        self.cursor[:] = 0
        self.cursor[at.OFFSET] = -1

    def finish(self) -> pa.RecordBatch:
        """Give the rows there are as a batch, and begin the next one."""
        rows = self.rows
        lease = self._pool.lease(self.buffers)
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
                numbers: np.ndarray[Any, Any] = buffers.offsets
            case "timestamp":
                numbers = buffers.timestamps
            case _:
                numbers = buffers.timestamp_types
        return pa.Array.from_buffers(TYPES[name], rows, [None, lease.buffer(numbers[:rows])])


def _repeated(value: object, kind: pa.DataType) -> pa.Array[Any]:
    repeated: pa.Array[Any] = pa.repeat(pa.scalar(value, kind), MAX_ROWS)  # type: ignore[call-overload]  # of a scalar of any type
    return repeated


def validity(valid: Bytes) -> pa.Buffer | None:
    """Give Arrow's bitmap of the values that are not null, or none where none is."""
    if valid.all():
        return None
    return pa.py_buffer(np.packbits(valid, bitorder="little").data)
