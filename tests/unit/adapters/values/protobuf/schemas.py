"""Schemas of the tests, compiled once."""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Final

from google.protobuf import duration_pb2, timestamp_pb2, wrappers_pb2
from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from pyspark_kafka.adapters.values.protobuf.schemas import compiled_messages
from pyspark_kafka.domain.values.registry import ImportedSchema, Schema, SchemaType

PROTO3: Final = """
syntax = "proto3";
package test;
import "google/protobuf/duration.proto";
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";

enum Color { RED = 0; GREEN = 1; BLUE = 7; DARK = -2; }

message Atoms {
  int32 i32 = 1; int64 i64 = 2; uint32 u32 = 3; uint64 u64 = 4; sint32 s32 = 5; sint64 s64 = 6;
  fixed32 f32 = 7; fixed64 f64 = 8; sfixed32 sf32 = 9; sfixed64 sf64 = 10;
  float real = 11; double wide = 12; bool truth = 13; string text = 14; bytes raw = 15;
  Color color = 16; int32 large = 1000; string largest = 536870911;
}
message Optionals {
  optional int32 i32 = 1; optional string text = 2; optional Color color = 3;
  optional double wide = 4; optional bool truth = 5; optional bytes raw = 6;
}
message Repeated {
  repeated int32 i32 = 1; repeated sint64 s64 = 2; repeated fixed32 f32 = 3;
  repeated double wide = 4; repeated bool truth = 5; repeated string text = 6;
  repeated bytes raw = 7; repeated Color color = 8; repeated Atoms atoms = 9;
  repeated int32 unpacked = 10 [packed = false]; repeated uint64 u64 = 11; repeated float real = 12;
}
message Nested {
  string name = 1; Inner inner = 2; repeated Inner inners = 3; int32 last = 4;
  message Inner {
    int32 id = 1; string text = 2; repeated int32 numbers = 3; Innermost innermost = 4;
  }
  message Innermost { repeated string words = 1; optional int64 id = 2; }
}
message Maps {
  map<string, int32> counts = 1; map<int32, string> names = 2; map<bool, double> truths = 3;
  map<sint64, Nested.Inner> inners = 4; map<string, Color> colors = 5; map<fixed64, bytes> raws = 6;
  map<string, google.protobuf.Timestamp> times = 7;
}
message Choice {
  int32 before = 1;
  oneof one { int32 number = 2; string text = 3; Nested.Inner inner = 4; Color color = 5;
              google.protobuf.Timestamp time = 6; }
  int32 after = 7;
}
message Times {
  google.protobuf.Timestamp time = 1; google.protobuf.Duration span = 2;
  repeated google.protobuf.Timestamp times = 3; repeated google.protobuf.Duration spans = 4;
}
message Wrapped {
  google.protobuf.Int32Value i32 = 1; google.protobuf.Int64Value i64 = 2;
  google.protobuf.UInt32Value u32 = 3; google.protobuf.UInt64Value u64 = 4;
  google.protobuf.FloatValue real = 5; google.protobuf.DoubleValue wide = 6;
  google.protobuf.BoolValue truth = 7; google.protobuf.StringValue text = 8;
  google.protobuf.BytesValue raw = 9; repeated google.protobuf.StringValue texts = 10;
  map<int32, google.protobuf.Int32Value> numbers = 11;
}
message Tree { int32 id = 1; Tree left = 2; repeated Tree more = 3; map<int32, Tree> named = 4; }
message Empty {}
message HasEmpty { Empty empty = 1; int32 id = 2; repeated Empty more = 3; }
"""

PROTO2: Final = """
syntax = "proto2";
package old;

enum Level { LOW = 1; HIGH = 5; TOP = 9; }
enum Rank { NONE = 0; FIRST = 1; }

message Defaults {
  optional int32 number = 1 [default = 42]; optional string text = 2 [default = "caf\\303\\251"];
  optional Level level = 3 [default = HIGH]; optional double wide = 4 [default = -inf];
  optional bool truth = 5 [default = true]; optional bytes raw = 6 [default = "\\000\\377"];
  optional float real = 7 [default = 1.5]; optional uint64 u64 = 8 [default = 18446744073709551615];
  optional int32 none = 9; optional string empty = 10 [default = ""];
  optional uint32 u32 = 11 [default = 4294967295]; optional sint64 s64 = 12 [default = -7];
}
message Required { required int32 id = 1; optional Part part = 2; repeated Part parts = 3;
  message Part { required string name = 1; optional int32 size = 2; } }
message Groups {
  optional group One = 1 { optional int32 id = 2; optional string text = 3; }
  repeated group Many = 4 { optional int32 id = 5; repeated Groups inner = 6; }
  optional int32 last = 7;
}
message Levels {
  optional Level level = 1; repeated Level levels = 2; repeated Level packed = 3 [packed = true];
  map<string, Rank> by_name = 4; optional Inner inner = 5; repeated Inner inners = 6;
  oneof one { Level first = 7; string second = 8; }
  message Inner {
    optional Level level = 1; repeated Level levels = 2; map<string, Rank> by_name = 3;
    oneof one { Level first = 4; string second = 5; }
  }
}
message Texts {
  optional string text = 1; repeated string texts = 2; map<string, string> pairs = 3;
  optional Texts inner = 4;
}
"""

EDITION: Final = """
edition = "2023";
package modern;

enum Closed { option features.enum_type = CLOSED; A = 1; B = 2; }

message Mixed {
  int32 explicit = 1; int32 implicit = 2 [features.field_presence = IMPLICIT];
  int32 required = 3 [features.field_presence = LEGACY_REQUIRED];
  string loose = 4 [features.utf8_validation = NONE]; string strict = 5;
  Inner delimited = 6 [features.message_encoding = DELIMITED]; Closed closed = 7;
  repeated int32 expanded = 8 [features.repeated_field_encoding = EXPANDED];
  message Inner { int32 id = 1; }
}
"""


def registered(text: str, **imports: str) -> Schema:
    """Return a schema, and the schemas that it imports by names without ``.proto``."""
    imported = tuple(ImportedSchema(f"{name}.proto", one) for name, one in imports.items())
    return Schema(SchemaType.PROTOBUF, text, imports=imported)


def message_named(name: str) -> Descriptor:
    """Return one of the messages above."""
    text = {"test": PROTO3, "old": PROTO2, "modern": EDITION}[name.partition(".")[0]]
    return compiled_messages(registered(text)).named(name)


def message_in(text: str) -> Descriptor:
    """Return the first message of a schema."""
    found = compiled_messages(registered(text)).at(())
    assert found is not None
    return found


@lru_cache(maxsize=64)
def message_class(descriptor: Descriptor) -> Any:
    """Return the class by which upb parses a message.

    Maps are lists of entries in it, as in Java's ``DynamicMessage``, of which Spark makes structs.
    Texts in entries of proto2 are lists, too: Java checks each that is given.
    """
    proto = FileDescriptorProto()
    descriptor.file.CopyToProto(proto)
    for message in _nested(proto.message_type):
        if message.options.map_entry and proto.syntax != "proto3":
            for field in message.field:
                is_text = field.type == field.TYPE_STRING
                field.label = field.LABEL_REPEATED if is_text else field.label
        message.options.ClearField("map_entry")
    pool = DescriptorPool()
    for well_known in (duration_pb2, timestamp_pb2, wrappers_pb2):
        pool.AddSerializedFile(well_known.DESCRIPTOR.serialized_pb)
    pool.Add(proto)
    return GetMessageClass(pool.FindMessageTypeByName(descriptor.full_name))


def _nested(messages: Iterable[Any]) -> Iterator[Any]:
    for message in messages:
        yield message
        yield from _nested(message.nested_type)
