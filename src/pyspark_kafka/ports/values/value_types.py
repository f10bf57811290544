"""The Arrow types of typed values, and the Arrow schema of records with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, assert_never

import pyarrow as pa

from ...domain.values import data_types as types

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...domain.values.data_types import DataType
    from ...domain.values.typed_schema import TypedSchema

ATOMIC: Final[dict[types.AtomicType, pa.DataType]] = {
    types.BOOLEAN: pa.bool_(),
    types.BYTE: pa.int8(),
    types.SHORT: pa.int16(),
    types.INTEGER: pa.int32(),
    types.LONG: pa.int64(),
    types.FLOAT: pa.float32(),
    types.DOUBLE: pa.float64(),
    types.STRING: pa.string(),
    types.BINARY: pa.binary(),
    types.DATE: pa.date32(),
    types.TIMESTAMP: pa.timestamp("us", tz="UTC"),
    types.TIMESTAMP_NTZ: pa.timestamp("us"),
    types.DAY_TIME_INTERVAL: pa.duration("us"),
}


def arrow_type(data_type: DataType) -> pa.DataType:
    """Return the Arrow type in which Spark exchanges a type (``to_arrow_type`` of PySpark)."""
    match data_type:
        case types.AtomicType():
            return ATOMIC[data_type]
        case types.DecimalType(precision, scale):
            return pa.decimal128(precision, scale)
        case types.ArrayType(element):
            return pa.list_(pa.field("element", arrow_type(element)))
        case types.MapType(key, value):
            return pa.map_(arrow_type(key), arrow_type(value))
        case types.StructType(fields):
            return struct_type(fields)
    assert_never(data_type)


def data_type_of(arrow: pa.DataType) -> types.StructType:
    """Return the type of a struct column, in any of Arrow's layouts.

    :raises ValueError: if a field is of a type that values do not have.
    """
    found = _data_type(arrow, "it")
    if not isinstance(found, types.StructType):
        raise ValueError(f"it is of type {arrow}, not a struct")  # noqa: TRY004  # of a column
    return found


def _data_type(arrow: Any, path: str) -> DataType:
    if pa.types.is_struct(arrow):
        fields = (types.StructField(one.name, _data_type(one.type, one.name)) for one in arrow)
        return types.StructType(tuple(fields))
    if pa.types.is_map(arrow):
        key = _data_type(arrow.key_type, f"{path}.key")
        return types.MapType(key, _data_type(arrow.item_type, f"{path}.value"))
    if pa.types.is_nested(arrow) and hasattr(arrow, "value_type"):
        return types.ArrayType(_data_type(arrow.value_type, f"{path}.element"))
    if pa.types.is_decimal(arrow):
        return types.DecimalType(arrow.precision, arrow.scale)
    if pa.types.is_dictionary(arrow):
        return _data_type(arrow.value_type, path)
    for is_one, found in _LAYOUTS:
        if is_one(arrow):
            return types.TIMESTAMP if found == types.TIMESTAMP_NTZ and arrow.tz else found
    raise ValueError(f"'{path}' is of type {arrow}, which values do not have")


_LAYOUTS: Final[tuple[tuple[Callable[[Any], bool], types.AtomicType], ...]] = (
    (pa.types.is_boolean, types.BOOLEAN),
    (pa.types.is_int8, types.BYTE),
    (pa.types.is_int16, types.SHORT),
    (pa.types.is_int32, types.INTEGER),
    (pa.types.is_int64, types.LONG),
    (pa.types.is_float32, types.FLOAT),
    (pa.types.is_float64, types.DOUBLE),
    (pa.types.is_string, types.STRING),
    (pa.types.is_large_string, types.STRING),
    (pa.types.is_string_view, types.STRING),
    (pa.types.is_binary, types.BINARY),
    (pa.types.is_large_binary, types.BINARY),
    (pa.types.is_binary_view, types.BINARY),
    (pa.types.is_date, types.DATE),
    (pa.types.is_timestamp, types.TIMESTAMP_NTZ),
    (pa.types.is_duration, types.DAY_TIME_INTERVAL),
)


def struct_type(fields: tuple[types.StructField, ...]) -> pa.DataType:
    """Return the Arrow type of a struct."""
    members: list[pa.Field[Any]] = [pa.field(one.name, arrow_type(one.type)) for one in fields]
    return pa.struct(members)


def typed_record_schema(schema: TypedSchema) -> pa.Schema:
    """Return the schema of the output: the one that Spark expects, in each detail."""
    return pa.schema([pa.field(one.name, arrow_type(one.data_type)) for one in schema.columns])
