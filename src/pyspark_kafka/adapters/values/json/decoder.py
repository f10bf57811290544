"""The decoder of values in JSON."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from ....ports.values.value_format import DecodedValues, ValueDecoder
from ....ports.values.value_types import arrow_type
from ..columns.column_set import ColumnSet, ColumnSizes
from ..columns.layout import columns_of
from . import context
from .context import KernelMemory
from .decode_kernel import FRAME_BYTES, decode_rows
from .decode_table import DecodeTable
from .zones import ZoneTable

if TYPE_CHECKING:
    from ....domain.values.data_types import StructType
    from ....ports.values.value_format import Payloads
    from ...kernels.arrays import Int64Array, UInt8Array


DEFAULT_LIMIT: Final = 1_000
"""Jackson's ``StreamReadConstraints``: of nesting, and of the digits of a number."""


@final
@dataclass(frozen=True, slots=True)
class JsonOptions:
    """How JSON is read; ``flags`` are those of the kernel's context."""

    flags: int
    max_depth: int = DEFAULT_LIMIT
    max_digits: int = DEFAULT_LIMIT
    time_zone: str = "UTC"
    patterns: tuple[tuple[int, Int64Array], ...] = ()
    """The place in the context for the address of a pattern's steps, and the steps."""


@final
class JsonDecoder(ValueDecoder):
    """Decodes the fields of a type; one thread at a time may use it."""

    def __init__(self, data_type: StructType, options: JsonOptions) -> None:
        self._data_type = data_type
        self._columns = columns_of(arrow_type(data_type))
        self._sizes = ColumnSizes(self._columns)
        self._memory = KernelMemory(options.flags, options.max_depth, options.max_digits)
        depth = DecodeTable(self._memory, data_type, len(self._columns)).depth
        self._memory.point(context.STACK, np.zeros(FRAME_BYTES * (depth + 1), np.uint8))
        for place, steps in options.patterns:
            self._memory.point(place, steps)
            self._memory[place + 8] = len(steps)
        self._zones = ZoneTable(self._memory, options.time_zone)

    @property
    def data_type(self) -> StructType:
        return self._data_type

    @property
    def field_names(self) -> tuple[str, ...]:
        return tuple(column.path for column in self._columns)

    def decode(self, payloads: Payloads) -> DecodedValues:
        rows = len(payloads.starts)
        reasons = payloads.reasons.copy()
        fields = np.full(rows, -1, np.int32)
        starts, ends = (np.ascontiguousarray(each) for each in (payloads.starts, payloads.ends))
        self._point(payloads.values, starts, ends, reasons, fields)
        size = int((ends - starts)[starts >= 0].sum())
        columns = ColumnSet(self._columns, rows, size, self._sizes)
        row = decode_rows(self._memory.address, columns.address, 0, rows)
        while row < rows:
            self._make_room(columns, row, reasons)
            row = decode_rows(self._memory.address, columns.address, row, rows)
        return DecodedValues(columns.finish(), reasons, fields)

    def _point(self, values: Any, *arrays: np.ndarray[Any, Any]) -> None:
        """Let the kernel find a batch; the caller keeps it alive."""
        data = values.buffers()[2]
        address, size = (data.address, data.size) if data else (0, 0)
        memory = self._memory
        memory[context.VALUES], memory[context.LIMIT] = address, address + size
        places = (context.STARTS, context.ENDS, context.REASONS, context.FIELDS)
        for place, array in zip(places, arrays, strict=True):
            memory[place] = array.ctypes.data

    def _make_room(self, columns: ColumnSet, row: int, reasons: UInt8Array) -> None:
        """Make what a row needs that the kernel stopped at."""
        memory = self._memory
        if memory[context.STATUS] == context.FULL:
            full, size = memory[context.FULL_COLUMN], memory[context.FULL_BYTES]
            columns.grow_for(row, reasons, full, size)
        else:
            name = ctypes.string_at(memory[context.ZONE_TEXT], memory[context.ZONE_TEXT_BYTES])
            self._zones.add(name)
