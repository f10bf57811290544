"""Growing bytes that kernels fill with encoded rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
import pyarrow as pa

from ....domain.values.errors import UnencodableValueError
from ...kernels.memory import load_int64, store_int64
from ...kernels.parts import inlined
from ..columns.bytes_kernel import are_equal
from ..columns.column_set import resized
from ..columns.layout import LIST, STRUCT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ...kernels.arrays import Int64Array, UInt8Array
    from ..columns.layout import Column

BAD_NULL, BAD_LENGTH, BAD_SYMBOL, BAD_RANGE, BAD_UTF8, BAD_ONEOF = range(2, 8)

REFUSALS: Final = {
    BAD_NULL: "is null, and the schema does not allow null there",
    BAD_LENGTH: "has another number of bytes than the schema's fixed type",
    BAD_SYMBOL: "is not a symbol of the schema's enum",
    BAD_RANGE: "is out of the range of the schema's type",
    BAD_UTF8: "is not valid UTF-8",
    BAD_ONEOF: "is not the only one of its oneof that is not null",
}


U = np.uint64


@inlined
def find_symbol(offsets: int, count: int, source: int, size: int) -> Any:
    """Return the place of a text among an enum's symbols, or -1.

    ``offsets`` is the address of ``count + 1`` 64-bit offsets, with the texts behind them.
    """
    texts = offsets + 8 * (count + 1)
    for number in range(count):
        start = load_int64(offsets + 8 * number)
        is_of_size = load_int64(offsets + 8 * number + 8) - start == size
        if is_of_size and are_equal(texts + start, source, size):
            return number
    return -1


ADDRESS, CAPACITY, OFFSETS, ROW, COLUMN, PREFIX, PREFIX_SIZE, SCRATCH = range(0, 64, 8)
"""The places of 64-bit numbers in what kernels get: the addresses of the bytes and of the 64-bit
offsets, one more than rows; the row to begin with, where a kernel writes the row at which it stops;
the column that it refuses; and the address of memory for its own use."""

DONE: Final = 0
FULL: Final = 1
"""The bytes have no room for row ``ROW``. A higher number is a reason to refuse the row."""


@inlined
def stop(output: int, row: int, column: int, status: int) -> int:
    """Return the status of a kernel that stops at a row, and note where."""
    store_int64(output + ROW, row)
    store_int64(output + COLUMN, column)
    return status


FRAME_BYTES: Final = 48
"""The bytes of a container on a kernel's stack; a format may use the last eight."""


@inlined
def push(stack: int, kind: int, node: int, following: int, end: int, index: int) -> int:
    """Put the container that is being written on the stack, and return the stack's end."""
    store_int64(stack, kind)
    store_int64(stack + 8, node)
    store_int64(stack + 16, following)
    store_int64(stack + 24, end)
    store_int64(stack + 32, index)
    return stack + FRAME_BYTES


@inlined
def popped(stack: int) -> Any:
    """Return the container at the end of the stack, as it was pushed."""
    frame = stack - FRAME_BYTES
    kind, node = load_int64(frame), load_int64(frame + 8)
    following, end = load_int64(frame + 16), load_int64(frame + 24)
    return kind, node, following, end, load_int64(frame + 32)


_WORDS: Final = 8
_MIN_BYTES: Final = 4096
_MAX_OFFSET: Final = 2**31 - 1


@final
class RowEncoder:
    """Runs a kernel over batches of rows.

    The kernel takes the addresses of a program, of ``InputColumns`` and of the numbers above, and
    the number of rows. It returns ``DONE``, ``FULL``, or the reason why it refuses a row.
    """

    def __init__(
        self,
        kernel: Callable[[int, int, int, int], int],
        program: Int64Array,
        columns: Sequence[Column],
        name: str,
        scratch: int = 0,
    ) -> None:
        """Take a kernel, its program, and the columns of the rows.

        ``name`` is the column of the records, for errors. ``scratch`` is how many bytes of memory
        the kernel needs before its stack.
        """
        nested = sum(column.kind in {STRUCT, LIST} for column in columns)
        self._kernel = kernel
        self._columns = columns
        self._name = name
        self._program = program
        self._scratch_bytes = scratch + FRAME_BYTES * (nested + 1)
        self._bytes_per_row = 64.0

    def encode(self, column: pa.Array[Any], table: int, prefix: bytes) -> pa.Array[Any]:
        """Return a binary array of the rows, null where ``column`` is.

        :raises UnencodableValueError: for the first row that the kernel refuses.
        """
        rows = len(column)
        scratch = np.empty(self._scratch_bytes, np.uint8)
        # A byte more, as an empty array may have no address.
        prefixes = np.frombuffer(prefix + b"\0", np.uint8)
        offsets = np.zeros(rows + 1, np.int64)
        data = np.empty(_MIN_BYTES + int(self._bytes_per_row * rows * 1.1), np.uint8)
        state = np.zeros(_WORDS, np.int64)
        state[OFFSETS // 8] = offsets.ctypes.data
        state[PREFIX // 8], state[PREFIX_SIZE // 8] = prefixes.ctypes.data, len(prefix)
        state[SCRATCH // 8] = scratch.ctypes.data
        status = FULL
        while status == FULL:
            state[ADDRESS // 8], state[CAPACITY // 8] = data.ctypes.data, len(data)
            status = self._kernel(self._program.ctypes.data, table, state.ctypes.data, rows)
            if status == FULL:
                data = resized(data, int(offsets[state[ROW // 8]]), 2 * len(data))
        if status != DONE:
            field = self._columns[int(state[COLUMN // 8])].path
            raise UnencodableValueError(self._name, int(state[ROW // 8]), field, REFUSALS[status])
        self._bytes_per_row = max(int(offsets[-1]) / max(rows, 1), 1.0)
        return _array(column, offsets, data)


def _array(column: pa.Array[Any], offsets: Int64Array, data: UInt8Array) -> pa.Array[Any]:
    size = int(offsets[-1])
    is_large = size > _MAX_OFFSET
    places = offsets if is_large else offsets.astype(np.int32)
    valid = column.is_valid().buffers()[1] if column.null_count else None
    return pa.Array.from_buffers(
        pa.large_binary() if is_large else pa.binary(),
        len(column),
        [valid, _buffer(places), _buffer(data[:size])],
        column.null_count,
    )


def _buffer(array: Any) -> pa.Buffer:
    return pa.py_buffer(array)
