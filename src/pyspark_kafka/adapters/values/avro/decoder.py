"""The decoder of Avro values."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, final

import numpy as np

from ....domain.values.avro_resolution import resolve
from ....domain.values.avro_schema import parse_avro_schema
from ....ports.values.value_format import ValueDecoder
from ....ports.values.value_types import arrow_type
from ..columns.column_set import ColumnSizes
from ..columns.decoding import DecodeRun
from ..columns.layout import columns_of
from . import decode_kernel as kernel
from .decode_program import DecodeProgram

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ....domain.values.avro_schema import AvroSchema
    from ....domain.values.avro_types import AvroTypeOptions
    from ....domain.values.data_types import StructType
    from ....domain.values.registry import Schema
    from ....ports.values.value_format import DecodedValues, Payloads, WriterSchema
    from ...kernels.arrays import Int64Array

log = logging.getLogger(__name__)

_MIN_SLOTS: Final = 1024
_MAX_PROGRAMS: Final = 1_000
"""The writers' schemas whose programs are kept: records name any number of them."""

_NAMED: Final = 3
"""The fields that a warning names."""


def parse_schema(schema: Schema) -> AvroSchema:
    """Parse a schema of a registry.

    :raises ValueError: if it is not one.
    """
    return parse_avro_schema(schema.text, (one.text for one in schema.imports))


@final
class AvroDecoder(ValueDecoder):
    """Decodes values of any number of writers' schemas as one reader's schema.

    The program of each writer's schema is kept. Ids are not its key: topics may have theirs in
    different contexts of a registry. Values whose framing names no schema have the schema of
    ``writer``.
    """

    def __init__(
        self,
        writer: AvroSchema,
        reader: AvroSchema,
        data_type: StructType,
        options: AvroTypeOptions,
    ) -> None:
        self._reader = reader
        self._data_type = data_type
        self._options = options
        self._columns = columns_of(arrow_type(data_type))
        self._sizes = ColumnSizes(self._columns)
        self._names: dict[str, int] = {}
        self._own_program = self._compile(writer)
        self._programs: dict[WriterSchema, Int64Array | None] = {}

    @property
    def data_type(self) -> StructType:
        return self._data_type

    @property
    def field_names(self) -> tuple[str, ...]:
        return tuple(self._names)

    def decode(self, payloads: Payloads) -> DecodedValues:
        words = np.zeros(kernel.WORDS, np.int64)
        run = DecodeRun(payloads, self._columns, self._sizes, words)
        run.point(kernel.PROGRAMS, self._find_programs(payloads.schemas))
        run.point(kernel.WRITERS, np.ascontiguousarray(payloads.writers, np.int32))
        run.point(kernel.STACK, np.empty(kernel.STACK_WORDS, np.int64))
        _use_slots(run, _MIN_SLOTS)
        return run.decode(
            kernel.decode_values, lambda: _use_slots(run, int(run.words[kernel.NEEDED_SLOTS // 8]))
        )

    def _find_programs(self, schemas: Sequence[WriterSchema]) -> Int64Array:
        """Return the addresses of programs: of values without a schema, then of each schema."""
        if len(self._programs) > _MAX_PROGRAMS:
            # Programs are dropped only here: those of the batch's addresses must be kept.
            self._programs.clear()
        found = [self._own_program, *map(self._program_of, schemas)]
        addresses = [0 if program is None else program.ctypes.data for program in found]
        return np.array(addresses, np.int64)

    def _program_of(self, writer: WriterSchema) -> Int64Array | None:
        if writer not in self._programs:
            try:
                program = self._compile(parse_schema(writer.schema), writer.schema_id)
            except ValueError as error:
                log.warning("Cannot read values of schema %s: %s", writer.schema_id, error)
                program = None
            self._programs[writer] = program
        return self._programs[writer]

    def _compile(self, writer: AvroSchema, schema_id: int | str = "of the options") -> Int64Array:
        program = DecodeProgram(self._columns, self._number_of)
        mismatches = resolve(writer, self._reader, self._data_type, program, self._options)
        if mismatches:
            found = [str(mismatch) for mismatch in mismatches]
            more = [f"and {len(found) - _NAMED} more"] if len(found) > _NAMED else []
            reasons = "; ".join(found[:_NAMED] + more)
            log.warning("Cannot read all values of schema %s: %s", schema_id, reasons)
        return program.finish()

    def _number_of(self, path: str) -> int:
        """Return the number of a field's name."""
        return self._names.setdefault(path, len(self._names)) if path else -1


def _use_slots(run: DecodeRun, count: int) -> None:
    """Let the kernel have memory to find equal keys of maps."""
    run.point(kernel.SLOTS, np.empty(count, np.int64))
    run.words[kernel.SLOT_COUNT // 8] = count
