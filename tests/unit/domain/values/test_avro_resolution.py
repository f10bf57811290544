import json
from typing import Any

import pytest

from pyspark_kafka.domain.values import avro_resolution
from pyspark_kafka.domain.values import data_types as types
from pyspark_kafka.domain.values.avro_resolution import Conversion, Mismatch
from pyspark_kafka.domain.values.avro_schema import AvroSchema, Kind, Record, parse_avro_schema
from pyspark_kafka.domain.values.avro_types import AvroTypeOptions, struct_of
from pyspark_kafka.domain.values.data_types import parse_struct

from .avro_tree import (
    Node,
    ReadArray,
    ReadDecimal,
    ReadDefault,
    ReadEnumeration,
    ReadFixed,
    ReadMap,
    ReadMember,
    ReadNull,
    ReadPrimitive,
    ReadRecord,
    ReadUnion,
    Skip,
    Step,
    Tree,
    mismatches,
    resolved,
)
from .test_avro_schema import field, record

INT = ReadPrimitive(Kind.INT, Conversion.INT32)
LONG = ReadPrimitive(Kind.LONG, Conversion.INT64)
TEXT = ReadPrimitive(Kind.STRING, Conversion.STRING)
MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
MICROS = {"type": "long", "logicalType": "timestamp-micros"}
NANOS = {"type": "long", "logicalType": "timestamp-nanos"}
LOCAL = {"type": "long", "logicalType": "local-timestamp-millis"}


def schema_of(schema: Any) -> AvroSchema:
    return parse_avro_schema(json.dumps(schema))


def tree_of(writer: Any, reader: Any, wanted: str | None = None, **options: Any) -> Node:
    """Resolve a schema to another one; without wanted columns, to all of the reader's."""
    to, type_options = schema_of(reader), AvroTypeOptions(**options)
    struct = parse_struct(wanted) if wanted is not None else struct_of(to, type_options)
    return resolved(schema_of(writer), to, struct, type_options)


def value_of(writer: Any, reader: Any, wanted: str | None = None) -> Any:
    columns = None if wanted is None else f"a {wanted}"
    tree = tree_of(record(field("a", writer)), record(field("a", reader)), columns)
    assert isinstance(tree, ReadRecord)
    (step,) = tree.steps
    assert step.field == 0
    return step.node


def reason_of(node: Node) -> str:
    (found,) = mismatches(node)
    return str(found)


@pytest.mark.parametrize(
    ("writer", "reader", "kind", "conversion"),
    [
        ("boolean", "boolean", Kind.BOOLEAN, Conversion.BOOLEAN),
        ("int", "int", Kind.INT, Conversion.INT32),
        ("int", "long", Kind.INT, Conversion.INT64),
        ("int", "float", Kind.INT, Conversion.FLOAT),
        ("int", "double", Kind.INT, Conversion.DOUBLE),
        ("long", "long", Kind.LONG, Conversion.INT64),
        ("long", "float", Kind.LONG, Conversion.FLOAT),
        ("long", "double", Kind.LONG, Conversion.DOUBLE),
        ("float", "float", Kind.FLOAT, Conversion.FLOAT),
        ("float", "double", Kind.FLOAT, Conversion.DOUBLE),
        ("double", "double", Kind.DOUBLE, Conversion.DOUBLE),
        ("string", "string", Kind.STRING, Conversion.STRING),
        ("string", "bytes", Kind.STRING, Conversion.BINARY),
        ("bytes", "bytes", Kind.BYTES, Conversion.BINARY),
        ("bytes", "string", Kind.BYTES, Conversion.STRING),
        (MILLIS, MILLIS, Kind.LONG, Conversion.MICROS_OF_MILLIS),
        (MICROS, MICROS, Kind.LONG, Conversion.INT64),
        ("long", MILLIS, Kind.LONG, Conversion.MICROS_OF_MILLIS),
        ("int", MICROS, Kind.INT, Conversion.INT64),
        (LOCAL, LOCAL, Kind.LONG, Conversion.MICROS_OF_MILLIS),
        (NANOS, NANOS, Kind.LONG, Conversion.INT64),
        (MILLIS, "long", Kind.LONG, Conversion.INT64),
    ],
)
def test_primitive_types_are_read_as_the_readers(writer, reader, kind, conversion):
    assert value_of(writer, reader) == ReadPrimitive(kind, conversion)


@pytest.mark.parametrize(
    ("writer", "reader"),
    [
        ("long", "int"),
        ("double", "float"),
        ("float", "long"),
        ("string", "int"),
        ("boolean", "int"),
        ("null", "int"),
        ("int", {"type": "array", "items": "int"}),
        ({"type": "map", "values": "int"}, {"type": "array", "items": "int"}),
        ({"type": "fixed", "name": "F", "size": 1}, "bytes"),
    ],
)
def test_other_types_are_mismatches(writer, reader):
    node = value_of(writer, reader)
    assert isinstance(node, Mismatch)
    assert str(node).startswith("field 'a': ")
    assert " cannot be read as " in str(node)


@pytest.mark.parametrize(
    ("type_", "wanted", "conversion"),
    [
        ("int", "bigint", Conversion.INT64),
        ("int", "double", Conversion.DOUBLE),
        ("int", "date", Conversion.INT32),
        ({"type": "int", "logicalType": "date"}, "int", Conversion.INT32),
        ("float", "double", Conversion.DOUBLE),
        ("long", "timestamp", Conversion.MICROS_OF_MILLIS),
        ("long", "timestamp_ntz", Conversion.MICROS_OF_MILLIS),
        (MICROS, "bigint", Conversion.INT64),
        ("long", "date", Conversion.DATE_OF_MILLIS),
        (MILLIS, "date", Conversion.DATE_OF_MILLIS),
        ({"type": "int", "logicalType": "date"}, "timestamp_ntz", Conversion.MICROS_OF_DAYS),
    ],
)
def test_columns_may_have_the_types_that_spark_allows(type_, wanted, conversion):
    assert value_of(type_, type_, wanted).conversion is conversion


def test_an_integer_that_is_promoted_to_float_is_rounded_before_it_is_double():
    expected = ReadPrimitive(Kind.LONG, Conversion.DOUBLE_OF_FLOAT)
    assert value_of("long", "float", "double") == expected


@pytest.mark.parametrize(
    ("type_", "wanted"),
    [
        ("int", "smallint"),
        ("long", "int"),
        ("double", "float"),
        ("string", "binary"),
        ("string", "int"),
        (MILLIS, "timestamp_ntz"),
        (LOCAL, "timestamp"),
        (NANOS, "timestamp"),
        (MICROS, "date"),
        ("bytes", "decimal(3,0)"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4}, "decimal(3,0)"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4}, "decimal(4,1)"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 1}, "decimal(4,0)"),
        ({"type": "array", "items": "int"}, "map<string,int>"),
        ({"type": "map", "values": "int"}, "map<int,int>"),
        (record(name="S"), "string"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "int"),
        ({"type": "fixed", "name": "F", "size": 1}, "string"),
    ],
)
def test_columns_of_other_types_are_mismatches(type_, wanted):
    assert "cannot be read as" in reason_of(value_of(type_, type_, wanted))


def test_a_mismatch_names_the_logical_type():
    assert reason_of(value_of(MICROS, MICROS, "date")) == (
        "field 'a': long (timestamp-micros) cannot be read as date"
    )
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 1}
    assert reason_of(value_of(decimal, decimal, "decimal(4,2)")) == (
        "field 'a': bytes (decimal of 4 digits, 1 of scale) cannot be read as decimal(4,2)"
    )
    assert reason_of(tree_of("int", "string")) == "field 'value': int cannot be read as string"
    assert str(Mismatch("", "reason")) == "reason"


@pytest.mark.parametrize(
    ("writer", "reader", "conversion"),
    [
        (MILLIS, MICROS, Conversion.MICROS_OF_MILLIS),
        (MICROS, MILLIS, Conversion.INT64),
        (LOCAL, MICROS, Conversion.MICROS_OF_MILLIS),
    ],
)
def test_instants_are_kept_where_the_unit_changes(writer, reader, conversion):
    """The number is in the writer's unit. Java takes it for one in the reader's."""
    assert value_of(writer, reader).conversion is conversion


@pytest.mark.parametrize(
    ("writer", "reader", "wanted"),
    [
        (MILLIS, MICROS, "bigint"),
        (NANOS, MICROS, "timestamp"),
        (MICROS, NANOS, "bigint"),
        (MICROS, MILLIS, "date"),
    ],
)
def test_numbers_of_another_unit_are_mismatches(writer, reader, wanted):
    """Where the column holds the number itself, another unit would be another value."""
    assert "cannot be read" in reason_of(value_of(writer, reader, wanted))


def test_fixed_types_need_one_size_and_decimals_one_scale_and_enough_digits():
    fixed = {"type": "fixed", "name": "n.F", "size": 4}
    assert value_of(fixed, {**fixed, "name": "m.F"}) == ReadFixed(4)
    assert reason_of(value_of(fixed, {**fixed, "size": 5})).endswith("4 bytes cannot be read as 5")
    assert "n.F cannot be read as n.G" in reason_of(value_of(fixed, {**fixed, "name": "n.G"}))
    assert value_of(fixed, {**fixed, "name": "n.G", "aliases": ["F"]}) == ReadFixed(4)
    decimal = {"logicalType": "decimal", "precision": 4, "scale": 2}
    assert value_of({**fixed, **decimal}, {**fixed, **decimal}) == ReadDecimal(4, 4)
    assert value_of(fixed, {**fixed, **decimal}) == ReadDecimal(4, 4)
    bytes_ = {"type": "bytes", **decimal}
    assert value_of(bytes_, {**bytes_, "precision": 6}) == ReadDecimal(None, 6)
    assert value_of(bytes_, bytes_, "decimal(9,2)") == ReadDecimal(None, 4)
    assert value_of(bytes_, bytes_, "decimal(6,4)") == ReadDecimal(None, 4, 2)
    for change in ({"precision": 3}, {"scale": 1}):
        reason = reason_of(value_of(bytes_, {**bytes_, **change}))
        assert "bytes (decimal of 4 digits, 2 of scale) cannot be read as bytes" in reason


def test_enums_take_the_readers_default_for_unknown_symbols():
    written = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
    read = {"type": "enum", "name": "E", "symbols": ["C", "A"]}
    assert value_of(written, read) == ReadEnumeration(("A", None))
    assert value_of(written, {**read, "default": "C"}) == ReadEnumeration(("A", "C"))
    assert "E cannot be read as D" in reason_of(value_of(written, {**read, "name": "D"}))


def test_arrays_and_maps_resolve_what_they_hold():
    node = value_of({"type": "array", "items": "int"}, {"type": "array", "items": "int"})
    assert isinstance(node, ReadArray)
    assert node.element == INT
    assert value_of({"type": "map", "values": "int"}, {"type": "map", "values": "int"}) == ReadMap(
        INT
    )
    mismatch = value_of({"type": "array", "items": "int"}, {"type": "array", "items": "string"})
    assert reason_of(mismatch).startswith("field 'a.element'")
    mismatch = value_of({"type": "map", "values": "int"}, {"type": "map", "values": "string"})
    assert reason_of(mismatch).startswith("field 'a.value'")


def test_fields_are_read_in_the_writers_order():
    writer = record(field("b", "int"), field("c", "string"), field("a", "long"))
    reader = record(field("a", "long"), field("b", "int"))
    schema = schema_of(writer)
    assert isinstance(schema.type, Record)
    skipped = [Skip(one.name, one.type, schema) for one in schema.type.fields]
    assert tree_of(writer, reader) == ReadRecord(
        (Step(1, INT), Step(None, skipped[1]), Step(0, LONG))
    )
    assert tree_of(writer, reader, "a bigint") == ReadRecord(
        (Step(None, skipped[0]), Step(None, skipped[1]), Step(0, LONG))
    )


def test_fields_are_found_by_name_before_an_alias_and_once():
    aliased = record(field("a", "int", aliases=["x", "b"]), field("b", "int"))
    assert tree_of(record(field("x", "int"), field("b", "int")), aliased) == ReadRecord(
        (Step(0, INT), Step(1, INT))
    )
    found = tree_of(record(field("b", "int")), aliased)
    assert reason_of(found).startswith("field 'a': the value's schema has no such field")


def test_missing_fields_have_their_defaults():
    found = tree_of(record(), record(field("a", ["null", "int"], default=None)))
    assert found == ReadRecord((Step(0, ReadNull()),))
    found = tree_of(record(), record(field("a", ["int", "null"], default=1)))
    assert found == ReadRecord((Step(0, ReadDefault(b"\0\2", ReadUnion((INT, ReadNull())))),))
    assert not list(mismatches(found))
    missing = reason_of(tree_of(record(), record(field("a", "int"))))
    assert missing == "field 'a': the value's schema has no such field, and it has no default"
    wrong = reason_of(tree_of(record(), record(field("a", "int", default="x"))))
    assert wrong == "field 'a': its default 'x' is not of the type int"


def test_wanted_columns_are_found_by_name_in_any_case():
    """As in Spark, case matters only where fields differ in nothing else."""
    one = record(field("Ab", "int"))
    assert tree_of(one, one, "aB int") == ReadRecord((Step(0, INT),))
    two = record(field("ab", "int"), field("AB", "int"))
    found = tree_of(two, two, "AB int, ab int")
    assert found == ReadRecord((Step(1, INT), Step(0, INT)))
    assert reason_of(tree_of(two, two, "aB int")) == "field 'aB': the schema has no such field"
    assert (
        reason_of(tree_of(one, one, "Ab int, c int")) == "field 'c': the schema has no such field"
    )


def test_each_branch_of_a_writers_union_is_read_by_itself():
    nullable = value_of(["null", "int"], ["null", "int"])
    assert nullable == ReadUnion((ReadNull(), INT))
    found = value_of(["null", "string", "int"], "int")
    assert isinstance(found, ReadUnion)
    assert found.branches[2] == INT
    assert len(list(mismatches(found))) == 2
    assert reason_of(value_of(["string", "int"], ["null", "int"])) == (
        "field 'a': no branch of the union can hold string"
    )


S1 = record(field("x", "int"), name="n.S")
S2 = record(field("y", "int"), name="n.T")


@pytest.mark.parametrize(
    ("writer", "union", "branch"),
    [
        ("int", ["long", "int"], 1),
        ("int", ["string", "double", "long"], 1),
        ("bytes", ["null", "string"], 1),
        ("null", ["int", "null"], 1),
        (S1, [S2, S1], 1),
        (S1, [S2, {**S1, "name": "m.S"}], 1),
        (S1, [{**S2, "aliases": ["S"]}, record(field("x", "int"), name="U")], 0),
        (S1, [S2, record(field("x", "int"), field("z", "int", default=1), name="U")], 1),
        (S1, ["int", S2], None),
        ("boolean", ["int", "string"], None),
    ],
)
def test_a_branch_of_the_readers_union_is_chosen(writer, union, branch):
    reader = schema_of(union)
    resolver = avro_resolution._Resolver(schema_of(writer), reader, AvroTypeOptions(), Tree(), [])
    assert resolver._branch(schema_of(writer).type, reader.type) == branch  # type: ignore[arg-type]


def test_unions_of_numbers_are_numbers():
    """Spark reads a union of int and long as bigint, and one of float and double as double."""
    assert value_of("int", ["int", "long"]) == ReadPrimitive(Kind.INT, Conversion.INT64)
    assert value_of(["null", "float", "double"], ["null", "float", "double"]) == ReadUnion(
        (
            ReadNull(),
            ReadPrimitive(Kind.FLOAT, Conversion.DOUBLE),
            ReadPrimitive(Kind.DOUBLE, Conversion.DOUBLE),
        )
    )


def test_unions_of_numbers_are_not_read_as_other_types():
    """Spark refuses it, though each branch alone could be read as a date."""
    reasons = {
        found.reason for found in mismatches(value_of(["int", "long"], ["int", "long"], "date"))
    }
    assert reasons == {"a union of numbers cannot be read as date"}


UNION = ["int", "null", "string"]


def test_other_unions_are_structs_of_members():
    text, number = ReadMember(Step(1, TEXT)), ReadMember(Step(0, INT))
    assert value_of("string", UNION) == text
    assert value_of(UNION, UNION) == ReadUnion((number, ReadNull(), text))
    assert not list(mismatches(value_of(UNION, UNION)))
    one = value_of(UNION, UNION, "struct<member1:string>")
    skipped = one.branches[0].step
    assert (skipped.field, type(skipped.node), skipped.node.name) == (None, Skip, "member0")
    assert one.branches[2] == ReadMember(Step(0, TEXT))


def test_members_are_found_by_name_or_else_by_position():
    """Spark matches them by position, where there are as many as types."""
    swapped = value_of(UNION, UNION, "struct<member1:string,member0:int>")
    assert swapped.branches[2] == ReadMember(Step(0, TEXT))
    renamed = value_of(UNION, UNION, "struct<number:int,text:string>")
    assert renamed.branches[2] == ReadMember(Step(1, TEXT))
    unknown = value_of("int", UNION, "struct<number:int>")
    assert reason_of(unknown) == "field 'a': the union has no number"
    assert "a union of 2 types cannot be read as int" in reason_of(value_of("int", UNION, "int"))


def test_members_have_their_stable_names():
    schema = record(field("a", ["int", "string"]))
    tree = tree_of(schema, schema, stable_prefix="m_")
    assert isinstance(tree, ReadRecord)
    node = tree.steps[0].node
    assert isinstance(node, ReadUnion)
    assert node.branches[0] == ReadMember(Step(0, INT))


def test_recursive_records_are_read_as_deep_as_the_columns():
    node = record(field("id", "int"), field("next", ["null", "R"]))
    schema = schema_of(node)
    tree = tree_of(node, node, "id int, next struct<id:int>")
    assert isinstance(tree, ReadRecord)
    inner = tree.steps[1].node
    assert isinstance(inner, ReadUnion)
    assert isinstance(schema.type, Record)
    below = schema.type.fields[1].type
    assert inner.branches[1] == ReadRecord((Step(0, INT), Step(None, Skip("next", below, schema))))


def test_values_that_are_no_structs_are_read_as_records_of_one_field():
    assert tree_of("int", "long") == ReadRecord(
        (Step(0, ReadPrimitive(Kind.INT, Conversion.INT64)),)
    )
    nullable = ["null", record(field("a", "int"))]
    assert tree_of(nullable, nullable) == ReadUnion((ReadNull(), ReadRecord((Step(0, INT),))))


def test_trees_have_a_limit(monkeypatch):
    monkeypatch.setattr(avro_resolution, "MAX_NODES", 5)
    three = record(field("a", ["null", "int"]))
    assert isinstance(tree_of(three, three), ReadRecord)
    with pytest.raises(ValueError, match="more than 5 steps"):
        tree_of(record(field("a", ["null", "int", "long", "float"])), three)


def test_nulls_are_read_as_any_type():
    """A column may be wanted of a field that has no values."""
    assert value_of("null", "null", "int") == ReadNull()


def test_types_that_no_rule_knows_are_mismatches():
    """A struct of no fields can be wanted of a record only."""
    empty = types.StructType((types.StructField("a", types.StructType(())),))
    found = resolved(
        schema_of(record(field("a", "int"))), schema_of(record(field("a", "int"))), empty
    )
    assert "int cannot be read as struct<>" in reason_of(found)
