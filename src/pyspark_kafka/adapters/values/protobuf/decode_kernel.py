"""The kernel that decodes Protobuf messages: it interprets the program of ``program_layout``."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ...kernels.kernel import kernel
from ...kernels.memory import (
    load_int32,
    load_int64,
    load_uint8,
    store_int32,
    store_int64,
    store_uint8,
)
from ...kernels.parts import inlined
from ..columns import decoding
from ..columns.column_kernel import (
    has_room_for,
    is_full,
    length,
    put_bytes,
    put_null,
    truncate,
)
from ..columns.layout import ROOT
from ..columns.utf8 import is_utf8
from . import program_layout as at
from .put_kernel import (
    close_message,
    converted,
    enum_value,
    extend_bytes,
    put_enum_name,
    put_number,
    read_number,
)
from .wire_kernel import END_GROUP, read_length, read_tag, skip_value

MAX_CELLS: Final = 2**27
"""The values below lists that a batch may have, and a record: of 8 bytes, they are 1 GiB."""

MIN_CELLS: Final = 2**20
CELLS_PER_BYTE: Final = 16
"""How many such values a record may have, in addition to ``MIN_CELLS``."""


@inlined
def find_action(node: Any, tag: Any, actions: Any) -> Any:
    """Return the address of the action for a large tag, or 0."""
    tags = load_int64(node + at.LARGE_TAGS)
    low = np.int64(0)
    high = load_int64(node + at.LARGE_COUNT)
    while low < high:
        middle = (low + high) >> 1
        if load_int64(tags + 16 * middle) < tag:
            low = middle + 1
        else:
            high = middle
    if low < load_int64(node + at.LARGE_COUNT) and load_int64(tags + 16 * low) == tag:
        return actions + load_int64(tags + 16 * low + 8) * at.ACTION_STRIDE
    return np.int64(0)


@inlined
def set_oneof(table: Any, action: Any, base: Any, slots: Any) -> None:
    """Note which field of a oneof was set last; remove the one that was set before."""
    slot = slots + 8 * load_int64(action + at.ONEOF)
    before = load_int64(slot)
    store_int64(slot, action)
    if before == 0 or before == action:  # numba has no fast set
        return
    column = load_int64(before + at.COLUMN)
    if column >= 0:
        truncate(table, column, base)
        for number in range(load_int64(before + at.SLOT), load_int64(before + at.SLOT_END)):
            store_int64(slots + 8 * number, 0)


@inlined
def clear_slots(slots: Any, state: Any) -> None:
    """Reset the slots that a discarded record has set."""
    for number in range(load_int64(state + at.SLOT_COUNT)):
        store_int64(slots + 8 * number, 0)


@kernel(*["int64"] * 4)
def decode_messages(table: int, state: int, row: int, count: int) -> int:
    """Decode the payloads from a row on; return ``count``, or the row that needs room.

    If no column needs room, the batch has too many elements.
    """
    data = load_int64(state + decoding.VALUES)
    starts = load_int64(state + decoding.STARTS)
    ends = load_int64(state + decoding.ENDS)
    reasons = load_int64(state + decoding.REASONS)
    fields = load_int64(state + decoding.FIELDS)
    program = load_int64(state + at.PROGRAM)
    actions = load_int64(state + at.ACTIONS)
    root: Any = np.int64(ROOT)  # numba would compile functions again for a literal
    slots = load_int64(state + at.SLOTS)
    marks = load_int64(state + at.MARKS)
    stack = load_int64(state + at.STACK)
    while row < count:
        position = load_int64(starts + 8 * row)
        if position < 0 or load_uint8(reasons + row) != 0:
            put_null(table, root)
            row += 1
            continue
        end = data + load_int64(ends + 8 * row)
        position += data
        allowed = min(MIN_CELLS + CELLS_PER_BYTE * (end - position), MAX_CELLS)
        left = allowed
        node = program
        tags = load_int64(node + at.TAGS)
        tag_count = load_int64(node + at.TAG_COUNT)
        base = row
        group = np.int64(0)
        depth = np.int64(0)
        reason = 0
        column = np.int64(-1)
        room = np.int64(-1)
        while True:
            column = np.int64(-1)
            is_end = position >= end
            tag = np.int64(0)
            if is_end:
                if group != 0:
                    reason = decoding.TRUNCATED
                    break
            else:
                tag, position = read_tag(position, end)
                if position < 0:
                    reason = -position
                    break
                if tag < 8:
                    reason = decoding.MALFORMED
                    break
                if tag & 7 == END_GROUP:
                    if tag >> 3 != group:
                        reason = decoding.MALFORMED
                        break
                    is_end = True
            if is_end:
                if load_int64(node + at.STEP_COUNT) != 0:
                    reason, column, room = close_message(table, node, base, slots, marks)
                    if reason != 0 or column >= 0:
                        break
                if depth == 0:
                    break
                depth -= 1
                frame = stack + depth * at.FRAME
                node = load_int64(frame)
                end = load_int64(frame + 8)
                base = load_int64(frame + 16)
                group = load_int64(frame + 24)
                tags = load_int64(node + at.TAGS)
                tag_count = load_int64(node + at.TAG_COUNT)
                continue

            action = np.int64(0)
            if tag < tag_count:
                number = np.int64(load_int32(tags + 4 * tag))
                if number >= 0:
                    action = actions + number * at.ACTION_STRIDE
            elif load_int64(node + at.LARGE_COUNT) != 0:
                action = find_action(node, tag, actions)
            if action == 0:
                position = skip_value(tag, position, end, stack, depth)
                if position < 0:
                    reason = -position
                    break
                continue

            kind = load_int64(action + at.ACTION)
            flags = load_int64(action + at.FLAGS)
            column = load_int64(action + at.COLUMN)
            if kind == at.BYTES:
                size, position = read_length(position, end)
                if position < 0:
                    reason = -position
                    break
                start = position
                position += size
                if flags & (at.STRICT | at.LOOSE) and not is_utf8(start, size):
                    if flags & at.STRICT:
                        reason = decoding.BAD_UTF8
                        break
                    store_int64(
                        marks + 8 * column, load_int64(marks + 8 * column) | at.INVALID_UTF8
                    )
                if flags & at.REPEATED:
                    if is_full(table, column):
                        room = np.int64(0)
                        break
                    left -= 1
                else:
                    if load_int64(action + at.ONEOF) >= 0:
                        set_oneof(table, action, base, slots)
                    if length(table, column) != base and not flags & at.MERGED:
                        truncate(table, column, base)
                    if flags & at.IMPLICIT and size == 0:
                        continue
                if not has_room_for(table, column, size):
                    room = size
                    break
                if flags & at.MERGED and not flags & at.REPEATED and length(table, column) != base:
                    extend_bytes(table, column, start, size)
                else:
                    put_bytes(table, column, start, size)
            elif at.SCALAR <= kind <= at.PACKED:
                wire = tag & 7
                stop = position
                if kind == at.PACKED:
                    size, position = read_length(position, end)
                    if position < 0:
                        reason = -position
                        break
                    stop = position + size
                    wire = load_int64(action + at.WIRE)
                limit = stop if kind == at.PACKED else end
                while kind == at.SCALAR or position < stop:
                    raw, position = read_number(wire, position, limit)
                    if position < 0:
                        reason = -position
                        break
                    convert = load_int64(action + at.CONVERT)
                    value = converted(raw, convert)
                    if convert >= at.KNOWN_ENUM:
                        enum = load_int64(action + at.ENUM)
                        if load_int64(enum + at.ENUM_CLOSED) != 0 and enum_value(enum, value) == 0:
                            if flags & at.OUTERMOST:
                                reason = decoding.BAD_ENUM
                                break
                            if load_int64(action + at.SLOT) >= 0:
                                store_int64(slots + 8 * load_int64(action + at.SLOT), 1)
                            if kind == at.SCALAR:
                                break
                            continue
                    if flags & at.REPEATED:
                        if is_full(table, column):
                            room = np.int64(0)
                            break
                        left -= 1
                    else:
                        if load_int64(action + at.ONEOF) >= 0:
                            set_oneof(table, action, base, slots)
                        if length(table, column) != base:
                            truncate(table, column, base)
                        if flags & at.IMPLICIT and value == 0:
                            break
                    store = load_int64(action + at.STORE)
                    if store == at.TEXT:
                        size = put_enum_name(table, column, load_int64(action + at.ENUM), value)
                        if size > 0:
                            room = size
                            break
                    else:
                        put_number(table, column, store, value)
                    if kind == at.SCALAR:
                        break
                if reason != 0 or room >= 0:
                    break
            elif kind == at.MESSAGE:
                if depth >= at.MAX_DEPTH:
                    reason = decoding.TOO_DEEP
                    break
                after = end
                start = position
                if not flags & at.DELIMITED:
                    size, start = read_length(position, end)
                    if start < 0:
                        reason = -start
                        break
                    after = start + size
                child = load_int64(action + at.NODE)
                frame = stack + depth * at.FRAME
                store_int64(frame, node)
                store_int64(frame + 8, end)
                store_int64(frame + 16, base)
                store_int64(frame + 24, group)
                if flags & at.REPEATED:
                    if is_full(table, column):
                        room = np.int64(0)
                        break
                    left -= load_int64(child + at.CELLS)
                    base = length(table, column)
                elif load_int64(action + at.ONEOF) >= 0:
                    set_oneof(table, action, base, slots)
                if load_int64(action + at.SLOT) >= 0:
                    store_int64(slots + 8 * load_int64(action + at.SLOT), 1)
                depth += 1
                position = start
                end = after
                group = tag >> 3 if flags & at.DELIMITED else np.int64(0)
                node = child
                tags = load_int64(node + at.TAGS)
                tag_count = load_int64(node + at.TAG_COUNT)
            elif kind == at.SKIP:
                position = skip_value(tag, position, end, stack, depth)
                if position < 0:
                    reason = -position
                    break
                if load_int64(action + at.SLOT) >= 0:
                    store_int64(slots + 8 * load_int64(action + at.SLOT), 1)
                if load_int64(action + at.ONEOF) >= 0:
                    set_oneof(table, action, base, slots)
            elif kind == at.MISMATCH:
                reason = decoding.TYPE_MISMATCH
                break
            else:
                raw, position = read_number(tag & 7, position, end)
                if position < 0:
                    reason = -position
                    break
                slot = slots + 8 * load_int64(action + at.SLOT)
                if kind == at.SECONDS:
                    store_int64(slot + 8, converted(raw, at.AS_IS))
                else:
                    store_int64(slot + 16, converted(raw, at.LOW_32))
            if left < 0:
                reason = decoding.TOO_LARGE
                break

        if room >= 0:
            truncate(table, root, row)
            clear_slots(slots, state)
            store_int64(state + decoding.FULL_COLUMN, column)
            store_int64(state + decoding.FULL_BYTES, room)
            return row
        if reason != 0:
            truncate(table, root, row)
            clear_slots(slots, state)
            put_null(table, root)
            store_uint8(reasons + row, np.uint8(reason))
            store_int32(fields + 4 * row, np.int32(column))
        elif left < allowed:
            spent = load_int64(state + at.CELLS_LEFT) - (allowed - left)
            if spent < 0:
                return row
            store_int64(state + at.CELLS_LEFT, spent)
        row += 1
    return count
