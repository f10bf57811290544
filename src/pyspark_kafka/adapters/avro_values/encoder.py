"""Encoding struct columns as Avro, byte for byte as Spark's ``to_avro``.

The entries of maps are in the order of the row, where Java has the order of its hash table. Texts
are written as they are: Java replaces what is not UTF-8 in the keys of maps, and nowhere else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

from ...domain.values.avro_types import NUMBERED, derived_schema
from ...domain.values.registry import Schema, SchemaType
from ...ports.values.value_format import ValueEncoder
from ...ports.values.value_types import arrow_type
from ..value_columns.layout import columns_of
from ..value_encoding.input_table import InputTable
from ..value_encoding.row_encoder import RowEncoder
from .decoder import parse_schema
from .encode_kernel import encode_avro
from .encode_program import EncodeProgram

if TYPE_CHECKING:
    import pyarrow as pa

    from ...domain.values.avro_types import AvroTypeOptions
    from ...domain.values.data_types import StructType

_FRAME_BYTES = 40


@final
class AvroEncoder(ValueEncoder):
    """Encodes rows of one type with one schema."""

    def __init__(
        self,
        column: str,
        schema: Schema | None,
        data_type: StructType,
        options: AvroTypeOptions = NUMBERED,
    ) -> None:
        """Take a schema, or derive it from the type; ``column`` is for error messages.

        :raises ValueError: if rows of the type cannot have the schema.
        """
        self._schema = schema or Schema(SchemaType.AVRO, derived_schema(data_type))
        self._columns = columns_of(arrow_type(data_type))
        parsed = parse_schema(self._schema)
        self._program = EncodeProgram(parsed, data_type, self._columns, options)
        scratch = _FRAME_BYTES * (self._program.containers + 1)
        self._rows = RowEncoder(encode_avro, self._program.words, scratch, self._columns, column)

    @property
    def schema(self) -> Schema:
        return self._schema

    @property
    def record_name(self) -> str | None:
        return self._program.record_name

    def encode(self, column: pa.Array[Any], prefix: bytes = b"") -> pa.Array[Any]:
        table = InputTable(self._columns, column)
        return self._rows.encode(column, table.address, prefix)
