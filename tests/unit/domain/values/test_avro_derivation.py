"""The Avro schemas that are derived from types; Spark's own are compared in ``tests/spark``."""

from __future__ import annotations

import json

import pytest

from pyspark_kafka.domain.values import data_types as types
from pyspark_kafka.domain.values.avro_derivation import derived_schema
from pyspark_kafka.domain.values.avro_schema import parse_avro_schema
from pyspark_kafka.domain.values.avro_types import struct_of
from pyspark_kafka.domain.values.data_types import StructField, StructType

ATOMIC = (
    types.BOOLEAN,
    types.INTEGER,
    types.LONG,
    types.FLOAT,
    types.DOUBLE,
    types.STRING,
    types.BINARY,
    types.DATE,
    types.TIMESTAMP,
    types.TIMESTAMP_NTZ,
)
INNER = StructType((StructField("x", types.LONG), StructField("d", types.DecimalType(5, 2))))


def test_a_schema_has_the_type_from_which_it_is_derived() -> None:
    struct = StructType(
        (
            *(StructField(str(atomic), atomic) for atomic in ATOMIC),
            StructField("d", types.DecimalType(38, 18)),
            StructField("a", types.ArrayType(INNER)),
            StructField("m", types.MapType(types.STRING, INNER)),
            StructField("s", INNER),
        )
    )
    assert struct_of(parse_avro_schema(derived_schema(struct))) == struct


def test_names_are_spelled_as_spark_spells_them() -> None:
    struct = StructType((StructField("s", INNER),))
    schema = json.loads(derived_schema(struct))
    assert schema["name"] == "topLevelRecord"
    inner = schema["fields"][0]["type"][0]
    assert (inner["namespace"], inner["name"]) == ("topLevelRecord", "s")
    fixed = inner["fields"][1]["type"][0]
    assert (fixed["namespace"], fixed["name"]) == ("topLevelRecord.s.d", "fixed")


@pytest.mark.parametrize(
    ("precision", "size"), [(1, 1), (2, 1), (3, 2), (18, 8), (19, 9), (38, 16)]
)
def test_decimals_take_as_few_bytes_as_possible(precision: int, size: int) -> None:
    struct = StructType((StructField("d", types.DecimalType(precision, 0)),))
    assert json.loads(derived_schema(struct))["fields"][0]["type"][0]["size"] == size
