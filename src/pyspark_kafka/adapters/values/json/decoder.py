"""The decoder of values in JSON."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

import numpy as np

from ....ports.values.value_format import ValueDecoder
from ....ports.values.value_types import arrow_type
from ..columns.column_set import ColumnSizes
from ..columns.decoding import DecodeRun
from ..columns.layout import columns_of
from . import context
from .context import KernelMemory
from .decode_kernel import FRAME_BYTES, decode_rows
from .decode_table import DecodeTable
from .zones import ZoneTable

if TYPE_CHECKING:
    from ....domain.values.data_types import StructType
    from ....ports.values.value_format import DecodedValues, Payloads
    from ...kernels.arrays import Int64Array


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
        run = DecodeRun(payloads, self._columns, self._sizes, self._memory.words)
        data = payloads.values.buffers()[2]
        self._memory[context.LIMIT] = data.address + data.size if data else 0
        return run.decode(decode_rows, self._add_zone)

    def _add_zone(self) -> None:
        """Look up the time zone that the kernel needs."""
        memory = self._memory
        name = ctypes.string_at(memory[context.ZONE_TEXT], memory[context.ZONE_TEXT_BYTES])
        self._zones.add(name)
