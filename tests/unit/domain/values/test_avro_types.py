import json
from typing import Any

import pytest

from pyspark_kafka.domain.values import avro_types
from pyspark_kafka.domain.values import data_types as types
from pyspark_kafka.domain.values.avro_schema import parse_avro_schema
from pyspark_kafka.domain.values.avro_types import (
    AvroTypeOptions,
    derived_schema,
    is_wrapped,
    struct_of,
)
from pyspark_kafka.domain.values.data_types import StructField, StructType

from .test_avro_schema import field, record


def type_of(schema: Any, **options: Any) -> str:
    return str(struct_of(parse_avro_schema(json.dumps(schema)), AvroTypeOptions(**options)))


@pytest.mark.parametrize(
    ("type_", "expected"),
    [
        ("boolean", "boolean"),
        ("int", "int"),
        ("long", "bigint"),
        ("float", "float"),
        ("double", "double"),
        ("bytes", "binary"),
        ("string", "string"),
        ({"type": "fixed", "name": "F", "size": 2}, "binary"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "string"),
        ({"type": "array", "items": "int"}, "array<int>"),
        ({"type": "map", "values": ["null", "int"]}, "map<string,int>"),
        ({"type": "int", "logicalType": "date"}, "date"),
        ({"type": "int", "logicalType": "time-millis"}, "int"),
        ({"type": "long", "logicalType": "time-micros"}, "bigint"),
        ({"type": "long", "logicalType": "timestamp-millis"}, "timestamp"),
        ({"type": "long", "logicalType": "timestamp-micros"}, "timestamp"),
        ({"type": "long", "logicalType": "timestamp-nanos"}, "bigint"),
        ({"type": "long", "logicalType": "local-timestamp-millis"}, "timestamp_ntz"),
        ({"type": "long", "logicalType": "local-timestamp-micros"}, "timestamp_ntz"),
        ({"type": "string", "logicalType": "uuid"}, "string"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, "decimal(9,2)"),
        (["null", "long"], "bigint"),
        (["long"], "bigint"),
        (["int", "long"], "bigint"),
        (["double", "null", "float"], "double"),
        (["int", "null", "string"], "struct<member0:int,member1:string>"),
        (["int", "long", "float"], "struct<member0:int,member1:bigint,member2:float>"),
    ],
)
def test_types_are_those_of_spark(type_, expected):
    assert type_of(record(field("a", type_))) == f"struct<a:{expected}>"


def test_values_that_are_no_structs_are_in_a_field():
    assert type_of("string") == "struct<value:string>"
    assert type_of(["null", "long"]) == "struct<value:bigint>"
    assert type_of(["null", record(field("a", "int"))]) == "struct<a:int>"
    assert type_of(["string", "int"]) == "struct<member0:string,member1:int>"


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (record(), False),
        (["null", record()], False),
        (["int", "string"], False),
        ("int", True),
        (["null", "int"], True),
        (["int", "long"], True),
        ({"type": "array", "items": "int"}, True),
    ],
)
def test_only_records_and_unions_are_structs_themselves(schema, expected):
    assert is_wrapped(parse_avro_schema(json.dumps(schema))) is expected


def test_fields_that_are_always_null_are_dropped():
    nulls = {"type": "array", "items": "null"}
    deep = {"type": "map", "values": nulls}
    fields = [field("a", "null"), field("b", nulls), field("c", deep), field("d", ["null"])]
    assert type_of(record(*fields, field("e", "int"))) == "struct<e:int>"
    with pytest.raises(ValueError, match="no values but null"):
        type_of("null")


LEAF = "struct<id:int,all:struct<member1:string>>"
NODE = record(field("id", "int"), field("next", ["null", "R"]), field("all", ["R", "string"]))


@pytest.mark.parametrize(
    ("depth", "expected"),
    [(1, LEAF), (2, f"struct<id:int,next:{LEAF},all:struct<member0:{LEAF},member1:string>>")],
)
def test_recursive_fields_are_dropped_at_a_depth(depth, expected):
    assert type_of(NODE, recursive_depth=depth) == expected


@pytest.mark.parametrize("depth", [-1, 0])
def test_recursive_records_are_refused_without_a_depth(depth):
    """Spark refuses them, too; the error names the field and the option."""
    with pytest.raises(ValueError, match=r"field 'next' contains .* R; .*'recursiveFieldMaxDepth'"):
        type_of(NODE, recursive_depth=depth)


def test_members_can_be_named_by_their_types():
    fixed = [{"type": "fixed", "name": name, "size": 1} for name in ("x.Ab", "y.aB")]
    union = ["int", fixed[0], {"type": "array", "items": "int"}]
    names = "struct<member_int:int,member_Ab:binary,member_array:array<int>>"
    assert type_of(record(field("a", union)), stable_prefix="member_") == f"struct<a:{names}>"
    with pytest.raises(ValueError, match="one name: Ab, aB"):
        type_of(record(field("a", fixed)), stable_prefix="")


def test_decimals_that_spark_does_not_have_are_refused():
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 39}
    with pytest.raises(ValueError, match=r"field 'a\.element' is a decimal of 39 digits"):
        type_of(record(field("a", {"type": "array", "items": decimal})))
    with pytest.raises(ValueError, match="it is a decimal of 39 digits"):
        type_of(decimal)


def test_types_are_not_nested_too_deeply():
    """Named types that are used in each other are deeper than the text."""
    links = (record(field("a", f"S{number}"), name=f"S{number + 1}") for number in range(99))
    chain = [record(field("a", "int"), name="S0"), *links]
    fields = [field(f"f{number}", one) for number, one in enumerate(chain)]
    assert type_of(record(*fields[:60])).count("struct") == 1 + 60 * 61 // 2
    with pytest.raises(ValueError, match="more than 64 levels deep"):
        type_of(record(*fields))


def test_types_have_a_limit(monkeypatch):
    monkeypatch.setattr(avro_types, "MAX_FIELDS", 8)
    inner = record(field("a", "int"), field("b", "int"), name="S")
    fields = [field("x", inner), field("y", "S")]
    assert type_of(record(*fields))
    with pytest.raises(ValueError, match="more than 8 fields"):
        type_of(record(*fields, field("z", "S")))


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


def test_a_schema_has_the_type_from_which_it_is_derived():
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


def test_names_are_spelled_as_spark_spells_them():
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
def test_decimals_take_as_few_bytes_as_possible(precision, size):
    struct = StructType((StructField("d", types.DecimalType(precision, 0)),))
    assert json.loads(derived_schema(struct))["fields"][0]["type"][0]["size"] == size
