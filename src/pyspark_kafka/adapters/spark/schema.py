"""The schema of records in Spark's types."""

from __future__ import annotations

from typing import Final

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

from ...domain.errors import OptionsError
from ...domain.projection import Projection

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


def spark_schema_text() -> str:
    """Return all columns with their types, as in a DDL schema."""
    return ", ".join(f"{name} {kind.simpleString()}" for name, kind in TYPES.items())
