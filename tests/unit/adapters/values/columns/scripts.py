"""Scripts that put Python values into columns."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, final

import numpy as np
import pyarrow as pa

from pyspark_kafka.adapters.values.columns.column_set import ColumnSet, ColumnSizes
from pyspark_kafka.adapters.values.columns.layout import Column, columns_of

from . import script_kernel as does

ACTIONS: dict[pa.DataType, int] = {
    pa.bool_(): does.BOOL,
    pa.int8(): does.INT8,
    pa.int16(): does.INT16,
    pa.int32(): does.INT32,
    pa.int64(): does.INT64,
}


@final
class Script:
    """Steps for the rows of a struct type; a dict's missing fields are not put."""

    def __init__(self, struct: pa.DataType) -> None:
        self.columns: tuple[Column, ...] = columns_of(struct)
        self._steps: list[tuple[int, int, int, int]] = []
        self._doubles: list[float] = []
        self._texts = bytearray()

    def truncate(self, size: int) -> None:
        self._steps.append((does.TRUNCATE, 0, size, 0))

    def put(self, value: Any, number: int = 0) -> None:
        """Add the steps that put a value into a column."""
        type_: Any = self.columns[number].type
        if value is None:
            self._add(does.NULL, number)
        elif pa.types.is_struct(type_):
            self.put_fields(value, number)
            self._add(does.STRUCT, number)
        elif pa.types.is_list(type_) or pa.types.is_map(type_):
            for element in value:
                self._add(does.ELEMENT, number + 1)
                self.put(element, number + 1)
            self._add(does.LIST, number)
        else:
            self._put_atom(value, number, type_)

    def put_fields(self, value: dict[str, Any] | tuple[Any, Any], number: int = 0) -> None:
        """Add the steps that put the fields of a struct and leave it open."""
        type_: Any = self.columns[number].type
        fields = dict(zip(type_.names, value, strict=True)) if isinstance(value, tuple) else value
        child = number + 1
        for field in type_:
            if field.name in fields:
                self.put(fields[field.name], child)
            child = self.columns[child].end

    def _put_atom(self, value: Any, number: int, type_: Any) -> None:
        if isinstance(value, float):
            action = does.FLOAT if pa.types.is_float32(type_) else does.DOUBLE
            self._add(action, number, len(self._doubles))
            self._doubles.append(value)
        elif isinstance(value, Decimal):
            self._add(does.DECIMAL, number, int(value.scaleb(type_.scale)))
        elif isinstance(value, str | bytes):
            encoded = value.encode() if isinstance(value, str) else value
            self._add(does.BYTES, number, len(self._texts), len(encoded))
            self._texts += encoded
        else:
            self._add(ACTIONS[type_], number, int(value))

    def _add(self, action: int, number: int, value: int = 0, size: int = 0) -> None:
        self._steps.append((action, number, value, size))

    def run(
        self, rows: int, data_bytes: int = 0, sizes: ColumnSizes | None = None
    ) -> tuple[pa.Array[Any], int]:
        """Return the array, and how often a column had to grow."""
        columns = ColumnSet(self.columns, rows, data_bytes, sizes)
        script = np.array(self._steps, np.int64).reshape(-1, 4)
        doubles = np.array(self._doubles, np.float64)
        texts = np.frombuffer(bytes(self._texts) + b"\0", np.uint8)
        step = grown = 0
        while True:
            step = does.put_all(
                columns.address, script.ctypes.data, len(script), doubles, texts.ctypes.data, step
            )
            if step == does.DONE:
                return columns.finish(), grown
            columns.grow(int(script[step, 1]), int(script[step, 3]))
            grown += 1
