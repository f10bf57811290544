from typing import Final

import pytest

from pyspark_kafka.adapters.values.protobuf.invalid_descriptor import InvalidDescriptorError
from pyspark_kafka.adapters.values.protobuf.schemas import compiled_messages
from pyspark_kafka.adapters.values.protobuf.spark_types import (
    ProtobufSettings,
    message_type,
    protobuf_settings,
)
from pyspark_kafka.domain.errors import OptionsError
from pyspark_kafka.domain.values.value_options import ValueOptions

from .schemas import message_named, registered

INNER: Final = (
    "struct<id:int,text:string,numbers:array<int>,innermost:struct<words:array<string>,id:bigint>>"
)
TYPES: Final = {
    "test.Atoms": "i32:int,i64:bigint,u32:int,u64:bigint,s32:int,s64:bigint,f32:int,f64:bigint,"
    "sf32:int,sf64:bigint,real:float,wide:double,truth:boolean,text:string,raw:binary,"
    "color:string,large:int,largest:string",
    "test.Nested": f"name:string,inner:{INNER},inners:array<{INNER}>,last:int",
    "test.Maps": "counts:map<string,int>,names:map<int,string>,truths:map<boolean,double>,"
    f"inners:map<bigint,{INNER}>,colors:map<string,string>,raws:map<bigint,binary>,"
    "times:map<string,timestamp>",
    "test.Times": "time:timestamp,span:interval day to second,times:array<timestamp>,"
    "spans:array<interval day to second>",
    "test.HasEmpty": "id:int",
    "test.Empty": "",
    "old.Groups": "one:struct<id:int,text:string>,many:array<struct<id:int>>,last:int",
}


@pytest.mark.parametrize("name", TYPES)
def test_messages_become_structs_as_in_sparks_schemaconverters(name):
    settings = ProtobufSettings(max_recursion=1)
    assert str(message_type(message_named(name), settings)) == f"struct<{TYPES[name]}>"


def test_types_with_options():
    """Options change types: of unsigned numbers, enums, wrappers and empty messages."""
    settings = ProtobufSettings(
        enums_as_ints=True, upcast_unsigned=True, unwrap_wrappers=True, retain_empty=True
    )
    atoms = str(message_type(message_named("test.Atoms"), settings))
    assert "u32:bigint,u64:decimal(20,0),s32:int,s64:bigint,f32:int,f64:bigint" in atoms
    assert "color:int" in atoms
    dummy = "struct<__dummy_field_in_empty_struct:string>"
    assert str(message_type(message_named("test.HasEmpty"), settings)) == (
        f"struct<empty:{dummy},id:int,more:array<{dummy}>>"
    )
    assert str(message_type(message_named("test.Empty"), settings)) == dummy
    assert str(message_type(message_named("test.Wrapped"), settings)) == (
        "struct<i32:int,i64:bigint,u32:bigint,u64:decimal(20,0),real:float,wide:double,"
        "truth:boolean,text:string,raw:binary,texts:array<string>,numbers:map<int,int>>"
    )


CUT: Final = (
    "struct<id:int,left:struct<id:int>,more:array<struct<id:int>>,named:map<int,struct<id:int>>>"
)


@pytest.mark.parametrize(("depth", "right"), [(1, "struct<id:int>"), (2, CUT)])
def test_a_recursive_message_is_cut_off_below_a_depth(depth, right):
    message = message_named("test.Tree")
    assert str(message_type(message, ProtobufSettings(max_recursion=depth))) == right


def test_recursion_without_a_depth():
    with pytest.raises(InvalidDescriptorError, match=r"'test\.Tree\.left' is recursive; set"):
        message_type(message_named("test.Tree"), ProtobufSettings())


def test_a_message_that_is_named_and_built_as_a_timestamp_is_one():
    text = """syntax = "proto3"; package own;
    message Timestamp { int64 seconds = 3; int32 nanos = 9; }
    message Duration { double seconds = 1; int32 nanos = 2; }
    message M { Timestamp time = 1; Duration span = 2; }"""
    message = compiled_messages(registered(text)).named("own.M")
    assert str(message_type(message, ProtobufSettings())) == (
        "struct<time:timestamp,span:struct<seconds:double,nanos:int>>"
    )


@pytest.mark.parametrize(
    ("names", "count", "problem"), [("ab", 40, "10000 fields"), ("a", 200, "100 deep")]
)
def test_messages_that_grow_exponentially(names, count, problem):
    text = f'syntax = "proto3"; message M{count} {{ int32 a = 1; }}'
    for number in range(count):
        fields = (f"M{number + 1} {name} = {place};" for place, name in enumerate(names, 1))
        text += f"message M{number} {{ {' '.join(fields)} }}"
    message = compiled_messages(registered(text)).named("M0")
    with pytest.raises(InvalidDescriptorError, match=problem):
        message_type(message, ProtobufSettings())


def test_the_options_of_from_protobuf_are_understood_in_any_case_of_their_values():
    given = {
        "emit.default.values": "true",
        "enums.as.ints": "TRUE",
        "upcast.unsigned.ints": "false",
        "recursive.fields.max.depth": "3",
        "convert.any.fields.to.json": "true",
    }
    options = ValueOptions("value", "protobuf", settings=tuple(given.items()))
    assert protobuf_settings(options) == ProtobufSettings(
        emit_defaults=True, enums_as_ints=True, any_as_json=True, max_recursion=3
    )


@pytest.mark.parametrize("depth", ["11", "x"])
def test_a_depth_that_is_refused(depth):
    options = ValueOptions("value", "protobuf", settings=(("recursive.fields.max.depth", depth),))
    problem = f"'recursive.fields.max.depth' is a number up to 10, got '{depth}'"
    with pytest.raises(OptionsError, match=problem):
        protobuf_settings(options)
