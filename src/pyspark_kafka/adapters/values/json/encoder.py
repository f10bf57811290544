"""Encoding struct columns as JSON, byte for byte as Spark's ``to_json``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, assert_never, final

from ....domain.errors import OptionsError
from ....domain.values import data_types as types
from ....domain.values.registry import Schema, SchemaType
from ....ports.values.value_format import ValueEncoder
from ....ports.values.value_types import arrow_type
from ..columns.layout import columns_of
from ..encoding.input_columns import InputColumns
from ..encoding.row_encoder import RowEncoder
from ..encoding.time_zones import NOT_A_ZONE, find_zone
from .encode_kernel import encode_json
from .encode_table import EncodeTable
from .number_writing_kernel import SCRATCH_BYTES

if TYPE_CHECKING:
    import pyarrow as pa

    from ....domain.values.data_types import StructType
    from ....domain.values.value_options import ValueOptions


@final
class JsonEncoder(ValueEncoder):
    """Encodes rows of one type as objects.

    Timestamps are in the time zone of the option ``timeZone``, by default in the column's: Spark
    gives columns the time zone of the session.
    """

    def __init__(self, options: ValueOptions, data_type: StructType) -> None:
        """Take the type of rows.

        :raises OptionsError: if a map's keys have no text, or an option is not supported.
        """
        settings = dict(options.settings)
        self._columns = columns_of(arrow_type(data_type))
        self._program = EncodeTable(self._columns, settings)
        self._rows = RowEncoder(
            encode_json,
            self._program.words,
            self._columns,
            options.column,
            SCRATCH_BYTES,
        )
        self._data_type = data_type
        self._time_zone = settings.get("timezone")
        if self._time_zone is not None and find_zone(self._time_zone) is None:
            raise OptionsError([f"timeZone {self._time_zone!r} {NOT_A_ZONE}"])

    @property
    def schema(self) -> Schema:
        return Schema(SchemaType.JSON, json_schema(self._data_type))

    def encode(self, column: pa.Array[Any], prefix: bytes = b"") -> pa.Array[Any]:
        table = InputColumns(self._columns, column, has_local_times=True, time_zone=self._time_zone)
        return self._rows.encode(column, table.address, prefix)


_ATOMIC: Final[dict[types.AtomicType, str | list[str]]] = {
    types.BOOLEAN: "boolean",
    types.BYTE: "integer",
    types.SHORT: "integer",
    types.INTEGER: "integer",
    types.LONG: "integer",
    types.FLOAT: ["number", "string"],
    types.DOUBLE: ["number", "string"],
    types.STRING: "string",
    types.BINARY: "string",
    types.DATE: "string",
    types.TIMESTAMP: "string",
    types.TIMESTAMP_NTZ: "string",
}
"""Numbers without literals in JSON are strings: NaN, Infinity and -Infinity."""


def json_schema(data_type: types.StructType) -> str:
    """Return the JSON Schema of rows of a type, in which every field may be absent or null."""
    schema = {"$schema": "http://json-schema.org/draft-07/schema#", **_of(data_type)}
    return json.dumps(schema, ensure_ascii=False, separators=(",", ":"))


def _of(data_type: types.DataType) -> dict[str, Any]:
    match data_type:
        case types.AtomicType():
            return {"type": _ATOMIC[data_type]}
        case types.DecimalType():
            return {"type": "number"}
        case types.ArrayType(element):
            return {"type": "array", "items": _nullable(element)}
        case types.MapType(_, value):
            return {"type": "object", "additionalProperties": _nullable(value)}
        case types.StructType(fields):
            properties = {field.name: _nullable(field.type) for field in fields}
            return {"type": "object", "properties": properties}
    assert_never(data_type)


def _nullable(data_type: types.DataType) -> dict[str, Any]:
    return {"oneOf": [{"type": "null"}, _of(data_type)]}
