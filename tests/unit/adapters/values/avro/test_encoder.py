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
from pyspark_kafka.domain.values.data_types import parse_struct
from pyspark_kafka.domain.values.errors import UnencodableValueError
from pyspark_kafka.domain.values.registry import Schema, SchemaType
from pyspark_kafka.domain.values.value_options import ValueOptions
from pyspark_kafka.ports.values.value_types import arrow_type

from .corpus import POINT, array, enum, fixed, logical, map_, record

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


def one_field(avro: object, ddl: str) -> AvroEncoder:
    schema = Schema(SchemaType.AVRO, json.dumps(record(("x", avro))))
    return AvroEncoder("value", schema, parse_struct(f"x {ddl}"))


def rows_of(ddl: str, *values: object) -> Any:
    return pa.array([{"x": value} for value in values], arrow_type(parse_struct(f"x {ddl}")))


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


UNION = "struct<member0:string,member1:int>"
CENTS = fixed(1, logicalType="decimal", precision=2)


@pytest.mark.parametrize(
    ("avro", "ddl", "good", "bad", "reason"),
    [
        ("long", "bigint", 1, None, "is null, and the schema does not allow null"),
        (enum("A", "B"), "string", "B", "C", "is not a symbol of the schema's enum"),
        (fixed(2), "binary", b"ab", b"abc", "has another number of bytes"),
        (CENTS, "decimal(2,0)", Decimal(99), None, "is null"),
        (["string", "int"], UNION, {"member1": 1}, {"member0": None}, "is null"),
    ],
    ids=["null", "enum", "fixed", "decimal", "union"],
)
def test_a_row_that_does_not_fit_is_named(avro, ddl, good, bad, reason):
    rows = rows_of(ddl, good, good, bad, good)
    with pytest.raises(UnencodableValueError, match=f"row 2 of a batch .* field 'x' {reason}"):
        one_field(avro, ddl).encode(rows)


def test_elements_may_be_refused():
    encoder = one_field(array("int"), "array<int>")
    with pytest.raises(UnencodableValueError, match=r"field 'x\.element' is null"):
        encoder.encode(rows_of("array<int>", [1], [1, None]))


@pytest.mark.parametrize(
    ("avro", "ddl", "value", "encoded"),
    [
        ("long", "int", -1, b"\x01"),
        ("double", "float", 1.5, b"\0\0\0\0\0\0\xf8\x3f"),
        (["null", "int", "long"], "bigint", 1, b"\x04\x02"),
        (["null", "int", "long"], "bigint", None, b"\x00"),
        (["double", "float"], "double", 0.0, b"\x00" * 9),
        (["int", "null"], "tinyint", 1, b"\x00\x02"),
        (["null", "string", "int"], UNION, None, b"\0"),
    ],
)
def test_numbers_and_unions(avro, ddl, value, encoded):
    assert one_field(avro, ddl).encode(rows_of(ddl, value)).to_pylist() == [encoded]


@pytest.mark.parametrize(
    ("avro", "ddl", "reason"),
    [
        ("int", "bigint", "field 'x' of type bigint cannot be written as int"),
        ("string", "bigint", "field 'x' of type bigint cannot be written as string"),
        (logical("long", "timestamp-nanos"), "timestamp", "timestamp-nanos"),
        ("bytes", "decimal(5,2)", "field 'x' of type decimal"),
        (map_("int"), "map<bigint,int>", "map"),
        (["string", "int"], "struct<a:string,b:int>", "must have the fields member0"),
        (["string", "int"], "string", "field 'x' of type string cannot be written as union"),
        (POINT, "struct<z:int>", r"field 'x\.z' is not in the schema"),
        (POINT, "struct<x:int>", r"field 'x\.y' of the schema is missing, and must not be null"),
    ],
)
def test_a_type_that_does_not_fit_is_refused(avro, ddl, reason):
    with pytest.raises(ValueError, match=reason):
        one_field(avro, ddl)


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
