"""The kernel that encodes rows as Protobuf by a program: a node for each field of a message.

A node has sixteen numbers of 64 bits; offsets in it are in bytes. The fields of a message stand
behind it by their numbers, the order in which all serializers write them.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ...kernels.kernel import kernel
from ...kernels.memory import (
    copy_memory,
    load_int8,
    load_int16,
    load_int32,
    load_int64,
    load_uint8,
    load_uint32,
    load_uint64,
    store_int64,
    store_uint8,
    store_uint32,
    store_uint64,
)
from ...kernels.parts import inlined
from ..columns.bytes_kernel import put_varint
from ..columns.utf8 import is_utf8
from ..encoding import row_encoder as out
from ..encoding.input_columns import data, is_null, offset, read_bool, values
from ..encoding.row_encoder import find_symbol, popped, push, stop

STRIDE: Final = 128
OPERATION, COLUMN, END, TAG, WRITING, IS_IMPLICIT, IS_REQUIRED, IS_PACKED = range(0, 64, 8)
COUNT, SYMBOLS, OTHERS, OTHERS_COUNT = range(64, 96, 8)
"""The parts of a node:

- ``END`` is the number of the first node that is not below this one.
- ``TAG`` is the field's number and wire type, or -1 for the elements of a packed field.
- ``WRITING`` is how a number is written, and ``IS_IMPLICIT`` whether its default is left out.
- ``COUNT`` is the number of symbols of an enum, ``SYMBOLS`` the address of their numbers, then of
  the offsets of their texts, then the texts.
- ``OTHERS`` is the address of the columns of a oneof's later fields.
"""

BOOL, INT8, INT16, INT32, INT64, UINT32, LONG_AS_UINT32, DECIMAL_AS_UINT64, FLOAT = range(9)
ENUM, BYTES, STRING, TIMESTAMP, DURATION, MESSAGE, LIST, MAP = range(9, 17)
"""The operations. ``UINT32`` is an unsigned number in 32 bits of a signed one."""

VARINT, ZIGZAG, FIXED32, FIXED64 = range(4)

_ROOM = 64
"""The bytes that are written at once, without texts: a tag, a length, a number or a timestamp."""

_MICROS_PER_SECOND = 1_000_000
_SECONDS = np.uint64(0x08)
_NANOS = np.uint64(0x10)

U = np.uint64
_MAX_UINT32 = 0xFFFFFFFF


@kernel(*["int64"] * 4)
def encode_protobuf(program: int, table: int, output: int, rows: int) -> int:
    """Encode rows; the arguments are those of ``RowEncoder``."""
    address = load_int64(output + out.ADDRESS)
    offsets = load_int64(output + out.OFFSETS)
    prefix, prefix_size = load_int64(output + out.PREFIX), load_int64(output + out.PREFIX_SIZE)
    bottom = load_int64(output + out.SCRATCH)
    limit = address + load_int64(output + out.CAPACITY)
    row = load_int64(output + out.ROW)
    place = address + load_int64(offsets + 8 * row)
    while row < rows:
        if is_null(table, 0, row):
            row += 1
            store_int64(offsets + 8 * row, place - address)
            continue
        if limit - place < prefix_size + _ROOM:
            return stop(output, row, 0, out.FULL)
        copy_memory(place, prefix, prefix_size)
        place += prefix_size
        # The container that is written: its operation, its node, the next node or row and the
        # last, the row of a message, and where its length goes. The stack has those around it.
        stack = bottom
        kind, container, index, length_at = MESSAGE, 0, row, 0
        following, end = 1, load_int64(program + END)
        while True:
            if limit - place < _ROOM:
                return stop(output, row, 0, out.FULL)
            if following == end:
                if length_at != 0:
                    place = _close(length_at, place)
                if stack == bottom:
                    break
                kind, container, following, end, index = popped(stack)
                length_at = load_int64(stack - 8)
                stack -= out.FRAME_BYTES
                continue
            if kind == MAP:
                stack = push(stack, kind, container, following + 1, end, index)
                store_int64(stack - 8, length_at)
                node = program + container * STRIDE
                place = put_varint(place, U(load_int64(node + TAG)))
                length_at = place
                place += 1
                kind, index = MESSAGE, following
                following, end = container + 1, load_int64(node + END)
                continue
            if kind == MESSAGE:
                number = following
                node = program + number * STRIDE
                item = index
                following = load_int64(node + END)
            else:
                number = container + 1
                node = program + number * STRIDE
                item = following
                following += 1
            column = load_int64(node + COLUMN)
            if is_null(table, column, item):
                if load_int64(node + IS_REQUIRED) != 0:
                    return stop(output, row, column, out.BAD_NULL)
                continue
            others = load_int64(node + OTHERS)
            for other in range(load_int64(node + OTHERS_COUNT)):
                if not is_null(table, load_int64(others + 8 * other), item):
                    return stop(output, row, column, out.BAD_ONEOF)
            operation = load_int64(node + OPERATION)
            tag = load_int64(node + TAG)
            if operation >= MESSAGE:
                if operation != MESSAGE:
                    first = offset(table, column, item)
                    last = offset(table, column, item + 1)
                    if first == last:
                        continue
                stack = push(stack, kind, container, following, end, index)
                store_int64(stack - 8, length_at)
                kind, container, length_at = operation, number, 0
                if operation == MESSAGE or load_int64(node + IS_PACKED) != 0:
                    # The length is known at the end: a byte for it, which is mostly enough.
                    if tag >= 0:
                        place = put_varint(place, U(tag))
                    length_at = place
                    place += 1
                if operation == MESSAGE:
                    following, end = number + 1, load_int64(node + END)
                    index = item
                else:
                    following, end, index = first, last, item
                continue
            if operation == BYTES or operation == STRING:
                start = offset(table, column, item)
                length = offset(table, column, item + 1) - start
                if length == 0 and load_int64(node + IS_IMPLICIT) != 0:
                    continue
                source = data(table, column) + start
                if operation == STRING and not is_utf8(source, length):
                    return stop(output, row, column, out.BAD_UTF8)
                if limit - place < length + _ROOM:
                    return stop(output, row, 0, out.FULL)
                place = put_varint(put_varint(place, U(tag)), U(length))
                copy_memory(place, source, length)
                place += length
                continue
            if operation == TIMESTAMP or operation == DURATION:
                micros = load_int64(values(table, column) + 8 * item)
                place = put_varint(place, U(tag))
                place = _put_time(place, micros, operation == DURATION)
                continue
            bits = U(0)
            if operation == INT64:
                bits = load_uint64(values(table, column) + 8 * item)
            elif operation == INT32:
                bits = U(np.int64(load_int32(values(table, column) + 4 * item)))
            elif operation == BOOL:
                bits = U(1) if read_bool(table, column, item) else U(0)
            elif operation == FLOAT or operation == UINT32:
                bits = U(load_uint32(values(table, column) + 4 * item))
            elif operation == INT8:
                bits = U(np.int64(load_int8(values(table, column) + item)))
            elif operation == INT16:
                bits = U(np.int64(load_int16(values(table, column) + 2 * item)))
            elif operation == ENUM:
                start = offset(table, column, item)
                length = offset(table, column, item + 1) - start
                count = load_int64(node + COUNT)
                # The offsets of the symbols are behind their numbers.
                symbols = load_int64(node + SYMBOLS) + 8 * count
                symbol = find_symbol(symbols, count, data(table, column) + start, length)
                if symbol < 0:
                    return stop(output, row, column, out.BAD_SYMBOL)
                bits = load_uint64(load_int64(node + SYMBOLS) + 8 * symbol)
            elif operation == LONG_AS_UINT32:
                long = load_int64(values(table, column) + 8 * item)
                if long < 0 or long > _MAX_UINT32:
                    return stop(output, row, column, out.BAD_RANGE)
                bits = U(long)
            else:
                source = values(table, column) + 16 * item
                if load_int64(source + 8) != 0:
                    return stop(output, row, column, out.BAD_RANGE)
                bits = load_uint64(source)
            if bits == U(0) and load_int64(node + IS_IMPLICIT) != 0:
                continue
            if tag >= 0:
                place = put_varint(place, U(tag))
            writing = load_int64(node + WRITING)
            if writing == VARINT:
                place = put_varint(place, bits)
            elif writing == FIXED64:
                store_uint64(place, bits)
                place += 8
            elif writing == FIXED32:
                store_uint32(place, np.uint32(bits & U(_MAX_UINT32)))
                place += 4
            else:
                sign = U(0) - (bits >> U(63))
                place = put_varint(place, (bits << U(1)) ^ sign)
        row += 1
        store_int64(offsets + 8 * row, place - address)
    return out.DONE


@inlined
def _close(length_at: int, end: int) -> Any:
    """Write the length of what stands behind its byte; return the end, which moves if it grows."""
    size = end - length_at - 1
    more = 0
    rest = size >> 7
    while rest > 0:
        more += 1
        rest >>= 7
    if more > 0:
        # From the end on, as the two places overlap.
        left = size
        while left >= 8:
            left -= 8
            word = load_uint64(length_at + 1 + left)
            store_uint64(length_at + 1 + left + more, word)
        while left > 0:
            left -= 1
            store_uint8(length_at + 1 + left + more, load_uint8(length_at + 1 + left))
    put_varint(length_at, U(size))
    return end + more


@inlined
def _put_time(at_: int, micros: int, is_duration: bool) -> Any:
    """Write a ``Timestamp`` or a ``Duration``, whose nanoseconds have the sign of its seconds."""
    seconds = micros // _MICROS_PER_SECOND
    if is_duration and micros < 0 and seconds * _MICROS_PER_SECOND != micros:
        seconds += 1
    nanos = (micros - seconds * _MICROS_PER_SECOND) * 1_000
    start = at_
    at_ += 1
    if seconds != 0:
        at_ = put_varint(put_varint(at_, _SECONDS), U(seconds))
    if nanos != 0:
        at_ = put_varint(put_varint(at_, _NANOS), U(nanos))
    store_uint8(start, np.uint8(at_ - start - 1))
    return at_
