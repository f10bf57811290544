import pickle
from dataclasses import replace

import pytest

from pyspark_kafka.domain.errors import OptionsError
from pyspark_kafka.domain.reading.records import WITHOUT_HEADERS, Projection
from pyspark_kafka.domain.values.data_types import STRING, StructType, parse_struct
from pyspark_kafka.domain.values.registry import Schema, SchemaType, SubjectVersion
from pyspark_kafka.domain.values.typed_schema import (
    RECORD_TYPES,
    TypedColumn,
    TypedSchema,
    select,
    typed_schema,
    with_corrupt_record,
)
from pyspark_kafka.domain.values.value_options import Framing, ValueOptions

JSON = ValueOptions("value", "json")
FIELDS = "a int, b struct<c:string,d:array<struct<e:int,f:int>>>, m map<string,struct<g:int,h:int>>"
TYPE = parse_struct(FIELDS)


def value(data_type: StructType = TYPE, **options: object) -> TypedColumn:
    return TypedColumn(replace(JSON, **options), data_type)  # type: ignore[arg-type]


def names(schema: TypedSchema) -> list[str]:
    return [column.name for column in schema.columns]


def selected(schema: TypedSchema, ddl: str) -> TypedSchema:
    return select(schema, parse_struct(ddl))


def refusal(schema: TypedSchema, ddl: str) -> tuple[str, ...]:
    with pytest.raises(OptionsError) as caught:
        selected(schema, ddl)
    return caught.value.problems


def test_decoded_columns_stay_in_their_places_with_their_errors_behind():
    schema = typed_schema(Projection(("key", "value", "offset")), [value(include_errors=True)])
    assert names(schema) == ["key", "value", "valueError", "valueBytes", "offset"]
    assert [str(column.data_type) for column in schema.columns][1:4] == [
        str(TYPE),
        "string",
        "binary",
    ]
    assert schema.record_columns == {"key", "offset"}
    assert pickle.loads(pickle.dumps(schema)) == schema  # noqa: S301
    assert hash(schema) == hash(pickle.loads(pickle.dumps(schema)))  # noqa: S301


def test_fields_can_be_columns():
    schema = typed_schema(Projection(("key", "value", "offset")), [value(flatten=True)])
    assert names(schema) == ["key", "a", "b", "m", "offset"]


def test_columns_to_read():
    """The offset is for errors, the headers for some framings, and the rest for dead letters."""
    schema = typed_schema(Projection(("value", "topic")), [value()])
    assert schema.projection(has_letters=False) == Projection(("value", "topic", "offset"))
    letters = ("key", "value", "topic", "partition", "offset", "timestamp", "headers")
    assert schema.projection(has_letters=True) == Projection(letters)
    framed = typed_schema(Projection(("value",)), [value(framing=Framing.CONFLUENT_HEADER)])
    assert framed.projection(has_letters=False).columns == ("value", "offset", "headers")


def test_names_that_clash():
    clashing = value(parse_struct("Offset int, keyError int, b int"), flatten=True)
    key = TypedColumn(ValueOptions("key", "json", include_errors=True), parse_struct("k int"))
    with pytest.raises(OptionsError) as caught:
        typed_schema(WITHOUT_HEADERS, [key, clashing])
    [problem] = caught.value.problems
    assert problem == (
        "several columns would have the name 'keyError', 'Offset', 'offset': leave fields out of "
        "the schema, leave columns out ('includeOffset' and others), or do not flatten"
    )
    assert names(typed_schema(Projection(("value",)), [clashing]))[0] == "Offset"


def test_corrupt_records_have_a_field_where_the_schema_has_it_or_last():
    plain = with_corrupt_record(JSON, TYPE)
    assert (plain.data_type, plain.corrupt_record) == (TYPE, None)
    assert plain.decoded_type == TYPE

    named = replace(JSON, corrupt_record_column="bad")
    last = with_corrupt_record(named, parse_struct("a int"))
    assert str(last.data_type) == "struct<a:int,bad:string>"
    assert str(last.decoded_type) == "struct<a:int>"

    placed = with_corrupt_record(named, parse_struct("bad string, a int"))
    assert (placed.corrupt_record, str(placed.decoded_type)) == ("bad", "struct<a:int>")
    spark = with_corrupt_record(JSON, parse_struct("a int, _corrupt_record string"))
    assert (spark.corrupt_record, str(spark.decoded_type)) == ("_corrupt_record", "struct<a:int>")
    of_avro = ValueOptions("value", "avro")
    assert with_corrupt_record(of_avro, spark.data_type).corrupt_record is None

    with pytest.raises(OptionsError, match="'bad' must be a string in the schema"):
        with_corrupt_record(named, parse_struct("bad int"))


def test_a_users_schema_selects_columns_and_fields():
    schema = typed_schema(WITHOUT_HEADERS, [value()])
    ddl = (
        "offset bigint, value struct<m:map<string,struct<h:int>>,b:struct<d:array<struct<f:int>>>>"
    )
    chosen = selected(schema, ddl)
    assert names(chosen) == ["offset", "value"]
    [column] = chosen.typed
    assert str(column.data_type) == str(parse_struct(ddl).fields[1].type)
    assert selected(schema, "topic string").typed == ()


def test_a_users_schema_selects_flattened_fields():
    schema = typed_schema(WITHOUT_HEADERS, [value(flatten=True)])
    chosen = selected(schema, "m map<string,struct<g:int>>, a int, offset bigint")
    assert names(chosen) == ["m", "a", "offset"]
    [column] = chosen.typed
    assert str(column.data_type) == "struct<m:map<string,struct<g:int>>,a:int>"


def test_a_users_schema_can_have_errors_alone():
    for flatten in (False, True):
        schema = typed_schema(WITHOUT_HEADERS, [value(flatten=flatten, include_errors=True)])
        [column] = selected(schema, "valueError string").typed
        assert column.data_type == TYPE


def test_a_users_schema_that_does_not_fit():
    schema = typed_schema(Projection(("value", "offset")), [value()])
    ddl = "ofset bigint, offset int, value struct<a:bigint,b:struct<c:string,x:int>,m:map<int,int>>"
    assert refusal(schema, ddl) == (
        "the schema's column 'ofset' is not one of value, offset",
        "the schema's field 'offset int' has the type bigint in the records",
        "the schema's field 'value.a bigint' has the type int in the records",
        "the schema's field 'value.b.x' is not in the schema of the records",
        "the schema's field 'value.m.key int' has the type string in the records",
        "the schema's field 'value.m.value int' has the type struct<g:int,h:int> in the records",
    )


def test_headers_are_selected_as_a_whole():
    schema = typed_schema(Projection(("value", "headers")), [value()])
    whole = f"headers {RECORD_TYPES['headers']}"
    assert names(selected(schema, whole)) == ["headers"]
    [problem] = refusal(schema, "headers array<struct<key:string>>")
    assert problem == (
        "the schema's field 'headers array<struct<key:string>>' has the type "
        "array<struct<key:string,value:binary>> in the records"
    )


def test_corrupt_records_need_another_field_to_decode():
    column = with_corrupt_record(replace(JSON, corrupt_record_column="bad"), TYPE)
    schema = typed_schema(WITHOUT_HEADERS, [column])
    [chosen] = selected(schema, "value struct<bad:string,a:int>").typed
    assert str(chosen.decoded_type) == "struct<a:int>"
    assert refusal(schema, "value struct<bad:string>") == (
        "the schema needs a field of 'value' in addition to 'bad'",
    )


def test_the_schema_of_a_column():
    """The registry's schema, a text of Protobuf, or none: formats read their own options."""
    registered = Schema(SchemaType.AVRO, "{}")
    version = SubjectVersion("s", 3, 7, registered)
    assert replace(value(), version=version).schema == registered
    proto = TypedColumn(ValueOptions("value", "protobuf", schema="message M {}"), TYPE)
    assert proto.schema == Schema(SchemaType.PROTOBUF, "message M {}")
    assert value(schema="a int").schema is None
    assert RECORD_TYPES["topic"] == STRING
