"""The kernel that decodes Avro values by a program for each writer's schema."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ...kernels.kernel import kernel
from ...kernels.memory import (
    double_of_bits,
    float_of_bits,
    high_product,
    load_int32,
    load_int64,
    load_uint8,
    load_uint32,
    load_uint64,
    store_int32,
    store_int64,
    store_uint8,
)
from ...kernels.parts import inlined
from ..columns import decoding
from ..columns.bytes_kernel import read_varint, zig_zag
from ..columns.column_kernel import (
    close_list,
    close_struct,
    is_full,
    lacks_room,
    put_bool,
    put_bytes,
    put_complete_struct,
    put_decimal,
    put_double,
    put_float,
    put_int32,
    put_int64,
    put_null,
    truncate,
)
from ..columns.map_kernel import has_duplicate_keys, needed_slots
from ..columns.utf8 import is_utf8
from . import decode_program as op


@inlined
def word(start: int, first: int, last: int) -> Any:
    """Return bytes ``first`` to ``last`` from an address as 64 bits; before 0, the sign."""
    bits = np.uint64(0)
    sign = np.uint64(255) if load_uint8(start) > 127 else np.uint64(0)
    for place in range(first, last):
        byte = np.uint64(load_uint8(start + place)) if place >= 0 else sign
        bits = bits << np.uint64(8) | byte
    return bits


@inlined
def low_word(start: int, size: int) -> Any:
    """Return the lower 64 bits of a number of ``size`` bytes."""
    return word(start, size - 8, size)


@inlined
def high_word(start: int, size: int) -> Any:
    """Return the upper 64 of the 128 bits of a number of ``size`` bytes."""
    return np.int64(word(start, size - 16, size - 8))


@inlined
def is_wider(start: int, size: int) -> Any:
    """Return whether a number of ``size`` bytes has more than 128 bits."""
    if size <= 16:
        return False
    sign = 255 if load_uint8(start + size - 16) > 127 else 0
    place = 0
    while place < size - 16 and load_uint8(start + place) == sign:
        place += 1
    return place < size - 16


@inlined
def is_below(low: Any, high: int, limit_low: Any, limit_high: Any) -> Any:
    """Return whether the absolute value of 128 bits is below a limit."""
    upper = np.uint64(high)
    lower = low
    if high < 0:
        lower = np.uint64(0) - low
        upper = ~upper + (np.uint64(1) if low == 0 else np.uint64(0))
    return upper < limit_high or (upper == limit_high and lower < limit_low)


@inlined
def high_of_product(low: Any, high: int, factor_low: Any, factor_high: int) -> Any:
    """Return the upper 64 of the lower 128 bits of a product, which fits in them."""
    upper = high_product(low, factor_low)
    upper += low * np.uint64(factor_high) + np.uint64(high) * factor_low
    return np.int64(upper)


STACK_WORDS: Final = 2048
"""Each array, map, skipped record and default that is open takes one or two words."""

MAX_VARINT_BYTES: Final = 10

MAX_EMPTY_ELEMENTS: Final = 65_536
"""How many elements without a byte, as nulls and empty records, a value may have."""

MAX_DEFAULT_BYTES: Final = 16 * 1024**2
"""How many bytes of defaults a value may have: elements of arrays can have defaults."""

WORDS: Final = decoding.HEAD_BYTES // 8 + 6
PROGRAMS, WRITERS, STACK, SLOTS, SLOT_COUNT, NEEDED_SLOTS = range(decoding.HEAD_BYTES, 8 * WORDS, 8)
"""The words behind those of each decoder: the address of the addresses of programs, one for each
writer's schema, the first for values without their own schema, 0 is an incompatible schema; and
last the slots that a row's keys need, if there are too few."""

MS_A_DAY: Final = 86_400_000
INT64_MAX: Final = 2**63 - 1


@inlined
def read_long(at: int, end: int) -> Any:
    """Return a zig-zag varint of at most 64 bits and the address behind it, or a negative one."""
    if at < end:
        first = load_uint8(at)
        if first < 128:
            return np.int64(first >> 1) ^ -np.int64(first & 1), np.int64(at + 1)
    bits, behind = read_varint(at, end, np.int64(MAX_VARINT_BYTES))
    if behind - at == MAX_VARINT_BYTES and load_uint8(behind - 1) > 1:
        return np.int64(0), np.int64(-decoding.BAD_VARINT)
    return zig_zag(bits), np.int64(behind)


@kernel(*["int64"] * 4)
def decode_values(table: int, words: int, first: int, count: int) -> int:
    """Decode the values from row ``first`` on; return ``count``, or the row that needs room.

    ``table`` is the address of the columns, ``words`` of the words that ``decoding`` and the
    constants above describe.
    """
    programs = load_int64(words + PROGRAMS)
    data = load_int64(words + decoding.VALUES)
    starts = load_int64(words + decoding.STARTS)
    ends = load_int64(words + decoding.ENDS)
    reasons = load_int64(words + decoding.REASONS)
    writers = load_int64(words + WRITERS)
    fields = load_int64(words + decoding.FIELDS)
    stack = load_int64(words + STACK)
    stack_end = stack + 8 * STACK_WORDS
    for row in range(first, count):
        start = load_int64(starts + 8 * row)
        if start < 0 or load_uint8(reasons + row) != decoding.NONE:
            put_null(table, 0)
            continue
        # Negative where there is no schema.
        writer = max(load_int32(writers + 4 * row), -1)
        program = load_int64(programs + 8 * (writer + 1))
        if program == 0:
            store_uint8(reasons + row, np.uint8(decoding.INCOMPATIBLE_SCHEMA))
            put_null(table, 0)
            continue
        at = data + start
        end = data + load_int64(ends + 8 * row)
        top = stack
        empty_room = np.int64(MAX_EMPTY_ELEMENTS)
        default_room = np.int64(MAX_DEFAULT_BYTES)
        reason = decoding.NONE
        pc = program
        while True:
            operation = load_int64(pc)
            column = load_int64(pc + op.COLUMN)
            if operation == op.INT64:
                number, behind = read_long(at, end)
                if behind < 0:
                    reason = -behind
                    break
                if behind - at > load_int64(pc + op.A):
                    reason = decoding.BAD_VARINT
                    break
                at = behind
                put_int64(table, column, number)
            elif operation in (op.STRING, op.BINARY):
                number, behind = read_long(at, end)
                if behind < 0:
                    reason = -behind
                    break
                if number < 0 or number > end - behind:
                    reason = decoding.BAD_LENGTH if number < 0 else decoding.TRUNCATED
                    break
                if operation == op.STRING and not is_utf8(behind, number):
                    reason = decoding.BAD_UTF8
                    break
                if lacks_room(words, table, column, number):
                    truncate(table, 0, row)
                    return row
                put_bytes(table, column, behind, number)
                at = behind + number
            elif operation == op.DOUBLE:
                if end - at < 8:
                    reason = decoding.TRUNCATED
                    break
                put_double(table, column, double_of_bits(load_uint64(at)))
                at += 8
            elif operation in (op.NULLABLE, op.SKIP_NULLABLE):
                number, behind = read_long(at, end)
                if behind < 0:
                    reason = -behind
                    break
                if number < 0 or number > 1:
                    reason = decoding.BAD_UNION
                    break
                at = behind
                if number == load_int64(pc + op.A):
                    if operation == op.NULLABLE:
                        put_null(table, column)
                    pc = program + load_int64(pc + op.B)
                    continue
            elif operation == op.SKIP_BYTES:
                number, behind = read_long(at, end)
                if behind < 0:
                    reason = -behind
                    break
                if number < 0 or number > end - behind:
                    reason = decoding.BAD_LENGTH if number < 0 else decoding.TRUNCATED
                    break
                at = behind + number
            elif operation == op.SKIP_VARINT:
                number, behind = read_long(at, end)
                if behind < 0:
                    reason = -behind
                    break
                at = behind
            elif operation == op.SKIP_FIXED:
                number = load_int64(pc + op.A)
                if number > end - at:
                    reason = decoding.TRUNCATED
                    break
                at += number
            elif operation == op.INT32:
                number, behind = read_long(at, end)
                if behind < 0:
                    reason = -behind
                    break
                if behind - at > 5 or number != np.int64(np.int32(number)):
                    reason = decoding.BAD_VARINT
                    break
                at = behind
                put_int32(table, column, number)
            elif operation == op.BOOLEAN:
                if at >= end:
                    reason = decoding.TRUNCATED
                    break
                byte = load_uint8(at)
                if byte > 1:
                    reason = decoding.MALFORMED
                    break
                put_bool(table, column, byte == 1)
                at += 1
            elif operation == op.FLOAT:
                if end - at < 4:
                    reason = decoding.TRUNCATED
                    break
                put_float(table, column, float_of_bits(load_uint32(at)))
                at += 4
            elif operation == op.STRUCT:
                put_complete_struct(table, column)
            elif operation == op.ENUM:
                number, behind = read_long(at, end)
                if behind < 0:
                    reason = -behind
                    break
                if number < 0 or number >= load_int64(pc + op.A):
                    reason = decoding.BAD_ENUM
                    break
                at = behind
                symbols = program + load_int64(pc + op.B)
                size = load_int64(symbols + 16 * number + 8)
                if size < 0:
                    reason = decoding.BAD_ENUM
                    break
                if lacks_room(words, table, column, size):
                    truncate(table, 0, row)
                    return row
                put_bytes(table, column, symbols + load_int64(symbols + 16 * number), size)
            elif operation == op.NULL:
                put_null(table, column)
            elif operation == op.UNION:
                number, behind = read_long(at, end)
                if behind < 0:
                    reason = -behind
                    break
                if number < 0 or number >= load_int64(pc + op.A):
                    reason = decoding.BAD_UNION
                    break
                at = behind
                pc = program + load_int64(program + load_int64(pc + op.B) + 8 * number)
                continue
            elif operation == op.JUMP:
                pc = program + load_int64(pc + op.A)
                continue
            elif operation == op.ENTER:
                if top >= stack_end:
                    reason = decoding.TOO_DEEP
                    break
                store_int64(top, 0)
                top += 8
            elif operation == op.NEXT:
                elements = load_int64(pc + op.A)
                remaining = load_int64(top - 8)
                if remaining == 0:
                    number, behind = read_long(at, end)
                    if behind < 0:
                        reason = -behind
                        break
                    at = behind
                    if number == 0:
                        top -= 8
                        pc = program + load_int64(pc + op.B)
                        continue
                    if number < 0:
                        size, behind = read_long(at, end)
                        if behind < 0:
                            reason = -behind
                            break
                        if size < 0 or size > end - behind or number == -number:
                            reason = decoding.BAD_LENGTH
                            break
                        at = behind
                        number = -number
                        if elements < 0:
                            at += size
                            continue
                    least = load_int64(pc + op.C)
                    if least == 0:
                        if number > empty_room:
                            reason = decoding.TOO_LARGE
                            break
                        empty_room -= number
                    elif number > (end - at) // least:
                        reason = decoding.BAD_LENGTH
                        break
                    remaining = number
                if elements >= 0 and is_full(table, elements):
                    truncate(table, 0, row)
                    store_int64(words + decoding.FULL_COLUMN, elements)
                    return row
                store_int64(top - 8, remaining - 1)
            elif operation == op.CLOSE_ARRAY:
                close_list(table, column)
            elif operation == op.CLOSE_MAP:
                number = needed_slots(table, column)
                if number > load_int64(words + SLOT_COUNT):
                    truncate(table, 0, row)
                    store_int64(words + NEEDED_SLOTS, number)
                    return row
                if has_duplicate_keys(table, column, load_int64(words + SLOTS), number):
                    reason = decoding.MALFORMED
                    break
                close_list(table, column)
            elif operation == op.MEMBER:
                close_struct(table, column)
            elif operation == op.FIXED:
                number = load_int64(pc + op.A)
                if number > end - at:
                    reason = decoding.TRUNCATED
                    break
                if lacks_room(words, table, column, number):
                    truncate(table, 0, row)
                    return row
                put_bytes(table, column, at, number)
                at += number
            elif operation == op.DECIMAL:
                number = load_int64(pc + op.A)
                behind = np.int64(at)
                if number < 0:
                    number, behind = read_long(at, end)
                    if behind < 0:
                        reason = -behind
                        break
                if number <= 0 or number > end - behind:
                    reason = decoding.BAD_LENGTH if number <= 0 else decoding.TRUNCATED
                    break
                low = low_word(behind, number)
                high = high_word(behind, number)
                limit_low, limit_high = load_uint64(pc + op.B), load_uint64(pc + op.C)
                if is_wider(behind, number) or not is_below(low, high, limit_low, limit_high):
                    reason = decoding.OUT_OF_RANGE
                    break
                factor, upper = load_uint64(pc + op.D), load_int64(pc + op.E)
                if factor != 1:
                    high = high_of_product(low, high, factor, upper)
                    low *= factor
                put_decimal(table, column, low, high)
                at = behind + number
            elif operation < op.DOUBLE_OF_FLOAT:
                number, behind = read_long(at, end)
                if behind < 0:
                    reason = -behind
                    break
                if behind - at > load_int64(pc + op.A):
                    reason = decoding.BAD_VARINT
                    break
                at = behind
                if operation == op.MULTIPLIED:
                    factor_of_unit = load_int64(pc + op.B)
                    limit = INT64_MAX // factor_of_unit
                    if number > limit or number < -limit:
                        reason = decoding.OUT_OF_RANGE
                        break
                    put_int64(table, column, number * factor_of_unit)
                elif operation == op.DATE_OF_MILLIS:
                    # Spark rounds towards 1970.
                    days = number // MS_A_DAY + (number < 0 and number % MS_A_DAY != 0)
                    if days != np.int64(np.int32(days)):
                        reason = decoding.OUT_OF_RANGE
                        break
                    put_int32(table, column, days)
                elif operation == op.FLOAT_OF_INTEGER:
                    put_float(table, column, np.float32(number))
                elif operation == op.DOUBLE_OF_INTEGER:
                    put_double(table, column, np.float64(number))
                else:
                    put_double(table, column, np.float64(np.float32(number)))
            elif operation == op.DOUBLE_OF_FLOAT:
                if end - at < 4:
                    reason = decoding.TRUNCATED
                    break
                put_double(table, column, np.float64(float_of_bits(load_uint32(at))))
                at += 4
            elif operation == op.DEFAULT:
                if top + 8 >= stack_end:
                    reason = decoding.TOO_DEEP
                    break
                default_room -= load_int64(pc + op.A)
                if default_room < 0:
                    reason = decoding.TOO_LARGE
                    break
                store_int64(top, at)
                store_int64(top + 8, end)
                top += 16
                at = program + load_int64(pc + op.B)
                end = at + load_int64(pc + op.A)
            elif operation == op.RESTORE:
                top -= 16
                at = load_int64(top)
                end = load_int64(top + 8)
            elif operation == op.CALL:
                if top >= stack_end:
                    reason = decoding.TOO_DEEP
                    break
                store_int64(top, pc + op.SIZE)
                top += 8
                pc = program + load_int64(pc + op.A)
                continue
            elif operation == op.RETURN:
                top -= 8
                pc = load_int64(top)
                continue
            elif operation == op.FAIL:
                reason = load_int64(pc + op.A)
                break
            else:
                if at != end:
                    reason = decoding.TRAILING_BYTES
                break
            pc += op.SIZE
        if reason != decoding.NONE:
            truncate(table, 0, row)
            put_null(table, 0)
            store_uint8(reasons + row, np.uint8(reason))
            store_int32(fields + 4 * row, np.int32(load_int64(pc + op.NAME)))
    return count
