import io
import json
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka.adapters.values.avro.encoder import AvroEncoder
from pyspark_kafka.adapters.values.avro.value_format import VALUE_FORMAT
from pyspark_kafka.domain.errors import OptionsError
from pyspark_kafka.domain.values import data_types as types
from pyspark_kafka.domain.values.data_types import StructField, StructType, parse_struct
from pyspark_kafka.domain.values.errors import UnencodableValueError
from pyspark_kafka.domain.values.registry import Schema, SchemaType
from pyspark_kafka.domain.values.value_options import ValueOptions
from pyspark_kafka.ports.values.value_types import arrow_type

NESTED = parse_struct(
    "id bigint, name string, ratio double, flag boolean, price decimal(38,18), "
    "inner struct<x int, y binary>, many array<struct<x int, y binary>>, "
    "by_name map<string, array<smallint>>"
)
INNERS = st.none() | st.fixed_dictionaries(
    {"x": st.none() | st.integers(-(2**31), 2**31 - 1), "y": st.none() | st.binary(max_size=9)}
)
TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
SHORTS = st.lists(st.none() | st.integers(-(2**15), 2**15 - 1), max_size=3)
ROWS = st.fixed_dictionaries(
    {
        "id": st.none() | st.integers(-(2**63), 2**63 - 1),
        "name": st.none() | TEXT,
        "ratio": st.none() | st.floats(allow_nan=False),
        "flag": st.none() | st.booleans(),
        "price": st.none() | st.decimals(-(10**20) + 1, 10**20 - 1, places=18),
        "inner": INNERS,
        "many": st.none() | st.lists(INNERS, max_size=3),
        "by_name": st.none() | st.dictionaries(TEXT, SHORTS, max_size=3),
    }
)


def one_field(avro: object, data_type: types.DataType) -> AvroEncoder:
    schema = {"type": "record", "name": "r", "fields": [{"name": "x", "type": avro}]}
    struct = StructType((StructField("x", data_type),))
    return AvroEncoder("value", Schema(SchemaType.AVRO, json.dumps(schema)), struct)


def rows_of(data_type: types.DataType, *values: object) -> Any:
    struct = StructType((StructField("x", data_type),))
    return pa.array([{"x": value} for value in values], arrow_type(struct))


@given(st.lists(ROWS, max_size=4))
def test_fastavro_reads_the_same_rows(rows):
    encoder = AvroEncoder("value", None, NESTED)
    pairs = [{**row, "by_name": row["by_name"] and list(row["by_name"].items())} for row in rows]
    encoded: Any = encoder.encode(pa.array([*pairs, None], arrow_type(NESTED)), b"\0id")
    *values, last = encoded.to_pylist()
    assert last is None
    schema = fastavro.parse_schema(json.loads(encoder.schema.text))
    found = []
    for value in values:
        stream = io.BytesIO(value.removeprefix(b"\0id"))
        found.append(fastavro.schemaless_reader(stream, schema, None))
        assert stream.read() == b""
    # An empty map was written as such, and not as null.
    assert found == [{**row, "by_name": row["by_name"]} for row in rows]


def test_values_longer_than_the_memory_are_written():
    rows = [{"name": "n" * size, "many": [{"x": 1}] * size} for size in (1, 100_000, 3)]
    encoder = AvroEncoder("value", None, NESTED)
    encoded: Any = encoder.encode(pa.array(rows, arrow_type(NESTED)))
    assert [
        len(value) > len(row["name"]) for value, row in zip(encoded.to_pylist(), rows, strict=True)
    ]
    schema = fastavro.parse_schema(json.loads(encoder.schema.text))
    found: Any = fastavro.schemaless_reader(io.BytesIO(encoded[1].as_py()), schema, None)
    assert found["many"] == [{"x": 1, "y": None}] * 100_000


ENUM = {"type": "enum", "name": "e", "symbols": ["A", "B"]}
FIXED = {"type": "fixed", "name": "f", "size": 2}


@pytest.mark.parametrize(
    ("avro", "data_type", "good", "bad", "reason"),
    [
        ("long", types.LONG, 1, None, "is null, and the schema does not allow null"),
        (ENUM, types.STRING, "B", "C", "is not a symbol of the schema's enum"),
        (FIXED, types.BINARY, b"ab", b"abc", "has another number of bytes"),
        (
            {**FIXED, "size": 1, "logicalType": "decimal", "precision": 2},
            types.DecimalType(2, 0),
            Decimal(99),
            None,
            "is null",
        ),
        (
            ["string", "int"],
            parse_struct("member0 string, member1 int"),
            {"member1": 1},
            {"member0": None},
            "is null",
        ),
    ],
    ids=["null", "enum", "fixed", "decimal", "union"],
)
def test_a_row_that_does_not_fit_is_named(avro, data_type, good, bad, reason):
    rows = rows_of(data_type, good, good, bad, good)
    with pytest.raises(UnencodableValueError, match=f"row 2 of a batch .* field 'x' {reason}"):
        one_field(avro, data_type).encode(rows)


def test_elements_may_be_refused():
    encoder = one_field({"type": "array", "items": "int"}, types.ArrayType(types.INTEGER))
    with pytest.raises(UnencodableValueError, match=r"field 'x\.element' is null"):
        encoder.encode(rows_of(types.ArrayType(types.INTEGER), [1], [1, None]))


@pytest.mark.parametrize(
    ("avro", "data_type", "value", "encoded"),
    [
        ("long", types.INTEGER, -1, b"\x01"),
        ("double", types.FLOAT, 1.5, b"\0\0\0\0\0\0\xf8\x3f"),
        (["null", "int", "long"], types.LONG, 1, b"\x04\x02"),
        (["null", "int", "long"], types.LONG, None, b"\x00"),
        (["double", "float"], types.DOUBLE, 0.0, b"\x00" * 9),
        (["int", "null"], types.BYTE, 1, b"\x00\x02"),
        (["null", "string", "int"], parse_struct("member0 string, member1 int"), None, b"\0"),
    ],
)
def test_numbers_and_unions(avro, data_type, value, encoded):
    assert one_field(avro, data_type).encode(rows_of(data_type, value)).to_pylist() == [encoded]


@pytest.mark.parametrize(
    ("avro", "data_type", "reason"),
    [
        ("int", types.LONG, "field 'x' of type bigint cannot be written as int"),
        ("string", types.LONG, "field 'x' of type bigint cannot be written as string"),
        ({"type": "long", "logicalType": "timestamp-nanos"}, types.TIMESTAMP, "timestamp-nanos"),
        ("bytes", types.DecimalType(5, 2), "field 'x' of type decimal"),
        ({"type": "map", "values": "int"}, types.MapType(types.LONG, types.INTEGER), "map"),
        (["string", "int"], parse_struct("a string, b int"), "must have the fields member0"),
        (["string", "int"], types.STRING, "field 'x' of type string cannot be written as union"),
        (
            {"type": "record", "name": "i", "fields": [{"name": "y", "type": "int"}]},
            parse_struct("z int"),
            r"field 'x\.z' is not in the schema",
        ),
        (
            {
                "type": "record",
                "name": "i",
                "fields": [{"name": "z", "type": "int"}, {"name": "y", "type": "int"}],
            },
            parse_struct("z int"),
            r"field 'x\.y' of the schema is missing, and must not be null",
        ),
    ],
)
def test_a_type_that_does_not_fit_is_refused(avro, data_type, reason):
    with pytest.raises(ValueError, match=reason):
        one_field(avro, data_type)


def test_the_format_takes_the_schema_of_the_options_or_the_registry():
    assert VALUE_FORMAT.encoder is not None
    text = '{"type":"record","name":"n.R","fields":[{"name":"x","type":"long"}]}'
    struct = parse_struct("x bigint")
    encoder = VALUE_FORMAT.encoder(ValueOptions("value", "avro", schema=text), None, struct)
    assert (encoder.schema.text, encoder.record_name) == (text, "n.R")
    registered = Schema(SchemaType.AVRO, text)
    encoder = VALUE_FORMAT.encoder(ValueOptions("value", "avro"), registered, struct)
    assert encoder.schema == registered
    with pytest.raises(OptionsError, match="Column 'value' cannot be written with its Avro schema"):
        VALUE_FORMAT.encoder(ValueOptions("value", "avro", schema='"int"'), None, struct)
