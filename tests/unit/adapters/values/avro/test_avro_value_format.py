import json
from typing import Any

import pytest

from pyspark_kafka.adapters.values.avro.value_format import VALUE_FORMAT
from pyspark_kafka.domain.errors import OptionsError
from pyspark_kafka.domain.values.data_types import parse_struct
from pyspark_kafka.domain.values.registry import Schema, SchemaType

from .corpus import NODE, one, record
from .decoding import options_of, payloads_of, rows_of


def registered(schema: Any) -> Schema:
    return Schema(SchemaType.AVRO, json.dumps(schema))


def type_of(schema: Any, **settings: str) -> str:
    return str(VALUE_FORMAT.data_type(options_of(json.dumps(schema), settings), None))


def test_the_type_is_the_readers():
    """The type is that of the option's schema, the registry's, or Spark's option ``avroSchema``."""
    number, text = json.dumps(one("int")), registered(one("string"))
    assert str(VALUE_FORMAT.data_type(options_of(number), None)) == "struct<a:int>"
    assert str(VALUE_FORMAT.data_type(options_of(None), text)) == "struct<a:string>"
    assert str(VALUE_FORMAT.data_type(options_of(number), text)) == "struct<a:int>"
    assert type_of(one("int"), avroSchema=json.dumps(one("long"))) == "struct<a:bigint>"


def test_options_of_types_have_sparks_names_and_defaults():
    union = one(["int", "string"])
    assert type_of(union) == "struct<a:struct<member0:int,member1:string>>"
    stable = {"enableStableIdentifiersForUnionType": "TRUE"}
    assert type_of(union, **stable) == "struct<a:struct<member_int:int,member_string:string>>"
    prefixed = type_of(union, **stable, stableIdentifierPrefixForUnionType="")
    assert prefixed == "struct<a:struct<int:int,string:string>>"
    assert type_of(NODE, recursiveFieldMaxDepth="1") == "struct<id:int>"


@pytest.mark.parametrize("depth", ["16", "x"])
def test_the_depth_of_recursion_is_a_small_number(depth):
    with pytest.raises(OptionsError, match=f"recursiveFieldMaxDepth is '{depth}'"):
        type_of(NODE, recursiveFieldMaxDepth=depth)


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (None, "it is needed, or a schema registry"),
        ("{", "Expecting"),
        ('"what"', "'what' is not defined"),
        (json.dumps(NODE), "contains its own record"),
        ('"null"', "no values but null"),
    ],
)
def test_what_is_no_schema_is_refused(schema, reason):
    with pytest.raises(OptionsError, match=r"Option 'valueSchema' is not a usable .*" + reason):
        VALUE_FORMAT.data_type(options_of(schema), None)
    if schema is None:
        with pytest.raises(OptionsError, match="'valueSchema'"):
            VALUE_FORMAT.decoder(options_of(schema), None, parse_struct("a int"))


def test_a_readers_schema_that_is_none_is_refused():
    with pytest.raises(OptionsError, match="'avroSchema' is not an Avro schema: the type 'x'"):
        type_of(one("int"), avroSchema='"x"')


def test_columns_that_the_schema_does_not_have_are_refused():
    options = options_of(json.dumps(record(("a", "int"), ("b", "string"))))
    with pytest.raises(OptionsError) as caught:
        VALUE_FORMAT.decoder(options, None, parse_struct("a string, c int"))
    assert caught.value.problems == (
        "Column 'value' of the query: field 'a': int cannot be read as string",
        "Column 'value' of the query: field 'c': the schema has no such field",
    )


def test_the_decoder_reads_the_wanted_columns():
    options = options_of(json.dumps(record(("a", "int"), ("b", "string"), ("c", "long"))))
    struct = parse_struct("c bigint, a bigint")
    decoder = VALUE_FORMAT.decoder(options, None, struct)
    assert decoder.data_type == struct
    found = decoder.decode(payloads_of([b"\x02\x02x\x06"]))
    assert rows_of(found) == [{"c": 3, "a": 1}]
