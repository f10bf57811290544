"""The types of records and values as Spark's types, and the other way around."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, assert_never

from pyspark.sql import types as spark

from ...domain.errors import OptionsError
from ...domain.reading.records import Projection
from ...domain.values import data_types as types
from ...domain.writing.errors import SinkSchemaError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ...domain.values.data_types import DataType
    from ...domain.values.typed_schema import TypedSchema
    from .tasks import Columns


TYPES: Final[dict[str, spark.DataType]] = {
    "key": spark.BinaryType(),
    "value": spark.BinaryType(),
    "topic": spark.StringType(),
    "partition": spark.IntegerType(),
    "offset": spark.LongType(),
    "timestamp": spark.TimestampType(),
    "timestampType": spark.IntegerType(),
    "headers": spark.ArrayType(
        spark.StructType(
            [
                spark.StructField("key", spark.StringType()),
                spark.StructField("value", spark.BinaryType()),
            ]
        )
    ),
}
"""The schema of the JVM connector (``KafkaRecordToRowConverter``)."""


def spark_schema(projection: Projection) -> spark.StructType:
    """Return the schema of the projected columns."""
    return spark.StructType(
        [spark.StructField(column, TYPES[column]) for column in projection.columns]
    )


def projection_of(schema: spark.StructType) -> Projection:
    """Return the columns of a user's schema.

    :raises OptionsError: with the fields that records do not have in that type.
    """
    problems = [
        f"the schema's field '{field.name} {field.dataType.simpleString()}' is not one of "
        f"{spark_schema_text()}"
        for field in schema.fields
        if field != spark.StructField(field.name, TYPES.get(field.name, field.dataType))
        or field.name not in TYPES
    ]
    if problems:
        raise OptionsError(problems)
    return Projection(tuple(schema.fieldNames()))


def sink_types(schema: spark.StructType, columns: Iterable[str]) -> dict[str, types.StructType]:
    """Return the types of struct columns that a sink encodes.

    :raises SinkSchemaError: with the fields whose types values do not have.
    """
    found: dict[str, types.StructType] = {}
    problems: list[str] = []
    for column in columns:
        if column in schema.fieldNames():
            struct = data_type_of(schema[column].dataType, column, problems, is_read=False)
            if isinstance(struct, types.StructType):
                found[column] = struct
    if problems:
        raise SinkSchemaError(problems)
    return found


def spark_schema_text() -> str:
    """Return all columns with their types, as in a DDL schema."""
    return ", ".join(f"{name} {kind.simpleString()}" for name, kind in TYPES.items())


def typed_spark_schema(schema: TypedSchema) -> spark.StructType:
    """Return the schema of a read with typed values."""
    return spark.StructType(
        [spark.StructField(one.name, spark_type(one.data_type)) for one in schema.columns]
    )


def schema_of(columns: Columns) -> spark.StructType:
    """Return the schema of columns in Spark's types."""
    if isinstance(columns, Projection):
        return spark_schema(columns)
    return typed_spark_schema(columns)


def requested_type(schema: spark.StructType) -> types.StructType:
    """Return a user's schema in this library's types.

    :raises OptionsError: with the fields whose types values cannot have.
    """
    problems: list[str] = []
    found = data_type_of(schema, "", problems)
    if problems or not isinstance(found, types.StructType):
        raise OptionsError(problems)
    return found


_ATOMIC: Final[dict[types.AtomicType, spark.DataType]] = {
    types.BOOLEAN: spark.BooleanType(),
    types.BYTE: spark.ByteType(),
    types.SHORT: spark.ShortType(),
    types.INTEGER: spark.IntegerType(),
    types.LONG: spark.LongType(),
    types.FLOAT: spark.FloatType(),
    types.DOUBLE: spark.DoubleType(),
    types.STRING: spark.StringType(),
    types.BINARY: spark.BinaryType(),
    types.DATE: spark.DateType(),
    types.TIMESTAMP: spark.TimestampType(),
    types.TIMESTAMP_NTZ: spark.TimestampNTZType(),
    types.DAY_TIME_INTERVAL: spark.DayTimeIntervalType(),
}

_FROM_SPARK: Final = {found: name for name, found in _ATOMIC.items()}


def spark_type(data_type: DataType) -> spark.DataType:
    """Return Spark's type; everything but the keys of maps may be null."""
    match data_type:
        case types.AtomicType():
            return _ATOMIC[data_type]
        case types.DecimalType(precision, scale):
            return spark.DecimalType(precision, scale)
        case types.ArrayType(element):
            return spark.ArrayType(spark_type(element))
        case types.MapType(key, value):
            return spark.MapType(spark_type(key), spark_type(value))
        case types.StructType(fields):
            return spark.StructType(
                [spark.StructField(field.name, spark_type(field.type)) for field in fields]
            )
    assert_never(data_type)


def data_type_of(
    found: spark.DataType, path: str, problems: list[str], *, is_read: bool = True
) -> DataType | None:
    """Return the type of a field at ``path``, and note the types that values cannot have.

    Spark checks nothing that it reads: a field that is not nullable would be a false promise. What
    it writes may be nullable or not.
    """
    match found:
        case spark.StructType():
            return _struct(found, path, problems, is_read=is_read)
        case spark.ArrayType():
            _require(path, found.containsNull or not is_read, problems)
            element = data_type_of(found.elementType, f"{path}.element", problems, is_read=is_read)
            return None if element is None else types.ArrayType(element)
        case spark.MapType():
            _require(path, found.valueContainsNull or not is_read, problems)
            key = data_type_of(found.keyType, f"{path}.key", problems, is_read=is_read)
            value = data_type_of(found.valueType, f"{path}.value", problems, is_read=is_read)
            return None if key is None or value is None else types.MapType(key, value)
        case spark.DecimalType():
            return types.DecimalType(found.precision, found.scale)
    atomic = _FROM_SPARK.get(found)
    if atomic is None:
        problems.append(f"the schema's field '{path} {found.simpleString()}' is not supported")
    return atomic


def _struct(
    found: spark.StructType, path: str, problems: list[str], *, is_read: bool
) -> types.StructType | None:
    fields = []
    for field in found.fields:
        name = f"{path}.{field.name}" if path else field.name
        _require(name, field.nullable or not is_read, problems)
        data_type = data_type_of(field.dataType, name, problems, is_read=is_read)
        if data_type is not None:
            fields.append(types.StructField(field.name, data_type))
    return types.StructType(tuple(fields)) if len(fields) == len(found.fields) else None


def _require(path: str, is_nullable: bool, problems: list[str]) -> None:
    if not is_nullable:
        problems.append(f"the schema's field '{path}' must be nullable: remove NOT NULL")
