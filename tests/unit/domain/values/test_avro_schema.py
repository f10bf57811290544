import json
from typing import Any

import pytest

from pyspark_kafka.domain.values import avro_schema
from pyspark_kafka.domain.values.avro_schema import (
    Array,
    AvroSchema,
    Decimal,
    Enumeration,
    Fixed,
    Kind,
    Logical,
    Map,
    Primitive,
    Record,
    RecordField,
    Reference,
    Union,
    parse_avro_schema,
)

INT = Primitive(Kind.INT)
BYTES = Primitive(Kind.BYTES)


def parsed(schema: Any) -> Any:
    return parse_avro_schema(json.dumps(schema)).type


def record(*fields: Any, **attributes: Any) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": list(fields), **attributes}


def field(name: str, type_: Any, **attributes: Any) -> dict[str, Any]:
    return {"name": name, "type": type_, **attributes}


@pytest.mark.parametrize("kind", Kind)
def test_primitive_types_are_parsed_by_their_names_and_as_objects(kind):
    assert parsed(kind.value) == Primitive(kind)
    assert parsed({"type": kind.value}) == Primitive(kind)
    assert parsed({"type": {"type": kind.value}}) == Primitive(kind)
    assert parsed(kind.value).name == kind.value


def test_complex_types_are_parsed():
    assert parsed({"type": "array", "items": "int"}) == Array(INT)
    assert parsed({"type": "map", "values": "int"}) == Map(INT)
    assert parsed(["null", "int"]) == Union((Primitive(Kind.NULL), INT))
    assert parsed({"type": "fixed", "name": "F", "size": 3, "aliases": ["G"]}) == Fixed(
        "F", 3, None, ("G",)
    )
    enum = {"type": "enum", "name": "E", "symbols": ["A", "B"], "default": "B", "aliases": ["D"]}
    assert parsed(enum) == Enumeration("E", ("A", "B"), "B", ("D",))
    names = [parsed({"type": "array", "items": "int"}).name, parsed(["int"]).name]
    assert names == ["array", "union"]


def test_records_have_fields_with_defaults_and_aliases():
    fields = [field("a", "int", default=None, aliases=["b"]), field("c", "bytes")]
    expected = Record("R", (RecordField("a", INT, True, None, ("b",)), RecordField("c", BYTES)))
    assert parsed(record(*fields)) == expected
    assert parsed({**record(*fields), "type": "error"}) == expected


def test_names_are_in_the_namespace_around_them():
    inner = {"type": "fixed", "name": "F", "size": 1, "aliases": ["G", "x.H"]}
    outer = record(field("f", inner), field("g", "F"), namespace="n.m", aliases=["S"])
    found = parse_avro_schema(json.dumps(outer))
    fixed = Fixed("n.m.F", 1, None, ("n.m.G", "x.H"))
    assert found.type == Record(
        "n.m.R", (RecordField("f", fixed), RecordField("g", fixed)), ("n.m.S",)
    )
    assert set(found.named) == {"n.m.R", "n.m.F"}


def test_a_dotted_name_overrides_the_namespace_and_null_is_none():
    top = {"type": "fixed", "name": "T", "size": 1, "namespace": None}
    outer = {**record(field("a", top)), "name": "x.R", "namespace": "ignored"}
    assert parsed(outer).name == "x.R"
    assert parsed(record(field("a", top), field("b", "T"), namespace="n")).fields[1].type == Fixed(
        "T", 1
    )


def test_a_record_inside_itself_is_a_reference():
    schema = parse_avro_schema(json.dumps(record(field("next", ["null", "R"]))))
    assert isinstance(schema.type, Record)
    assert schema.type.fields[0].type == Union((Primitive(Kind.NULL), Reference("R")))
    assert schema.resolve(Reference("R")) is schema.type
    assert schema.resolve(INT) is INT


def test_imported_schemas_are_parsed_first():
    imported = json.dumps({"type": "fixed", "name": "F", "size": 1})
    assert parse_avro_schema('{"type": "array", "items": "F"}', [imported]) == AvroSchema(
        Array(Fixed("F", 1)), {"F": Fixed("F", 1)}
    )


@pytest.mark.parametrize(
    ("type_", "logical"),
    [
        ({"type": "int"}, Logical.DATE),
        ({"type": "int"}, Logical.TIME_MILLIS),
        ({"type": "long"}, Logical.TIME_MICROS),
        ({"type": "long"}, Logical.TIMESTAMP_MILLIS),
        ({"type": "long"}, Logical.TIMESTAMP_MICROS),
        ({"type": "long"}, Logical.TIMESTAMP_NANOS),
        ({"type": "long"}, Logical.LOCAL_TIMESTAMP_MILLIS),
        ({"type": "long"}, Logical.LOCAL_TIMESTAMP_MICROS),
        ({"type": "long"}, Logical.LOCAL_TIMESTAMP_NANOS),
        ({"type": "string"}, Logical.UUID),
        ({"type": "fixed", "name": "F", "size": 16}, Logical.UUID),
        ({"type": "fixed", "name": "F", "size": 12}, Logical.DURATION),
    ],
)
def test_logical_types_annotate_their_types(type_, logical):
    assert parsed({**type_, "logicalType": logical.value}).logical is logical
    assert parsed({"type": "double", "logicalType": logical.value}).logical is None
    assert (
        parsed({"type": "fixed", "name": "F", "size": 5, "logicalType": logical.value}).logical
        is None
    )


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"precision": 4, "scale": 2}, Decimal(4, 2)),
        ({"precision": 4}, Decimal(4)),
        ({}, None),
        ({"precision": 0}, None),
        ({"precision": 2, "scale": 3}, None),
        ({"precision": 2, "scale": -1}, None),
        ({"precision": "4"}, None),
        ({"precision": 4, "scale": 1.5}, None),
    ],
)
def test_decimals_that_are_not_valid_are_ignored(attributes, expected):
    assert parsed({"type": "bytes", "logicalType": "decimal", **attributes}).logical == expected


@pytest.mark.parametrize(
    ("size", "precision", "fits"),
    [
        (1, 2, True),
        (1, 3, False),
        (4, 9, True),
        (4, 10, False),
        (16, 38, True),
        (16, 39, False),
        (1, 10**6, False),
        (2000, 4815, False),
        (2000, 4000, True),
        (0, 1, False),
    ],
)
def test_a_decimal_has_to_fit_its_fixed_size(size, precision, fits):
    fixed = {"type": "fixed", "name": "F", "size": size, "logicalType": "decimal"}
    assert (parsed({**fixed, "precision": precision}).logical is not None) == fits


def test_a_decimal_of_another_type_is_ignored():
    assert parsed({"type": "int", "logicalType": "decimal", "precision": 4}).logical is None
    assert parsed({"type": "int", "logicalType": "unheard-of"}).logical is None


FIXED = {"type": "fixed", "name": "F", "size": 1}
ENUM = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
INNER = record(field("x", "int"), field("next", ["null", "I"]), name="I")


@pytest.mark.parametrize("definition", [FIXED, ENUM, INNER])
def test_types_may_be_defined_again_in_the_same_way(definition):
    """As in Java's parser: the first definition counts, and aliases may differ."""
    again = {**definition, "aliases": ["other"], "doc": "again"}
    found = parsed(record(field("a", definition), field("b", {"type": "array", "items": again})))
    assert found.fields[1].type.items is found.fields[0].type
    assert found.fields[0].type.aliases == ()


@pytest.mark.parametrize("definition", [FIXED, ENUM, INNER])
@pytest.mark.parametrize("namespace", ["", "n"])
def test_types_may_be_used_before_they_are_defined(definition, namespace):
    name = definition["name"]
    uses = [field("a", ["null", name]), field("b", {"type": "map", "values": {"type": name}})]
    around = record(field("d", definition), field("e", name), name="Around")
    late = parse_avro_schema(json.dumps(record(*uses, field("c", around), namespace=namespace)))
    early = [field("a", ["null", definition]), field("b", {"type": "map", "values": name})]
    around = record(field("d", name), field("e", name), name="Around")
    expected = json.dumps(record(*early, field("c", around), namespace=namespace))
    assert late == parse_avro_schema(expected)


def test_types_may_refer_to_each_other_before_they_are_defined():
    inner = record(field("r", "R"), field("s", ["null", "S"]), field("t", "T"), name="S")
    found = parsed(record(field("a", "S"), field("b", {"type": "array", "items": [inner, FIXED]}),
                          field("c", record(name="T"))))  # fmt: skip
    first = found.fields[0].type
    null = Primitive(Kind.NULL)
    types = [Reference("R"), Union((null, Reference("S"))), Record("T", ())]
    assert [one.type for one in first.fields] == types
    assert found.fields[1].type.items.branches[0] is first


def test_a_name_with_a_dot_in_front_has_no_namespace():
    outer = record(field("a", {**FIXED, "name": ".F"}), field("b", "F"), namespace="n")
    assert parsed(outer).fields[1].type == Fixed("F", 1)


@pytest.mark.parametrize(
    "text",
    [
        '/* a "comment" */ {"type": "fixed", /* " */ "name": "F", "size": 1} // "',
        '// {\n{"type": "fixed", "name": "F", "doc": "// /* \\" */", "size": 1}/**/',
        '{"type": "enum", "size": 7, "type": "fixed", "name": "X", "name": "F", "size": 1}',
    ],
)
def test_comments_and_duplicate_keys_are_accepted(text):
    """As Jackson does for Java: the last of duplicate keys counts."""
    assert parse_avro_schema(text).type == Fixed("F", 1)


@pytest.mark.parametrize("text", ["/*" * 500_000, '"' + '\\"' * 500_000, "//" * 500_000])
def test_comments_without_an_end_do_not_take_long(text):
    with pytest.raises(ValueError, match=r"Expecting value|Unterminated"):
        parse_avro_schema(text)


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (7, "7 is not a type"),
        (None, "None is not a type"),
        ({}, "None is not a type"),
        ("what", "'what' is not defined"),
        ({"type": "what"}, "'what' is not defined"),
        ([], "a union has no branches"),
        (record(field("a", {"type": "array", "items": []})), "a.element': a union has no branches"),
        (["int", "int"], "a union cannot have"),
        (["int", ["null", "string"]], "a union cannot have"),
        ([FIXED, "F"], "a union cannot have"),
        (record(field("a", ["F", "F"]), field("b", FIXED)), "a union cannot have"),
        (record(field("a", ["F", FIXED])), "a union cannot have"),
        ({"type": "array"}, "field 'element': None is not a type"),
        ({"type": "map"}, "field 'value': None is not a type"),
        ({**FIXED, "size": -1}, "the size of F is -1"),
        ({**FIXED, "size": True}, "the size of F is True"),
        ({**FIXED, "size": 2**31}, "the size of F is 2147483648"),
        ({**FIXED, "name": "1F"}, "'1F' is not a new name"),
        ({**FIXED, "name": "a..F"}, "'a..F' is not a new name"),
        ({**FIXED, "name": ""}, "'' is not a new name"),
        ({**FIXED, "name": "int"}, "'int' is not a new name"),
        ({**FIXED, "name": None}, "the name None"),
        ({**FIXED, "namespace": 3}, "the namespace 3"),
        ({**FIXED, "aliases": "G"}, "aliases are 'G'"),
        ({**FIXED, "aliases": [1]}, "aliases are [1]"),
        ({"type": "enum", "name": "E"}, "the symbols of E are None"),
        ({"type": "enum", "name": "E", "symbols": ["a-b"]}, "the symbols of E are"),
        ({"type": "enum", "name": "E", "symbols": ["A", "A"]}, "E has duplicate symbols"),
        ({"type": "enum", "name": "E", "symbols": ["A"], "default": "B"}, "an unknown default"),
        ({"type": "enum", "name": "E", "symbols": ["A"], "default": []}, "an unknown default"),
        ({"type": "record", "name": "R"}, "R has no fields"),
        (record("x"), "a field has the name None"),
        (record(field("a b", "int")), "a field has the name 'a b'"),
        (record(field("a", "int"), field("a", "int")), "R has two fields of one name"),
        (record(field("a", "what")), "field 'a': the type 'what'"),
        (record(field("a", record())), "field 'a': 'R' is not a new name"),
        (record(field("a", FIXED), field("b", {**FIXED, "size": 2})), "'F' is defined twice"),
        (record(field("a", ENUM), field("b", {**ENUM, "symbols": ["B", "A"]})), "defined twice"),
        (record(field("a", INNER), field("b", {**INNER, "fields": []})), "defined twice"),
        (record(field("a", "F"), field("b", {**FIXED, "namespace": "n"})), "'F' is not defined"),
        ({**FIXED, "name": "..F"}, "'..F' is not a new name"),
        (
            record(
                field("a", {"type": "array", "items": record(name="S", fields=[field("b", 1)])})
            ),
            "field 'a.element.b': 1 is not a type",
        ),
    ],
)
def test_what_is_no_schema_is_refused_with_its_path(schema, reason):
    with pytest.raises(ValueError) as caught:  # noqa: PT011  # the message is checked below
        parsed(schema)
    assert reason in str(caught.value)


@pytest.mark.parametrize("text", ["", "{", "string", '# x\n"int"', "[" * 9999])
def test_text_that_is_not_json_is_refused(text):
    with pytest.raises(ValueError):  # noqa: PT011  # the messages are Python's
        parse_avro_schema(text)


def test_types_are_not_nested_too_deeply():
    """There is a limit to the depth, so that no later step exceeds Python's stack."""
    schema: Any = "int"
    for _ in range(avro_schema.MAX_DEPTH):
        schema = {"type": "array", "items": schema}
    assert parsed(schema)
    with pytest.raises(ValueError, match="more than 64 levels"):
        parsed({"type": "array", "items": schema})


def test_a_schema_is_not_too_long(monkeypatch):
    monkeypatch.setattr(avro_schema, "MAX_TEXT", 5)
    assert parse_avro_schema('"int"').type == INT
    with pytest.raises(ValueError, match="6 characters, more than 5"):
        parse_avro_schema('"long"')


def test_names_may_have_letters_of_any_script():
    assert parsed(record(field("größe_1", "int"))).fields[0].name == "größe_1"
