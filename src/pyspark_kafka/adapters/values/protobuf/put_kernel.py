"""Kernel functions that put Protobuf's values into columns, and close messages."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ...kernels.memory import (
    copy_memory,
    load_int32,
    load_int64,
    load_uint32,
    load_uint64,
    store_int32,
    store_int64,
    store_uint8,
)
from ...kernels.parts import inlined
from ..columns import decoding, layout
from ..columns.column_kernel import (
    close_list,
    close_struct,
    data_end,
    entry,
    has_room_for,
    length,
    put_bool,
    put_bytes,
    put_decimal,
    put_int32,
    put_int64,
    put_null,
    put_written_bytes,
    truncate,
)
from ..columns.map_kernel import has_equal_keys
from . import program_layout as at
from .wire_kernel import FIXED_64, VARINT, read_varint

MAX_COMPARED: Final = 32
"""The most entries of a map in which the kernel looks for duplicate keys; larger maps are checked
after it."""

MICROS: Final = 1_000_000
MAX_SECONDS: Final = (2**63 - 1) // MICROS - 3
"""32 bits of nanoseconds are less than three seconds."""


@inlined
def read_number(wire: Any, position: Any, end: Any) -> Any:
    """Return the 64 bits of a varint or a fixed number, and the position after it."""
    if wire == VARINT:
        return read_varint(position, end)
    if wire == FIXED_64:
        if end - position < 8:
            return np.uint64(0), np.int64(-decoding.TRUNCATED)
        return load_uint64(position), position + 8
    if end - position < 4:
        return np.uint64(0), np.int64(-decoding.TRUNCATED)
    return np.uint64(load_uint32(position)), position + 4


@inlined
def converted(raw: Any, convert: Any) -> Any:
    """Return the value of a number on the wire, as a signed number."""
    if convert == at.AS_IS:
        return np.int64(raw)
    if convert == at.UNSIGNED_32:
        return np.int64(raw & np.uint64(0xFFFFFFFF))
    if convert == at.ZIGZAG_64:
        return np.int64(raw >> np.uint64(1)) ^ -np.int64(raw & np.uint64(1))
    if convert == at.ZIGZAG_32:
        low = raw & np.uint64(0xFFFFFFFF)
        return np.int64(np.int32(low >> np.uint64(1))) ^ -np.int64(low & np.uint64(1))
    if convert == at.TRUTH:
        return np.int64(raw != np.uint64(0))
    return np.int64(np.int32(raw & np.uint64(0xFFFFFFFF)))


@inlined
def put_number(table: Any, column: Any, store: Any, value: Any) -> None:
    """Append a number, or the bits of a floating-point number."""
    if store == at.BITS_64:
        put_int64(table, column, value)
    elif store == at.BITS_32:
        put_int32(table, column, value)
    elif store == at.BITS_8:
        put_bool(table, column, value != 0)
    else:
        put_decimal(table, column, value, 0)


@inlined
def extend_bytes(table: Any, column: Any, source: Any, size: Any) -> None:
    """Append bytes, for which there is room, to the last value of a column."""
    address = entry(table, column)
    copy_memory(data_end(table, column), source, size)
    end = load_int64(address + layout.DATA_LENGTH) + size
    store_int64(address + layout.DATA_LENGTH, end)
    offsets = load_int64(address + layout.VALUES)
    store_int32(offsets + 4 * load_int64(address + layout.LENGTH), np.int32(end))


@inlined
def enum_value(enum: Any, number: Any) -> Any:
    """Return the address of an enum's value, or 0 if it has none of this number."""
    low = np.int64(0)
    high = load_int64(enum + at.ENUM_COUNT)
    if 0 <= number < high:
        # The numbers of most enums are 0, 1, 2 ...
        place = enum + at.ENUM_VALUES + number * at.ENUM_STRIDE
        if load_int64(place) == number:
            return place
    while low < high:
        middle = (low + high) >> 1
        if load_int64(enum + at.ENUM_VALUES + middle * at.ENUM_STRIDE) < number:
            low = middle + 1
        else:
            high = middle
    place = enum + at.ENUM_VALUES + low * at.ENUM_STRIDE
    is_known = low < load_int64(enum + at.ENUM_COUNT) and load_int64(place) == number
    return place if is_known else np.int64(0)


@inlined
def put_enum_name(table: Any, column: Any, enum: Any, number: Any) -> Any:
    """Append the name of an enum's value; return 0, or how many bytes there is no room for.

    An unknown one is named as Java does (``getName`` of ``findValueByNumberCreatingIfUnknown``).
    """
    place = enum_value(enum, number)
    if place != 0:
        size = load_int64(place + 16)
        if not has_room_for(table, column, size):
            return size
        put_bytes(table, column, load_int64(place + 8), size)
        return np.int64(0)
    size = load_int64(enum + at.ENUM_PREFIX_SIZE)
    if not has_room_for(table, column, size + at.MAX_DIGITS):
        return size + at.MAX_DIGITS
    target = data_end(table, column)
    copy_memory(target, load_int64(enum + at.ENUM_PREFIX), size)
    put_written_bytes(table, column, size + _write_digits(target + size, number))
    return np.int64(0)


@inlined
def _write_digits(target: Any, number: Any) -> Any:
    """Write a number in decimal; return how many characters it has."""
    rest = abs(number)
    count = np.int64(number < 0)
    scale = np.int64(1)
    while scale * 10 <= rest:
        scale *= 10
    if number < 0:
        store_uint8(target, np.uint8(0x2D))
    while scale > 0:
        store_uint8(target + count, np.uint8(0x30 + (rest // scale) % 10))
        count += 1
        scale //= 10
    return count


@inlined
def put_time(table: Any, column: Any, slot: Any) -> Any:
    """Append the microseconds of a timestamp or a duration; return a reason or 0.

    Java truncates nanoseconds towards zero (``TimeUnit.toMicros``).
    """
    seconds = load_int64(slot + 8)
    nanos = load_int64(slot + 16)
    for part in range(3):
        store_int64(slot + 8 * part, 0)
    if not -MAX_SECONDS <= seconds <= MAX_SECONDS:
        return decoding.OUT_OF_RANGE
    micros = abs(nanos) // 1000
    put_int64(table, column, seconds * MICROS + (-micros if nanos < 0 else micros))
    return 0


@inlined
def close_map(table: Any, column: Any, width: Any, marks: Any) -> None:
    """Append a map; mark its column if its keys are, or may be, not unique.

    ``width`` is the bytes of a key, 0 for strings.
    """
    address = entry(table, column)
    row = load_int64(address + layout.LENGTH)
    first = np.int64(load_int32(load_int64(address + layout.VALUES) + 4 * row))
    last = length(table, column + 1)
    close_list(table, column)
    if last - first > MAX_COMPARED or has_equal_keys(entry(table, column + 2), width, first, last):
        mark = marks + 8 * column
        store_int64(mark, load_int64(mark) | at.DUPLICATE_KEYS)


@inlined
def close_message(table: Any, node: Any, base: Any, slots: Any, marks: Any) -> Any:
    """Run the closing steps of a message whose first value is number ``base`` of its columns.

    Return a reason or 0, a column, and how many bytes that column has no room for, or -1.
    """
    step = load_int64(node + at.STEPS)
    end = step + load_int64(node + at.STEP_COUNT) * at.STEP_STRIDE
    while step < end:
        kind = load_int64(step + at.STEP)
        column = load_int64(step + at.STEP_COLUMN)
        slot = slots + 8 * load_int64(step + at.STEP_SLOT)
        value = load_int64(step + at.STEP_VALUE)
        if kind == at.CLOSE_STRUCT:
            close_struct(table, column)
        elif kind == at.CLOSE_LIST:
            close_list(table, column)
        elif kind == at.CLOSE_MAP:
            close_map(table, column, load_int64(step + at.STEP_SIZE), marks)
        elif kind == at.BEGIN_MESSAGE:
            if load_int64(slot) == 0:
                step += value * at.STEP_STRIDE
            else:
                store_int64(slot, 0)
        elif kind == at.PUT_TIME:
            if load_int64(slot) != 0 or value != 0:
                reason = put_time(table, column, slot)
                if reason != 0:
                    return reason, column, np.int64(-1)
        elif kind == at.PUT_DEFAULT:
            if length(table, column) == base:
                put_number(table, column, load_int64(step + at.STEP_STORE), value)
        elif kind == at.PUT_DEFAULT_BYTES:
            if length(table, column) == base:
                size = load_int64(step + at.STEP_SIZE)
                if not has_room_for(table, column, size):
                    return 0, column, size
                put_bytes(table, column, value, size)
        elif kind == at.NULL_ELEMENT:
            if length(table, column) == base:
                put_null(table, column)
        elif kind == at.REQUIRE_VALUE:
            if length(table, column) == base:
                return decoding.MALFORMED, column, np.int64(-1)
        elif kind == at.REQUIRE_SLOT:
            if load_int64(slot) == 0:
                return decoding.MALFORMED, column, np.int64(-1)
        elif kind == at.CLEAR_SLOT:
            store_int64(slot, 0)
        elif load_int64(slot) != 0:  # DROP_ENTRY, the last step but one
            store_int64(slot, 0)
            truncate(table, column, base)
            step = end
        step += at.STEP_STRIDE
    return 0, np.int64(-1), np.int64(-1)
