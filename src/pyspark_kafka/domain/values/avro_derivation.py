"""The Avro schemas that Spark derives from types (``SchemaConverters.toAvroType``)."""

from __future__ import annotations

import json
from typing import Any, Final

from . import data_types as types

TOP_LEVEL: Final = "topLevelRecord"
"""The name of the record of a whole row."""

_ATOMIC: Final[dict[types.AtomicType, Any]] = {
    types.BOOLEAN: "boolean",
    types.BYTE: "int",
    types.SHORT: "int",
    types.INTEGER: "int",
    types.LONG: "long",
    types.FLOAT: "float",
    types.DOUBLE: "double",
    types.STRING: "string",
    types.BINARY: "bytes",
    types.DATE: {"type": "int", "logicalType": "date"},
    types.TIMESTAMP: {"type": "long", "logicalType": "timestamp-micros"},
    types.TIMESTAMP_NTZ: {"type": "long", "logicalType": "local-timestamp-micros"},
    types.DAY_TIME_INTERVAL: {
        "type": "long",
        "spark.sql.catalyst.type": types.DAY_TIME_INTERVAL.name,
    },
}


def derived_schema(struct: types.StructType) -> str:
    """Return the schema of rows of a type, in which every field may be null."""
    return json.dumps(_record(struct, TOP_LEVEL, ""), ensure_ascii=False, separators=(",", ":"))


def _type(data_type: types.DataType, name: str, namespace: str) -> Any:
    match data_type:
        case types.AtomicType():
            return _ATOMIC[data_type]
        case types.DecimalType(precision, scale):
            return {
                "type": "fixed",
                "name": "fixed",
                "namespace": f"{namespace}.{name}",
                "size": _decimal_bytes(precision),
                "logicalType": "decimal",
                "precision": precision,
                "scale": scale,
            }
        case types.ArrayType(element):
            return {"type": "array", "items": _nullable(element, name, namespace)}
        case types.MapType(_, value):
            return {"type": "map", "values": _nullable(value, name, namespace)}
    return _record(data_type, name, namespace)


def _nullable(data_type: types.DataType, name: str, namespace: str) -> list[Any]:
    return [_type(data_type, name, namespace), "null"]


def _record(struct: types.StructType, name: str, namespace: str) -> dict[str, Any]:
    inner = f"{namespace}.{name}" if namespace else name
    fields = [
        {"name": field.name, "type": _nullable(field.type, field.name, inner)}
        for field in struct.fields
    ]
    named = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"type": "record", **named, "fields": fields}


def _decimal_bytes(precision: int) -> int:
    """Return the bytes of the smallest signed number that has ``precision`` digits."""
    size = 1
    while 2 ** (8 * size - 1) < 10**precision:
        size += 1
    return size
