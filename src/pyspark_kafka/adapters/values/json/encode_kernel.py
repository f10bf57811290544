"""The kernel that encodes rows as JSON; one for all schemas."""

from __future__ import annotations

import numpy as np

from ...kernels.kernel import kernel
from ...kernels.memory import (
    copy_memory,
    load_int8,
    load_int16,
    load_int32,
    load_int64,
    load_uint32,
    load_uint64,
    store_int64,
    store_uint8,
    store_uint32,
)
from ..encoding import row_encoder as out
from ..encoding.input_columns import data, is_null, local_values, offset, read_bool, values
from ..encoding.row_encoder import popped, push, stop
from . import encode_table as slot
from .number_writing_kernel import (
    SCRATCH_BYTES,
    put_bool,
    put_decimal,
    put_double,
    put_float,
    put_signed,
)
from .pattern_kernel import MICROS_PER_DAY, MICROS_PER_SECOND, put_time
from .text_writing_kernel import put_base64, put_string

_COMMA = np.uint8(44)
_COLON = np.uint8(58)
_QUOTE = np.uint8(34)
_NULL = np.uint32(int.from_bytes(b"null", "little"))


@kernel(*["int64"] * 4)
def encode_json(program: int, table: int, output: int, rows: int) -> int:
    """Encode rows; the arguments are those of ``RowEncoder``."""
    address = load_int64(output + out.ADDRESS)
    offsets = load_int64(output + out.OFFSETS)
    prefix, prefix_size = load_int64(output + out.PREFIX), load_int64(output + out.PREFIX_SIZE)
    scratch = load_int64(output + out.SCRATCH)
    keeps_nulls = load_int64(program + slot.KEEPS_NULLS)
    is_ascii = load_int64(program + slot.IS_ASCII)
    room = load_int64(program + slot.ROOM)
    entries = program + slot.HEAD
    limit = address + load_int64(output + out.CAPACITY)
    row = load_int64(output + out.ROW)
    place = address + load_int64(offsets + 8 * row)
    while row < rows:
        if is_null(table, 0, row):
            row += 1
            store_int64(offsets + 8 * row, place - address)
            continue
        if limit - place < prefix_size + room:
            return stop(output, row, 0, out.FULL)
        copy_memory(place, prefix, prefix_size)
        place += prefix_size
        store_uint8(place, np.uint8(123))
        place += 1
        # The container that is written: its kind, its number, its next column or row and its last,
        # and the row of a struct. The stack has the same of those around it.
        stack = scratch + SCRATCH_BYTES
        kind, container, index = slot.STRUCT, 0, row
        following, end = 1, load_int64(entries + slot.END)
        is_first = True
        while True:
            if limit - place < room:
                return stop(output, row, 0, out.FULL)
            if following == end:
                store_uint8(place, np.uint8(93 if kind == slot.LIST else 125))
                place += 1
                if stack == scratch + SCRATCH_BYTES:
                    break
                kind, container, following, end, index = popped(stack)
                stack -= out.FRAME_BYTES
                is_first = False
                continue
            is_key = False
            if kind == slot.STRUCT:
                column, item = following, index
                entry = entries + column * slot.STRIDE
                following = load_int64(entry + slot.END)
                absent = is_null(table, column, item)
                if absent and not keeps_nulls:
                    continue
                # The name begins with a comma.
                skipped = 1 if is_first else 0
                size = load_int64(entry + slot.NAME_SIZE) - skipped
                copy_memory(place, load_int64(entry + slot.NAME) + skipped, size)
                place += size
            elif kind == slot.LIST:
                column, item = container + 1, following
                entry = entries + column * slot.STRIDE
                following += 1
                absent = is_null(table, column, item)
                if not is_first:
                    store_uint8(place, _COMMA)
                    place += 1
            else:
                # A map's key and value come one after the other, each in a turn of the loop.
                is_key = index == 0
                column = container + 2
                if not is_key:
                    column = load_int64(entries + column * slot.STRIDE + slot.END)
                item = following
                entry = entries + column * slot.STRIDE
                absent = is_null(table, column, item)
                if is_key:
                    index = 1
                    if not is_first:
                        store_uint8(place, _COMMA)
                        place += 1
                else:
                    index = 0
                    following += 1
            is_first = False
            if absent:
                store_uint32(place, _NULL)
                place += 4
                continue
            type_ = load_int64(entry + slot.KIND)
            if type_ == slot.STRING or type_ == slot.BINARY:
                start = offset(table, column, item)
                length = offset(table, column, item + 1) - start
                source = data(table, column) + start
                if type_ == slot.STRING:
                    place = put_string(place, limit, source, length, is_ascii)
                else:
                    place = put_base64(place, limit, source, length)
                if place < 0 or limit - place < room:
                    return stop(output, row, 0, out.FULL)
            elif type_ >= slot.STRUCT:
                stack = push(stack, kind, container, following, end, index)
                kind, container, is_first = type_, column, True
                if kind == slot.STRUCT:
                    following, end, index = column + 1, load_int64(entry + slot.END), item
                else:
                    following = offset(table, column, item)
                    end = offset(table, column, item + 1)
                    index = 0
                store_uint8(place, np.uint8(91 if kind == slot.LIST else 123))
                place += 1
            else:
                if is_key:
                    store_uint8(place, _QUOTE)
                    place += 1
                if type_ == slot.INT64:
                    place = put_signed(place, load_int64(values(table, column) + 8 * item))
                elif type_ == slot.INT32:
                    number = np.int64(load_int32(values(table, column) + 4 * item))
                    place = put_signed(place, number)
                elif type_ == slot.DOUBLE:
                    bits = load_uint64(values(table, column) + 8 * item)
                    place = put_double(place, scratch, bits, not is_key)
                elif type_ == slot.FLOAT:
                    bits = np.uint64(load_uint32(values(table, column) + 4 * item))
                    place = put_float(place, scratch, bits, not is_key)
                elif type_ == slot.BOOL:
                    place = put_bool(place, read_bool(table, column, item))
                elif type_ == slot.DECIMAL:
                    source = values(table, column) + 16 * item
                    scale = load_int64(entry + slot.SCALE)
                    low, high = load_uint64(source), load_int64(source + 8)
                    place = put_decimal(place, scratch, low, high, scale)
                elif type_ == slot.INT8:
                    place = put_signed(place, np.int64(load_int8(values(table, column) + item)))
                elif type_ == slot.INT16:
                    number = np.int64(load_int16(values(table, column) + 2 * item))
                    place = put_signed(place, number)
                else:
                    store_uint8(place, _QUOTE)
                    if type_ == slot.DATE:
                        days = np.int64(load_int32(values(table, column) + 4 * item))
                        micros, offset_s = 0, 0
                    else:
                        time = load_int64(values(table, column) + 8 * item)
                        local, offset_s = time, 0
                        if type_ == slot.TIMESTAMP:
                            local = load_int64(local_values(table, column) + 8 * item)
                            offset_s = (local - time) // MICROS_PER_SECOND
                        days = local // MICROS_PER_DAY
                        micros = local - days * MICROS_PER_DAY
                    steps, pattern = (
                        load_int64(entry + slot.STEPS),
                        load_int64(entry + slot.PATTERN),
                    )
                    place = put_time(place + 1, pattern, steps, days, micros, offset_s)
                    store_uint8(place, _QUOTE)
                    place += 1
                if is_key:
                    store_uint8(place, _QUOTE)
                    place += 1
            if is_key:
                store_uint8(place, _COLON)
                place += 1
        row += 1
        store_int64(offsets + 8 * row, place - address)
    return out.DONE
