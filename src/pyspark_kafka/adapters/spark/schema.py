"""The schema of records in Spark's types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from ...domain.errors import OptionsError, SinkSchemaError
from ...domain.reading.projection import Projection
from ...domain.values import data_types as types
from .value_types import data_type_of, spark_type

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ...domain.values.typed_schema import TypedSchema
    from .tasks import Columns

TYPES: Final[dict[str, DataType]] = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
    "headers": ArrayType(
        StructType([StructField("key", StringType()), StructField("value", BinaryType())])
    ),
}
"""The schema of the JVM connector (``KafkaRecordToRowConverter``)."""


def spark_schema(projection: Projection) -> StructType:
    """Return the schema of the projected columns."""
    return StructType([StructField(column, TYPES[column]) for column in projection.columns])


def projection_of(schema: StructType) -> Projection:
    """Return the columns of a user's schema.

    :raises OptionsError: with the fields that records do not have in that type.
    """
    problems = [
        f"the schema's field '{field.name} {field.dataType.simpleString()}' is not one of "
        f"{spark_schema_text()}"
        for field in schema.fields
        if field != StructField(field.name, TYPES.get(field.name, field.dataType))
        or field.name not in TYPES
    ]
    if problems:
        raise OptionsError(problems)
    return Projection(tuple(schema.fieldNames()))


def sink_types(schema: StructType, columns: Iterable[str]) -> dict[str, types.StructType]:
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


def typed_spark_schema(schema: TypedSchema) -> StructType:
    """Return the schema of a read with typed values."""
    return StructType([StructField(one.name, spark_type(one.data_type)) for one in schema.columns])


def schema_of(columns: Columns) -> StructType:
    """Return the schema of columns in Spark's types."""
    if isinstance(columns, Projection):
        return spark_schema(columns)
    return typed_spark_schema(columns)


def requested_type(schema: StructType) -> types.StructType:
    """Return a user's schema in this library's types.

    :raises OptionsError: with the fields whose types values cannot have.
    """
    problems: list[str] = []
    found = data_type_of(schema, "", problems)
    if problems or not isinstance(found, types.StructType):
        raise OptionsError(problems)
    return found
