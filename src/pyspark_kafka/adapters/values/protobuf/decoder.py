"""The decoder of Protobuf values."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn, final

import numpy as np

from ....domain.values.errors import DecodedTooLargeError
from ....ports.values.value_format import ValueDecoder
from ..columns.column_set import ColumnSizes
from ..columns.decoding import DecodeRun
from . import program_layout as at
from .decode_kernel import MAX_CELLS, decode_messages
from .program import compile_program
from .repairs import AnyJson, repaired
from .writer_checks import WriterChecks

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor

    from ....domain.values.data_types import StructType
    from ....ports.values.value_format import DecodedValues, Payloads
    from .spark_types import ProtobufSettings


@final
class ProtobufDecoder(ValueDecoder):
    """Decodes one message to the fields of one type. Not thread-safe."""

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
        words = np.zeros(at.WORDS, np.int64)
        words[at.CELLS_LEFT // 8], words[at.SLOT_COUNT // 8] = MAX_CELLS, len(self._slots)
        words[at.PROGRAM // 8], words[at.ACTIONS // 8] = self._program.root, self._program.actions
        self._marks[:] = 0
        self._slots[:] = 0
        checked = replace(payloads, reasons=reasons)
        run = DecodeRun(checked, self._program.columns, self._sizes, words)
        run.point(at.MARKS, self._marks)
        run.point(at.SLOTS, self._slots)
        run.point(at.STACK, self._stack)
        decoded = run.decode(decode_messages, lambda: _refuse(len(reasons)))
        column, fields = decoded.column, decoded.fields
        if self._marks.any():
            column = repaired(column, self._program.columns, self._marks)
        if self._any_json is not None:
            column = self._any_json.shown(column, decoded.reasons, fields)
        # The kernel writes numbers of columns. Column 0 is the struct itself, which has no name.
        fields[fields >= 0] -= 1
        np.copyto(fields, unreadable, where=unreadable >= 0)
        return replace(decoded, column=column)


def _refuse(rows: int) -> NoReturn:
    raise DecodedTooLargeError(rows)
