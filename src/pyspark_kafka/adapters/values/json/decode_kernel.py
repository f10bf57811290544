"""JSON values to columns, in one pass of machine code that interprets a schema's decode_table.

The values are untrusted: nothing is read past the end of a value but for whole words within the
memory of all, and nothing is written without room. A value that is bad leaves its row with the
fields that could be decoded.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ...kernels.kernel import kernel
from ...kernels.memory import (
    load_int64,
    load_uint8,
    load_uint64,
    store_int32,
    store_int64,
    store_uint8,
)
from ...kernels.parts import inlined
from ..columns import decoding
from ..columns.column_kernel import (
    close_list,
    close_struct,
    is_full,
    length,
    put_null,
    truncate,
)
from ..columns.decoding import MALFORMED, TOO_DEEP, TRUNCATED, TYPE_MISMATCH
from . import context as words
from . import decode_table
from .context import FULL
from .raw_value_kernel import (
    CLOSE_BRACE,
    CLOSE_BRACKET,
    COLON,
    COMMA,
    NULL,
    OPEN_BRACE,
    OPEN_BRACKET,
    is_quote,
    skip_colon,
    skip_name,
    skip_value,
)
from .text_kernel import BACKSLASH, QUOTE, has_word, plain_end, skip_space, unescape
from .value_kernel import put_plain, put_scalar, put_text

FRAME_BYTES: Final = 32
_COLUMN: Final = 0
_EXPECTED: Final = 8
_MEMBER: Final = 16
"""Of a struct: the column of the member that is being decoded."""

_START: Final = 24
"""Of a struct: the position of that member's value."""

_NO_FIELD: Final = -1


@kernel(*["int64"] * 4)
def decode_rows(table: int, context: int, first: int, last: int) -> int:
    """Decode rows ``[first, last)`` and return the row at which it stopped: ``last`` at the end.

    A row at which it stopped is not in the columns: one lacks room, or the offsets of a time zone.
    """
    starts = load_int64(context + decoding.STARTS)
    ends = load_int64(context + decoding.ENDS)
    values = load_int64(context + decoding.VALUES)
    reasons = load_int64(context + decoding.REASONS)
    fields = load_int64(context + decoding.FIELDS)
    for row in range(first, last):
        start = load_int64(starts + 8 * row)
        if start < 0 or load_uint8(reasons + row) != 0:
            put_null(table, 0)
            continue
        store_int64(context + words.REASON, 0)
        store_int64(context + words.FIELD, _NO_FIELD)
        end = values + load_int64(ends + 8 * row)
        result = _decode_row(context, table, values + start, end)
        if result <= FULL:
            truncate(table, 0, row)
            return row
        if result < 0:
            truncate(table, 0, row)
            close_struct(table, 0)
            store_int64(context + words.REASON, -result)
            store_int64(context + words.FIELD, _NO_FIELD)
        store_uint8(reasons + row, np.uint8(load_int64(context + words.REASON)))
        store_int32(fields + 4 * row, np.int32(load_int64(context + words.FIELD)))
    return last


@inlined
def _decode_row(context: int, table: int, start: int, end: int) -> Any:
    """Put one row; return a negative number if that fails, and otherwise any other."""
    at = skip_space(context, start, end)
    if at >= end:
        # As in Spark, an empty text is null and not an error.
        put_null(table, 0)
        return 0
    if load_uint8(at) != OPEN_BRACE:
        at = skip_value(context, at, end, 0)
        if at < 0:
            return at
        close_struct(table, 0)
        store_int64(context + words.REASON, TYPE_MISMATCH)
        return 0
    return _decode_object(context, table, at + 1, end)


@inlined
def _decode_object(context: int, table: int, start: int, end: int) -> Any:
    """Put the object behind the brace that opens it, with all in it."""
    at = start
    entries = load_int64(context + words.PROGRAM)
    stack = load_int64(context + words.STACK)
    max_depth = load_int64(context + words.MAX_DEPTH)
    limit = load_int64(context + words.LIMIT)
    frame = stack
    column = 0
    kind = decode_table.STRUCT
    expected = 0
    depth = 1
    is_first = True
    store_int64(context + words.DEPTH, 1)
    while True:
        at = skip_space(context, at, end)
        if at >= end:
            return -TRUNCATED
        byte = load_uint8(at)
        is_end = byte == (CLOSE_BRACKET if kind == decode_table.ARRAY else CLOSE_BRACE)
        if is_end:
            at += 1
            if kind == decode_table.STRUCT:
                close_struct(table, column)
            else:
                close_list(table, column)
            if frame == stack:
                return at
            frame -= FRAME_BYTES
            depth -= 1
            store_int64(context + words.DEPTH, depth)
            column = load_int64(frame + _COLUMN)
            expected = load_int64(frame + _EXPECTED)
            kind = load_int64(entries + column * decode_table.STRIDE + decode_table.KIND)
            if kind == decode_table.MAP:
                close_struct(table, column + 1)
            is_first = False
            continue
        if not is_first:
            if byte != COMMA:
                return -MALFORMED
            at = skip_space(context, at + 1, end)
            if at >= end:
                return -TRUNCATED
            byte = load_uint8(at)
        is_first = False
        child = column + 1
        if kind == decode_table.STRUCT:
            # Most names have no escapes.
            name = at + 1
            name_end = plain_end(name, end, limit, QUOTE) if byte == QUOTE else end
            if name_end < end and load_uint8(name_end) == QUOTE:
                at = name_end + 1
            else:
                name, name_end, at = _odd_name(context, at, end)
                if name < 0:
                    return name
            at = _value_start(context, at, end)
            if at < 0:
                return at
            entry = entries + column * decode_table.STRIDE
            member = find_member(entry, expected, name, name_end - name, limit)
            if member < 0:
                at = skip_value(context, at, end, depth)
                if at < 0:
                    return at
                continue
            expected = member + 1
            members = load_int64(entry + decode_table.MEMBERS)
            child = load_int64(members + member * decode_table.MEMBER_STRIDE + decode_table.COLUMN)
            rows = length(table, column)
            if length(table, child) > rows:
                # Of duplicate names, the last one counts.
                truncate(table, child, rows)
        else:
            if is_full(table, child):
                store_int64(context + decoding.FULL_COLUMN, child)
                store_int64(context + decoding.FULL_BYTES, 0)
                return FULL
            if kind == decode_table.MAP:
                at = _put_key(context, table, column + 2, at, end)
                if at > 0:
                    at = _value_start(context, at, end)
                child = column + 3
        result = at
        begin = at
        if at > 0:
            entry = entries + child * decode_table.STRIDE
            child_kind = load_int64(entry + decode_table.KIND)
            if child_kind > decode_table.MAP:
                result = put_scalar(context, table, entry, child, at, end)
            else:
                byte = load_uint8(at)
                if byte == (OPEN_BRACKET if child_kind == decode_table.ARRAY else OPEN_BRACE):
                    depth += 1
                    if depth > max_depth:
                        return -TOO_DEEP
                    store_int64(context + words.DEPTH, depth)
                    store_int64(frame + _COLUMN, column)
                    store_int64(frame + _EXPECTED, expected)
                    store_int64(frame + _MEMBER, child)
                    store_int64(frame + _START, at)
                    frame += FRAME_BYTES
                    column = child
                    kind = child_kind
                    expected = 0
                    is_first = True
                    at += 1
                    continue
                if byte == 110 and has_word(at, end, NULL, 4):
                    put_null(table, child)
                    result = at + 4
                else:
                    result = -TYPE_MISMATCH
        if result > 0:
            at = result
            if kind == decode_table.MAP:
                close_struct(table, column + 1)
            continue
        if result <= FULL:
            return result
        if load_int64(context + words.REASON) == 0:
            store_int64(context + words.REASON, -result)
            store_int64(context + words.FIELD, child)
        # A bad element makes its array or map bad, up to the field of a struct: it is null.
        while kind != decode_table.STRUCT:
            frame -= FRAME_BYTES
            depth -= 1
            column = load_int64(frame + _COLUMN)
            kind = load_int64(entries + column * decode_table.STRIDE + decode_table.KIND)
            if kind == decode_table.STRUCT:
                expected = load_int64(frame + _EXPECTED)
                child = load_int64(frame + _MEMBER)
                begin = load_int64(frame + _START)
        store_int64(context + words.DEPTH, depth)
        truncate(table, child, length(table, column))
        at = skip_value(context, begin, end, depth)
        if at < 0:
            return at


@inlined
def _value_start(context: int, start: int, end: int) -> Any:
    """Return the position of the value behind a colon, which mostly follows at once."""
    if start < end and load_uint8(start) == COLON:
        at = skip_space(context, start + 1, end)
        return at if at < end else -TRUNCATED
    return skip_colon(context, start, end)


@inlined
def _odd_name(context: int, start: int, end: int) -> Any:
    """Return where a name begins and ends without its escapes, and the position behind it."""
    name, name_end, after = skip_name(context, start, end)
    if name < 0 or plain_end(name, name_end, name_end, BACKSLASH) == name_end:
        return name, name_end, after
    scratch = load_int64(context + words.SCRATCH)
    if name_end - name > words.MAX_TEXT_BYTES:
        # No field has so long a name.
        return scratch, scratch, after
    return scratch, unescape(name, name_end, name_end, scratch), after


@inlined
def _put_key(context: int, table: int, column: int, start: int, end: int) -> Any:
    """Put the name of a map's entry, and return the position behind it."""
    byte = load_uint8(start)
    if is_quote(context, byte):
        return put_text(context, table, column, start + 1, end, byte)
    name, name_end, after = skip_name(context, start, end)
    if name < 0:
        return name
    result = put_plain(context, table, column, name, name_end - name)
    return after if result > 0 else result


_FACTOR: Final = np.uint64(decode_table.HASH_FACTOR)
_EIGHT: Final = np.uint64(8)
_ONE: Final = np.uint64(1)


@inlined
def find_member(entry: int, expected: int, name: int, size: int, limit: int) -> Any:
    """Return the index of the member of a name, or -1; names in order are found at once.

    ``expected`` is the index behind the last member's, ``limit`` the end of readable memory.
    """
    first = _first_word(name, size, limit)
    count = load_int64(entry + decode_table.COUNT)
    members = load_int64(entry + decode_table.MEMBERS)
    if expected < count and _is_named(
        members + expected * decode_table.MEMBER_STRIDE, first, name, size
    ):
        return expected
    if count > decode_table.MAX_COMPARED:
        return _find_hashed(entry, members, first, name, size)
    for index in range(count):
        if _is_named(members + index * decode_table.MEMBER_STRIDE, first, name, size):
            return index
    return -1


@inlined
def _find_hashed(entry: int, members: int, first: Any, name: int, size: int) -> Any:
    last = load_uint64(name + size - 8) if size >= 8 else np.uint64(0)
    mixed = (first * _FACTOR + (last ^ np.uint64(size))) * _FACTOR
    mask = load_int64(entry + decode_table.BUCKET_MASK)
    buckets = load_int64(entry + decode_table.BUCKETS)
    place = np.int64(mixed >> np.uint64(32)) & mask
    while True:
        index = load_int64(buckets + 8 * place)
        if index < 0 or _is_named(members + index * decode_table.MEMBER_STRIDE, first, name, size):
            return index
        place = (place + 1) & mask


@inlined
def _first_word(name: int, size: int, limit: int) -> Any:
    if limit - name >= 8:
        word = load_uint64(name)
        return word if size >= 8 else word & ((_ONE << (_EIGHT * np.uint64(size))) - _ONE)
    word = np.uint64(0)
    for place in range(min(size, 8)):
        word |= np.uint64(load_uint8(name + place)) << (_EIGHT * np.uint64(place))
    return word


@inlined
def _is_named(member: int, first: Any, name: int, size: int) -> Any:
    if load_uint64(member + decode_table.FIRST_WORD) != first:
        return False
    if load_int64(member + decode_table.NAME_BYTES) != size:
        return False
    if size <= 8:
        return True
    if load_uint64(member + decode_table.LAST_WORD) != load_uint64(name + size - 8):
        return False
    other = load_int64(member + decode_table.NAME)
    for place in range(8, size - 8, 8):
        if load_uint64(name + place) != load_uint64(other + place):
            return False
    return True
