from typing import Any, Final

import pytest

from pyspark_kafka.adapters.values.protobuf.spark_types import ProtobufSettings, message_type
from pyspark_kafka.domain.values.errors import FailureReason as Reason

from ..json.payloads import payloads_of
from .oracle import decoded, decoder_of
from .schemas import message_in
from .wire import number, sized

TEXT: Final = """syntax = "proto3"; package p;
import "google/protobuf/any.proto";
import "google/protobuf/duration.proto";
message Event {
  int32 id = 1; google.protobuf.Any one = 2; repeated google.protobuf.Any many = 3;
  map<string, google.protobuf.Any> named = 4; Inner inner = 5; repeated Inner inners = 6;
  oneof choice { google.protobuf.Any first = 7; int32 second = 8; }
}
message Inner { google.protobuf.Any one = 1; }
message Person { string full_name = 1; int64 id = 2; Kind kind = 3; repeated double sizes = 4; }
enum Kind { NONE = 0; SOME = 1; }
"""
PERSON: Final = "type.googleapis.com/p.Person"


def packed(name: str = PERSON, *fields: bytes) -> bytes:
    return sized(1, name.encode()) + sized(2, *fields)


@pytest.fixture(scope="module")
def decoder():
    settings = ProtobufSettings(any_as_json=True)
    message = message_in(TEXT)
    wanted = message_type(message, settings)
    assert str(wanted) == (
        "struct<id:int,one:string,many:array<string>,named:map<string,string>,"
        "inner:struct<one:string>,inners:array<struct<one:string>>,first:string,second:int>"
    )
    return decoder_of(message, wanted, settings)


def test_messages_are_json_without_spaces(decoder):
    person = packed(PERSON, sized(1, "<é='&>".encode()), number(2, 7), number(3, 1))
    (row,) = decoded(decoder, [number(1, 5) + sized(2, person)])
    name = r"\u003cé\u003d\u0027\u0026\u003e"
    kind = f'"@type":"{PERSON}","full_name":"{name}","id":"7","kind":"SOME"'
    assert row["one"] == f"{{{kind}}}"
    assert row["id"] == 5


def test_any_may_be_an_element_a_maps_value_in_a_oneof_and_in_nested_messages(decoder):
    one = packed(PERSON, number(2, 1))
    shown = f'{{"@type":"{PERSON}","id":"1"}}'
    data = sized(3, one) + sized(3) + sized(4, sized(1, b"k"), sized(2, one)) + sized(4)
    data += sized(5, sized(1, one)) + sized(6) + sized(6, sized(1, one)) + sized(7, one)
    assert decoded(decoder, [b"", data, None, data + number(8, 3)])[1:] == [
        {
            "id": None,
            "one": None,
            "many": [shown, "{}"],
            "named": {"k": shown, "": "{}"},
            "inner": {"one": shown},
            "inners": [{"one": None}, {"one": shown}],
            "first": shown,
            "second": None,
        },
        None,
        {**decoded(decoder, [data])[0], "first": None, "second": 3},
    ]


def test_the_parts_of_a_message_are_merged_as_those_of_any_other(decoder):
    parts = sized(2, sized(1, PERSON.encode())) + sized(2, sized(2, number(2, 9)))
    (row,) = decoded(decoder, [parts])
    assert row["one"] == f'{{"@type":"{PERSON}","id":"9"}}'


def test_a_well_known_type_has_its_own_json_as_a_value(decoder):
    name = "type.googleapis.com/google.protobuf.Duration"
    (row,) = decoded(decoder, [sized(2, packed(name, number(1, 3)))])
    assert row["one"] == f'{{"@type":"{name}","value":"3s"}}'


@pytest.mark.parametrize(
    "bad",
    [
        packed("type.googleapis.com/p.Missing"),
        packed("p.Person"),
        packed(PERSON, b"\x08"),
        packed(PERSON, sized(1, b"\xff")),
        b"\x0a\x05",
        packed("type.googleapis.com/google.protobuf.Duration", number(1, 2**62)),
    ],
)
def test_messages_that_cannot_be_shown(bad, decoder):
    good = sized(3, packed(PERSON, number(2, 4)))
    values = [good, good + sized(6, sized(1, bad)), number(1, 1), sized(3, bad) + good]
    result = decoder.decode(payloads_of(values))
    assert result.reasons.tolist() == [0, Reason.MALFORMED, 0, Reason.MALFORMED]
    names = [decoder.field_names[field] if field >= 0 else None for field in result.fields]
    assert names == [None, "inners.element.one", None, "many.element"]
    rows: list[Any] = decoded(decoder, values)
    assert rows[0]["many"] == [f'{{"@type":"{PERSON}","id":"4"}}']
    assert rows[2]["id"] == 1


def test_enums_in_the_json_are_numbers_where_they_are_numbers_elsewhere():
    settings = ProtobufSettings(any_as_json=True, enums_as_ints=True)
    message = message_in(TEXT)
    decoder = decoder_of(message, message_type(message, settings), settings)
    (row,) = decoded(decoder, [sized(2, packed(PERSON, number(3, 1)))])
    assert row["one"] == f'{{"@type":"{PERSON}","kind":1}}'


def test_without_the_option_any_is_a_struct_of_two_fields():
    message = message_in(TEXT)
    wanted = message_type(message, ProtobufSettings())
    (row,) = decoded(decoder_of(message, wanted), [sized(2, packed(PERSON, number(2, 1)))])
    assert row["one"] == {"type_url": PERSON, "value": number(2, 1)}
