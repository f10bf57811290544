import re

import pytest
from hypothesis import given, settings

from pyspark_kafka.domain.values import data_types as types
from pyspark_kafka.domain.values.data_types import (
    MAX_DDL_DEPTH,
    MAX_DDL_FIELDS,
    MAX_DDL_LENGTH,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
    find_named,
    parse_struct,
)
from tests.unit.domain.values.strategies import struct_types


def struct(**fields: DataType) -> StructType:
    return StructType(tuple(StructField(name, kind) for name, kind in fields.items()))


@settings(max_examples=50)
@given(struct_types)
def test_a_type_is_parsed_from_its_own_text(given_type):
    assert parse_struct(str(given_type)) == given_type
    assert parse_struct(", ".join(map(str, given_type.fields))) == given_type


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("a int", struct(a=types.INTEGER)),
        (" a\tINTEGER ,\nb  Long", struct(a=types.INTEGER, b=types.LONG)),
        ("a byte, b short, c real", struct(a=types.BYTE, b=types.SHORT, c=types.FLOAT)),
        ("a timestamp_ltz, b timestamp", struct(a=types.TIMESTAMP, b=types.TIMESTAMP)),
        ("a INTERVAL DAY TO SECOND", struct(a=types.DAY_TIME_INTERVAL)),
        ("a TIMESTAMP_NTZ", struct(a=types.TIMESTAMP_NTZ)),
        ("a dec, b numeric(5)", struct(a=DecimalType(10, 0), b=DecimalType(5, 0))),
        ("a decimal( 10 , 2 )", struct(a=DecimalType(10, 2))),
        ("a array<array<int>>", struct(a=ArrayType(ArrayType(types.INTEGER)))),
        ("m map<string,date>", struct(m=MapType(types.STRING, types.DATE))),
        ("b struct<c:string, d int>", struct(b=struct(c=types.STRING, d=types.INTEGER))),
        ("`a b` int", struct(**{"a b": types.INTEGER})),
        ("`a``b` int", struct(**{"a`b": types.INTEGER})),
        ("a int NOT NULL, b int", struct(a=types.INTEGER, b=types.INTEGER)),
        ("a int not null comment 'it\\'s, <a>'", struct(a=types.INTEGER)),
        ("a int comment 'it''s', b int", struct(a=types.INTEGER, b=types.INTEGER)),
        ("a int -- b string, '\n, c int --", struct(a=types.INTEGER, c=types.INTEGER)),
        ("/* a */a/**/int/* ' */ ,/*\n*/b int", struct(a=types.INTEGER, b=types.INTEGER)),
        ("a timestamp without time zone", struct(a=types.TIMESTAMP_NTZ)),
        ("a timestamp with local time zone", struct(a=types.TIMESTAMP)),
        ("a string collate UTF8_BINARY comment 'x'", struct(a=types.STRING)),
        ('a int COMMENT "x"', struct(a=types.INTEGER)),
        ("a: int", struct(a=types.INTEGER)),
        ("STRUCT < a : int >", struct(a=types.INTEGER)),
        ("struct int, comment string", struct(struct=types.INTEGER, comment=types.STRING)),
        (
            "struct struct<struct:struct<a:int>>",
            struct(struct=struct(struct=struct(a=types.INTEGER))),
        ),
        ("1a int, ä string", struct(**{"1a": types.INTEGER, "ä": types.STRING})),
    ],
)
def test_names_and_types_may_be_in_any_case_with_any_space_between_them(text, parsed):
    assert parse_struct(text) == parsed


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "needs the name of a field at its end"),
        ("a", "needs a type at its end"),
        ("a int,", "needs the name of a field at its end"),
        ("a int b int", "needs the end of the schema at 'b int'"),
        ("1 int", "needs the name of a field at '1 int'"),
        ("`` int", "needs the name of a field at '`` int'"),
        ("a array<int", "needs '>' at its end"),
        ("a array int", "needs '<' at 'int'"),
        ("a map<int>", "needs ',' at '>'"),
        ("a struct<>", "would have no data: leave the field out, or read it as 'string'"),
        ("a struct<b: array<struct<>>>", "a struct without fields is not supported"),
        ("a int /* b", "needs the end of the schema at '/* b'"),
        ("a int comment 'it''s", "needs the end of the schema at ''s'"),
        ("a timestamp without zone", "needs 'timestamp without time zone' at 'zone'"),
        ("a timestamp with time zone", "needs 'timestamp with local time zone' at 'time zone'"),
        ("a string collate utf8_lcase", "the collation 'utf8_lcase' is not supported: use"),
        ("a int not b", "needs NULL after NOT at 'b'"),
        ("a int comment b", "needs a comment in quotes at 'b'"),
        ("a decimal(a)", "needs a number of digits at 'a)'"),
        ("a decimal(39)", "1 to 38 digits, got 39"),
        ("a decimal(2,3)", "must be between 0 and 2"),
        ("a decimal(9999999999)", "needs a number of digits"),
        ("a int; drop", "needs the end of the schema at '; drop'"),
        ("a <int>", "needs a type at '<int>'"),
        ("a varchar(10)", "the type 'varchar' is not supported: use 'string'"),
        ("a CHAR(1)", "the type 'CHAR' is not supported: use 'string'"),
        ("a variant", "the type 'variant' is not supported: read the column as 'string'"),
        ("a interval year to month", "needs 'interval day to second' at 'year to month'"),
        ("a strin", "the type 'strin' is not known"),
        ("a map<map<int,int>,int>", "the key of a map must not be a map"),
        ("a int, a string", "the field 'a' twice in a struct"),
        ('{"type": "record"}', 'needs the name of a field at \'{"type"'),
    ],
)
def test_a_text_that_is_no_schema_is_refused(text, problem):
    with pytest.raises(ValueError, match=re.escape(problem)):
        parse_struct(text)


def test_a_schema_has_a_maximum_size():
    levels = MAX_DDL_DEPTH - 1
    deep = parse_struct("a " + "array<" * levels + "int" + ">" * levels)
    assert str(deep).count("array") == levels
    with pytest.raises(ValueError, match="more than 64 levels deep"):
        parse_struct("a " + "array<" * MAX_DDL_DEPTH + "int" + ">" * MAX_DDL_DEPTH)
    with pytest.raises(ValueError, match="more than 64 levels deep"):
        parse_struct("a struct<" * 100_000)
    fields = ",".join(f"a{number} int" for number in range(MAX_DDL_FIELDS))
    assert len(parse_struct(fields).fields) == MAX_DDL_FIELDS
    with pytest.raises(ValueError, match="more than 10,000 fields"):
        parse_struct(f"{fields},b int")
    with pytest.raises(ValueError, match="more than 1,048,576 characters"):
        parse_struct("a int".ljust(MAX_DDL_LENGTH + 1))


def test_names_are_found_in_any_case_unless_two_differ_in_it_only():
    fields = parse_struct("a int, A int, bc int").fields
    assert find_named(fields, "A") is fields[1]
    assert find_named(fields, "BC") is fields[2]
    assert find_named(parse_struct("ab int, aB int").fields, "AB") is None
    assert find_named(fields, "d") is None
