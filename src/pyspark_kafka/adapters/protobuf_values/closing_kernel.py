"""The kernel function that closes a message: see ``program_layout``."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ...domain.values.errors import FailureReason
from ..kernels.memory import load_int64, store_int64
from ..kernels.parts import inlined
from ..value_columns.column_kernel import (
    close_list,
    close_struct,
    has_room_for,
    length,
    put_bytes,
    put_null,
    truncate,
)
from . import program_layout as at
from .put_kernel import close_map, put_number, put_time

MALFORMED: Final = int(FailureReason.MALFORMED)


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
                return MALFORMED, column, np.int64(-1)
        elif kind == at.REQUIRE_SLOT:
            if load_int64(slot) == 0:
                return MALFORMED, column, np.int64(-1)
        elif kind == at.CLEAR_SLOT:
            store_int64(slot, 0)
        elif load_int64(slot) != 0:  # DROP_ENTRY, the last step but one
            store_int64(slot, 0)
            truncate(table, column, base)
            step = end
        step += at.STEP_STRIDE
    return 0, np.int64(-1), np.int64(-1)
