"""The decoder of Protobuf values."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

import numpy as np

from ....domain.values.errors import DecodedTooLargeError
from ....ports.values.value_format import DecodedValues, ValueDecoder
from ..columns.column_set import ColumnSet, ColumnSizes
from . import program_layout as at
from .decode_kernel import DONE, MAX_CELLS, TOO_MANY, decode
from .program import compile_program
from .repairs import AnyJson, repaired
from .writer_checks import WriterChecks

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor

    from ....domain.values.data_types import StructType
    from ....ports.values.value_format import Payloads
    from ...kernels.arrays import Int32Array, Int64Array, UInt8Array
    from .spark_types import ProtobufSettings


@final
class ProtobufDecoder(ValueDecoder):
    """Decodes one message to the fields of one type. It is not safe for threads."""

    def __init__(
        self, message: Descriptor, data_type: StructType, settings: ProtobufSettings
    ) -> None:
        self._data_type = data_type
        self._program = compile_program(message, data_type, settings)
        self._sizes = ColumnSizes(self._program.columns)
        self._any_json = (
            AnyJson(message, self._program, settings) if self._program.any_columns else None
        )
        self._names = tuple(column.path for column in self._program.columns[1:])
        self._writers = WriterChecks(message, data_type, self._names)
        self._marks = np.zeros(len(self._program.columns), np.int64)
        self._slots = np.zeros(max(self._program.slots, 1), np.int64)
        self._stack = np.zeros(at.STACK_WORDS, np.int64)

    @property
    def data_type(self) -> StructType:
        return self._data_type

    @property
    def field_names(self) -> tuple[str, ...]:
        return self._names

    def decode(self, payloads: Payloads) -> DecodedValues:
        reasons, unreadable = self._writers.checked(payloads)
        starts = np.ascontiguousarray(payloads.starts, np.int64)
        ends = np.ascontiguousarray(payloads.ends, np.int64)
        fields = np.full(len(starts), -1, np.int32)
        size = int((ends - starts)[starts >= 0].sum())
        columns = ColumnSet(self._program.columns, len(starts), size, self._sizes)
        buffer = payloads.values.buffers()[2]
        data = 0 if buffer is None else buffer.address
        self._run(columns, data, starts, ends, reasons, fields)
        column = columns.finish()
        if self._marks.any():
            column = repaired(column, self._program.columns, self._marks)
        if self._any_json is not None:
            column = self._any_json.shown(column, reasons, fields)
        # The kernel writes numbers of columns. Column 0 is the struct itself, which has no name.
        fields[fields >= 0] -= 1
        np.copyto(fields, unreadable, where=unreadable >= 0)
        return DecodedValues(column, reasons, fields)

    def _run(
        self,
        columns: ColumnSet,
        data: int,
        starts: Int64Array,
        ends: Int64Array,
        reasons: UInt8Array,
        fields: Int32Array,
    ) -> None:
        state = np.zeros(at.STATE_WORDS, np.int64)
        self._marks[:] = 0
        self._slots[:] = 0
        state[at.CELLS_LEFT // 8] = MAX_CELLS
        state[at.MARKS // 8] = self._marks.ctypes.data
        state[at.SLOTS // 8], state[at.SLOT_COUNT // 8] = self._slots.ctypes.data, len(self._slots)
        state[at.STACK // 8] = self._stack.ctypes.data
        state[at.PROGRAM // 8], state[at.ACTIONS // 8] = self._program.root, self._program.actions
        state[at.COUNT // 8] = len(starts)
        while True:
            status = decode(
                columns.address,
                data,
                starts.ctypes.data,
                ends.ctypes.data,
                reasons.ctypes.data,
                fields.ctypes.data,
                state.ctypes.data,
            )
            if status == DONE:
                return
            if status == TOO_MANY:
                raise DecodedTooLargeError(len(starts))
            full, size = state[at.FULL_COLUMN // 8], state[at.FULL_BYTES // 8]
            columns.grow_for(int(state[at.ROW // 8]), reasons, int(full), int(size))
