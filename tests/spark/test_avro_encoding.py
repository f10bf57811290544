"""Encoding rows as Avro, beside Spark's ``to_avro``."""

import json
from typing import Any

from pyspark.sql.avro.functions import to_avro

from pyspark_kafka.adapters.values.avro.encoder import AvroEncoder
from pyspark_kafka.domain.values import data_types as types
from pyspark_kafka.domain.values.avro_types import derived_schema
from pyspark_kafka.domain.values.data_types import StructField, StructType, parse_struct
from pyspark_kafka.domain.values.registry import Schema, SchemaType

from .test_json_encoding import BINARIES, COLUMNS, LONGS, MICROS, TEXTS, Corpus, encoded_by_spark


def is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


DERIVED = {name: one for name, one in COLUMNS.items() if not name.startswith(("by_", "nested"))}
DERIVED["map"] = (
    "binary",
    "map(cast({} as string), array(1, null))",
    [text for text in TEXTS if is_utf8(text)],
    types.MapType(types.STRING, types.ArrayType(types.INTEGER)),
)
DERIVED["inner"] = (
    "bigint",
    "named_struct('x', {}, 'y', named_struct('z', cast({} % 7 as decimal(20,2)), 'n', null))",
    LONGS,
    parse_struct("x bigint, y struct<z decimal(20,2), n string>"),
)
TYPE = StructType(tuple(StructField(name, one[3]) for name, one in DERIVED.items()))

SCHEMA = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "absent", "type": ["null", "string"]},
        {"name": "Text", "type": ["null", "string"]},
        {"name": "millis", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}]},
        {"name": "bare", "type": ["null", "long"]},
        {
            "name": "color",
            "type": [
                {"type": "enum", "name": "Color", "symbols": ["RED", "GREEN", "BLUE"]},
                "null",
            ],
        },
        {"name": "code", "type": ["null", {"type": "fixed", "name": "Code", "size": 4}]},
        {
            "name": "price",
            "type": [
                "null",
                {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 18},
            ],
        },
        {"name": "number", "type": ["int", "null", "long"]},
        {"name": "ratio", "type": ["float", "double", "null"]},
        {"name": "either", "type": ["null", "string", "long"]},
        {"name": "many", "type": ["null", {"type": "array", "items": ["null", "Color"]}]},
    ],
}
GIVEN: dict[str, Corpus] = {
    "text": ("binary", "cast({} as string)", TEXTS, types.STRING),
    "millis": ("bigint", "timestamp_micros({})", MICROS, types.TIMESTAMP),
    "bare": ("bigint", "timestamp_micros({})", MICROS, types.TIMESTAMP),
    "color": ("string", "{}", ["RED", "BLUE", "GREEN"], types.STRING),
    "code": ("binary", "{}", [one for one in BINARIES if len(one) == 4], types.BINARY),
    "price": COLUMNS["dec38"],
    "number": ("bigint", "{}", LONGS, types.LONG),
    "ratio": ("double", "{}", COLUMNS["double"][2], types.DOUBLE),
    "either": (
        "bigint",
        "named_struct('member0', if({} % 3 = 0, 'text', null), 'member1', nullif({}, 1))",
        LONGS,
        parse_struct("member0 string, member1 bigint"),
    ),
    "many": ("string", "array({}, null, 'RED')", ["GREEN"], types.ArrayType(types.STRING)),
}
GIVEN_TYPE = StructType(tuple(StructField(name, one[3]) for name, one in GIVEN.items()))


def test_rows_equal_those_of_to_avro(spark):
    encoder = AvroEncoder("value", None, TYPE)
    found = to_avro("value", encoder.schema.text)
    rows, values = encoded_by_spark(spark, DERIVED, TYPE, found)
    assert encoder.encode(rows).to_pylist() == values


def test_rows_equal_those_of_to_avro_with_a_schema(spark):
    schema = Schema(SchemaType.AVRO, json.dumps(SCHEMA))
    found = to_avro("value", schema.text)
    rows, values = encoded_by_spark(spark, GIVEN, GIVEN_TYPE, found)
    assert AvroEncoder("value", schema, GIVEN_TYPE).encode(rows).to_pylist() == values


def test_the_schema_equals_the_one_that_spark_derives(spark):
    java: Any = spark._jvm
    table = spark.createDataFrame([], f"value {TYPE}")
    spark_type = table._jdf.schema().apply("value").dataType()
    convert = java.org.apache.spark.sql.avro.SchemaConverters.toAvroType
    expected = convert(spark_type, False, "topLevelRecord", "")
    ours = java.org.apache.avro.Schema.Parser().parse(derived_schema(TYPE))
    assert ours.equals(expected)
