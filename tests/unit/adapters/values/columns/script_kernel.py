"""A kernel that puts what a script says: the numbers of a step are an action, a column, a value."""

from typing import Any, Final

from kernel_build.development import compile_now
from pyspark_kafka.adapters.kernels.kernel import kernel
from pyspark_kafka.adapters.kernels.memory import load_int64
from pyspark_kafka.adapters.values.columns.column_kernel import (
    close_list,
    close_struct,
    has_room_for,
    is_full,
    put_bool,
    put_bytes,
    put_decimal,
    put_double,
    put_float,
    put_int8,
    put_int16,
    put_int32,
    put_int64,
    put_null,
    truncate,
)

NULL: Final = 0
BOOL: Final = 1
INT8: Final = 2
INT16: Final = 3
INT32: Final = 4
INT64: Final = 5
FLOAT: Final = 6
DOUBLE: Final = 7
BYTES: Final = 8
LIST: Final = 9
STRUCT: Final = 10
TRUNCATE: Final = 11
ELEMENT: Final = 12
DECIMAL: Final = 13

DONE: Final = -1
FULL: Final = -2


@compile_now
@kernel("int64", "int64", "int64", "float64[]", "int64", "int64")
def put_all(table: int, script: int, count: int, doubles: Any, texts: int, start: int) -> int:
    """Put from step ``start`` on; return ``DONE``, or the step for which there is no room."""
    for step in range(start, count):
        place = script + 32 * step
        action = load_int64(place)
        column = load_int64(place + 8)
        value = load_int64(place + 16)
        size = load_int64(place + 24)
        if action == NULL:
            put_null(table, column)
        elif action == BOOL:
            put_bool(table, column, value != 0)
        elif action == INT8:
            put_int8(table, column, value)
        elif action == INT16:
            put_int16(table, column, value)
        elif action == INT32:
            put_int32(table, column, value)
        elif action == INT64:
            put_int64(table, column, value)
        elif action == FLOAT:
            put_float(table, column, doubles[value])
        elif action == DOUBLE:
            put_double(table, column, doubles[value])
        elif action == DECIMAL:
            put_decimal(table, column, value, -1 if value < 0 else 0)
        elif action == BYTES:
            if not has_room_for(table, column, size):
                return step
            put_bytes(table, column, texts + value, size)
        elif action == LIST:
            close_list(table, column)
        elif action == STRUCT:
            close_struct(table, column)
        elif action == TRUNCATE:
            truncate(table, column, value)
        elif action == ELEMENT and is_full(table, column):
            return step
    return DONE
