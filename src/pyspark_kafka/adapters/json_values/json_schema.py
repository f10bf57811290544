"""JSON Schemas of types, for schema registries."""

from __future__ import annotations

import json
from typing import Any, Final, assert_never

from ...domain.values import data_types as types

_ATOMIC: Final[dict[types.AtomicType, str]] = {
    types.BOOLEAN: "boolean",
    types.BYTE: "integer",
    types.SHORT: "integer",
    types.INTEGER: "integer",
    types.LONG: "integer",
    types.FLOAT: "number",
    types.DOUBLE: "number",
    types.STRING: "string",
    types.BINARY: "string",
    types.DATE: "string",
    types.TIMESTAMP: "string",
    types.TIMESTAMP_NTZ: "string",
}


def json_schema(data_type: types.StructType) -> str:
    """Return the JSON Schema of rows of a type, in which every field may be absent or null."""
    schema = {"$schema": "http://json-schema.org/draft-07/schema#", **_of(data_type)}
    return json.dumps(schema, ensure_ascii=False, separators=(",", ":"))


def _of(data_type: types.DataType) -> dict[str, Any]:
    match data_type:
        case types.AtomicType():
            return {"type": _types(_ATOMIC[data_type])}
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


def _types(name: str) -> str | list[str]:
    # Numbers that JSON has no literals for are strings: NaN, Infinity and -Infinity.
    return [name, "string"] if name == "number" else name


def _nullable(data_type: types.DataType) -> dict[str, Any]:
    return {"oneOf": [{"type": "null"}, _of(data_type)]}
