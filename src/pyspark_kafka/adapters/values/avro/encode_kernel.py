"""The kernel that encodes rows as Avro by a program: a node for each type of the schema.

A node has eight numbers of 64 bits; offsets in it are in bytes. Nodes are in the order of the
schema, a record before its fields, so that fields are written in the schema's order.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ...kernels.kernel import kernel
from ...kernels.memory import (
    copy_memory,
    float_of_bits,
    load_int8,
    load_int16,
    load_int32,
    load_int64,
    load_uint32,
    load_uint64,
    store_double,
    store_int64,
    store_uint8,
    store_uint32,
    store_uint64,
)
from ...kernels.parts import inlined
from ..columns.bytes_kernel import put_varint
from ..encoding import row_encoder as out
from ..encoding.input_columns import data, is_null, offset, read_bool, values
from ..encoding.row_encoder import find_symbol, popped, push, stop

STRIDE: Final = 64
OPERATION, COLUMN, END, NULL_BRANCH, BRANCH, SIZE, SYMBOLS = range(0, 56, 8)
"""The parts of a node:

- ``END`` is the number of the first node that is not below this one.
- The branches of null and of the type in the union around the type, or -1.
- ``SIZE`` is the bytes of a fixed type, or the number of symbols of an enum. ``SYMBOLS`` is the
  address of their offsets, which precede them.
"""

BOOL, INT8, INT16, INT32, INT64, MILLIS, FLOAT, DOUBLE, FLOAT_AS_DOUBLE, BYTES = range(10)
FIXED, ENUM, DECIMAL_BYTES, DECIMAL_FIXED, ABSENT, RECORD, ARRAY, MAP, MEMBERS = range(10, 19)
"""The operations. ``MILLIS`` are microseconds that are written as milliseconds, ``ABSENT`` is a
field that the rows do not have: null, and ``MEMBERS`` a union as a struct, with a field for each
branch."""

_ROOM = 48
"""The bytes that are written at once, without texts: a branch, a length and a number."""

_MICROS_PER_MILLI = 1_000

U = np.uint64


@kernel(*["int64"] * 4)
def encode_avro(program: int, table: int, output: int, rows: int) -> int:
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
        # The container that is written: its operation, the next node or row and the last, and the
        # node of elements or the row of a record. The stack has those around it.
        stack = bottom
        kind, element, index = RECORD, 0, row
        following, end = 1, load_int64(program + END)
        branch = load_int64(program + BRANCH)
        if branch >= 0:
            place = _put_long(place, branch)
        while True:
            if limit - place < _ROOM:
                return stop(output, row, 0, out.FULL)
            if following == end:
                if kind != RECORD:
                    # The block of no more elements.
                    store_uint8(place, np.uint8(0))
                    place += 1
                if stack == bottom:
                    break
                kind, element, following, end, index = popped(stack)
                stack -= out.FRAME_BYTES
                continue
            if kind == RECORD:
                node = program + following * STRIDE
                item = index
                following = load_int64(node + END)
            else:
                node = program + element * STRIDE
                item = following
                following += 1
                if kind == MAP:
                    # The key is the first column of the entries, two behind the map.
                    keys = index + 2
                    start = offset(table, keys, item)
                    length = offset(table, keys, item + 1) - start
                    if limit - place < length + _ROOM:
                        return stop(output, row, 0, out.FULL)
                    place = _put_bytes(place, data(table, keys) + start, length)
                    if limit - place < _ROOM:
                        return stop(output, row, 0, out.FULL)
            operation = load_int64(node + OPERATION)
            column = load_int64(node + COLUMN)
            absent = operation == ABSENT or is_null(table, column, item)
            null_branch = load_int64(node + NULL_BRANCH)
            if operation == MEMBERS and not absent:
                # The first member that is not null is the value.
                last = load_int64(node + END)
                member = (node - program) // STRIDE + 1
                while member < last:
                    node = program + member * STRIDE
                    if not is_null(table, load_int64(node + COLUMN), item):
                        break
                    member = load_int64(node + END)
                absent = member >= last
                operation = load_int64(node + OPERATION)
                if not absent:
                    column = load_int64(node + COLUMN)
            if absent:
                if null_branch >= 0:
                    place = _put_long(place, null_branch)
                elif operation != ABSENT:
                    return stop(output, row, column, out.BAD_NULL)
                continue
            branch = load_int64(node + BRANCH)
            if branch >= 0:
                place = _put_long(place, branch)
            if operation == INT64:
                place = _put_long(place, load_int64(values(table, column) + 8 * item))
            elif operation == INT32:
                place = _put_long(place, np.int64(load_int32(values(table, column) + 4 * item)))
            elif operation == BYTES:
                start = offset(table, column, item)
                length = offset(table, column, item + 1) - start
                if limit - place < length + _ROOM:
                    return stop(output, row, 0, out.FULL)
                place = _put_bytes(place, data(table, column) + start, length)
            elif operation == DOUBLE:
                store_uint64(place, load_uint64(values(table, column) + 8 * item))
                place += 8
            elif operation == FLOAT:
                store_uint32(place, load_uint32(values(table, column) + 4 * item))
                place += 4
            elif operation == BOOL:
                store_uint8(place, np.uint8(read_bool(table, column, item)))
                place += 1
            elif operation >= RECORD:
                stack = push(stack, kind, element, following, end, index)
                kind = operation
                element = (node - program) // STRIDE + 1
                if kind == RECORD:
                    following, end, index = element, load_int64(node + END), item
                else:
                    following, index = offset(table, column, item), column
                    end = offset(table, column, item + 1)
                    if end > following:
                        place = _put_long(place, end - following)
            elif operation == MILLIS:
                time = load_int64(values(table, column) + 8 * item)
                place = _put_long(place, time // _MICROS_PER_MILLI)
            elif operation == INT8:
                place = _put_long(place, np.int64(load_int8(values(table, column) + item)))
            elif operation == INT16:
                place = _put_long(place, np.int64(load_int16(values(table, column) + 2 * item)))
            elif operation == FLOAT_AS_DOUBLE:
                number = float_of_bits(load_uint32(values(table, column) + 4 * item))
                store_double(place, np.float64(number))
                place += 8
            elif operation == FIXED:
                start = offset(table, column, item)
                length = offset(table, column, item + 1) - start
                if length != load_int64(node + SIZE):
                    return stop(output, row, column, out.BAD_LENGTH)
                if limit - place < length + _ROOM:
                    return stop(output, row, 0, out.FULL)
                copy_memory(place, data(table, column) + start, length)
                place += length
            elif operation == ENUM:
                start = offset(table, column, item)
                length = offset(table, column, item + 1) - start
                symbols, count = load_int64(node + SYMBOLS), load_int64(node + SIZE)
                symbol = find_symbol(symbols, count, data(table, column) + start, length)
                if symbol < 0:
                    return stop(output, row, column, out.BAD_SYMBOL)
                place = _put_long(place, symbol)
            else:
                source = values(table, column) + 16 * item
                low, high = load_uint64(source), load_int64(source + 8)
                size = _decimal_bytes(low, high)
                if operation == DECIMAL_BYTES:
                    place = _put_decimal(_put_long(place, size), low, high, size)
                else:
                    fixed = load_int64(node + SIZE)
                    if size > fixed:
                        return stop(output, row, column, out.BAD_RANGE)
                    if limit - place < fixed + _ROOM:
                        return stop(output, row, 0, out.FULL)
                    place = _put_decimal(place, low, high, fixed)
        row += 1
        store_int64(offsets + 8 * row, place - address)
    return out.DONE


@inlined
def _put_long(at_: int, number: Any) -> Any:
    """Write a zig-zag varint."""
    return put_varint(at_, (U(number) << U(1)) ^ U(number >> 63))


@inlined
def _put_bytes(at_: int, source: int, size: int) -> Any:
    at_ = _put_long(at_, size)
    copy_memory(at_, source, size)
    return at_ + size


@inlined
def _decimal_bytes(low: Any, high: int) -> Any:
    """Return the bytes of a number of 128 bits in two's complement, at least 1."""
    sign = U(0xFF) if high < 0 else U(0)
    size = 16
    while size > 1 and _byte(low, high, size - 1) == sign:
        if (_byte(low, high, size - 2) >> U(7)) != (sign >> U(7)):
            break
        size -= 1
    return size


@inlined
def _byte(low: Any, high: int, number: int) -> Any:
    """Return a byte of a number of 128 bits; beyond those, its sign."""
    if number < 8:
        return (low >> U(8 * number)) & U(0xFF)
    if number < 16:
        return (U(high) >> U(8 * number - 64)) & U(0xFF)
    return U(0xFF) if high < 0 else U(0)


@inlined
def _put_decimal(at_: int, low: Any, high: int, size: int) -> Any:
    """Write a number of 128 bits in ``size`` bytes, big-endian."""
    for number in range(size):
        store_uint8(at_ + number, np.uint8(_byte(low, high, size - 1 - number)))
    return at_ + size
