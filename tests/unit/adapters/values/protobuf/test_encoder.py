"""Encoding rows as Protobuf, beside upb."""

import base64
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.message_factory import GetMessageClass

from pyspark_kafka.adapters.values.protobuf.encoder import ProtobufEncoder
from pyspark_kafka.adapters.values.protobuf.invalid_descriptor import InvalidDescriptorError
from pyspark_kafka.adapters.values.protobuf.spark_types import ProtobufSettings, message_type
from pyspark_kafka.adapters.values.protobuf.value_format import VALUE_FORMAT
from pyspark_kafka.domain.errors import OptionsError
from pyspark_kafka.domain.values import data_types as types
from pyspark_kafka.domain.values.data_types import StructField, StructType, parse_struct
from pyspark_kafka.domain.values.errors import UnencodableValueError
from pyspark_kafka.domain.values.registry import SchemaType
from pyspark_kafka.domain.values.value_options import ValueOptions
from pyspark_kafka.ports.values.value_types import arrow_type

from ..json.payloads import payloads_of
from .oracle import decoder_of
from .schemas import PROTO3, message_named, registered
from .wire import message_bytes

NAMES = ("test.Atoms", "test.Optionals", "test.Repeated", "test.Nested", "test.Choice",
         "test.Times", "old.Defaults", "old.Required")  # fmt: skip
MAPS = ("test.Maps", "test.Wrapped", "old.Texts", "old.Levels", "test.Tree")
"""Messages with maps: upb sorts the entries of these, and keeps one of each key."""

SETTINGS = (
    ProtobufSettings(max_recursion=3),
    ProtobufSettings(max_recursion=3, upcast_unsigned=True, emit_defaults=True),
)


def random_rows(name: str, settings: ProtobufSettings) -> tuple[Any, ProtobufEncoder, Any]:
    """Return rows that were read from random messages, their encoder and their decoder."""
    dice = random.Random(name)  # noqa: S311  # nothing is secret
    message = message_named(name)
    struct = message_type(message, settings)
    encoder = ProtobufEncoder("value", message, None, struct)
    decoder = decoder_of(message, struct, settings)
    made = decoder.decode(payloads_of([message_bytes(dice, message) for _ in range(300)])).column
    return made.filter(pa.array([fits(encoder, made, row) for row in range(300)])), encoder, decoder


def fits(encoder: ProtobufEncoder, rows: Any, row: int) -> bool:
    """Return whether a row can be written: enums may have numbers without a name."""
    try:
        return bool(encoder.encode(rows[row : row + 1])[0].is_valid)
    except UnencodableValueError as error:
        # Only elements of enums that have no name, and keys of maps without a value, are refused.
        if "is null" in error.reason or "is not a symbol" in error.reason:
            return False
        raise


def test_durations_of_64_bits():
    micros = [-(2**63), -(2**63) + 1, -1_500_000, -1_000_000, -1, 0, 1, 2**63 - 1]
    message = message_named("test.Times")
    struct = StructType((StructField("span", message_type(message, SETTINGS[0]).fields[1].type),))
    rows = pa.array([{"span": one} for one in micros], arrow_type(struct))
    encoded: Any = ProtobufEncoder("value", message, None, struct).encode(rows)
    for one, value in zip(micros, encoded.to_pylist(), strict=True):
        written: Any = GetMessageClass(message).FromString(value)
        span = written.span
        assert span.seconds * 1_000_000 + span.nanos // 1_000 == one
        assert span.seconds * span.nanos >= 0


@pytest.mark.parametrize("settings", SETTINGS, ids=["plain", "upcast"])
@pytest.mark.parametrize("name", [*NAMES, *MAPS])
def test_rows_are_read_as_they_were_written(name, settings):
    rows, encoder, decoder = random_rows(name, settings)
    assert len(rows) > 100
    encoded: Any = encoder.encode(rows)
    again = decoder.decode(payloads_of(encoded.to_pylist())).column
    assert encoder.encode(again).to_pylist() == encoded.to_pylist()
    assert again.null_count == 0


@pytest.mark.parametrize("settings", SETTINGS, ids=["plain", "upcast"])
@pytest.mark.parametrize("name", NAMES)
def test_bytes_equal_upbs(name, settings):
    rows, encoder, _ = random_rows(name, settings)
    make = GetMessageClass(message_named(name))
    values: Any = encoder.encode(rows).to_pylist()
    for value in values:
        assert make.FromString(value).SerializeToString(deterministic=True) == value


def one_of(name: str, ddl: str, *rows: object) -> Any:
    """Return what an encoder makes of rows."""
    struct = parse_struct(ddl)
    encoder = ProtobufEncoder("value", message_named(name), None, struct)
    return encoder.encode(pa.array(rows, arrow_type(struct))).to_pylist()


def test_maps_equal_upbs():
    make = GetMessageClass(message_named("test.Maps"))
    message: Any = make()
    message.counts["a"] = 0
    message.names[-1] = ""
    message.truths[True] = 1.5
    message.inners[-3].text = "x" * 300
    message.colors["b"] = 7
    message.raws[5] = b"\xff"
    message.times["t"].seconds = 1
    ddl = (
        "counts map<string,int>, names map<int,string>, truths map<boolean,double>, "
        "inners map<bigint,struct<text string>>, colors map<string,string>, "
        "raws map<bigint,binary>, times map<string,timestamp>"
    )
    row = {
        "counts": [("a", 0)],
        "names": [(-1, "")],
        "truths": [(True, 1.5)],
        "inners": [(-3, {"text": "x" * 300})],
        "colors": [("b", "BLUE")],
        "raws": [(5, b"\xff")],
        "times": [("t", 1_000_000)],
    }
    assert one_of("test.Maps", ddl, row, None) == [
        message.SerializeToString(deterministic=True),
        None,
    ]


@pytest.mark.parametrize("size", [0, 1, 120, 127, 128, 129, 16_383, 16_384, 300_000])
def test_lengths_of_any_size_are_written_before_the_message(size):
    make = GetMessageClass(message_named("test.Nested"))
    expected = make(inner={"text": "x" * size, "numbers": range(size // 100)}, last=1)
    row = {"inner": {"text": "x" * size, "numbers": list(range(size // 100))}, "last": 1}
    ddl = "inner struct<text string, numbers array<int>>, last int"
    assert one_of("test.Nested", ddl, row) == [expected.SerializeToString(deterministic=True)]


@pytest.mark.parametrize(
    ("ddl", "row", "reason"),
    [
        ("color string", {"color": "PINK"}, "field 'color' is not a symbol"),
        ("u32 bigint", {"u32": 2**32}, "field 'u32' is out of the range"),
        ("u32 bigint", {"u32": -1}, "field 'u32' is out of the range"),
        ("u64 decimal(20,0)", {"u64": Decimal(2**64)}, "field 'u64' is out of the range"),
        ("u64 decimal(20,0)", {"u64": Decimal(-1)}, "field 'u64' is out of the range"),
    ],
)
def test_a_row_that_does_not_fit_is_named(ddl, row, reason):
    with pytest.raises(UnencodableValueError, match=f"row 1 of a batch .* {reason}"):
        one_of("test.Atoms", ddl, {}, row)


def test_texts_must_be_utf8():
    texts = pa.array([b"ok", b"\xff"]).view(pa.string())
    encoder = ProtobufEncoder(
        "value", message_named("test.Atoms"), None, parse_struct("text string")
    )
    with pytest.raises(UnencodableValueError, match=r"row 1 of a batch .* is not valid UTF-8"):
        encoder.encode(pa.StructArray.from_arrays([texts], names=["text"]))


def test_a_oneof_has_one_field():
    with pytest.raises(UnencodableValueError, match="field 'number' is not the only one of its"):
        one_of("test.Choice", "number int, text string", {"number": 1}, {"number": 1, "text": ""})


def test_required_fields_and_elements_must_not_be_null():
    with pytest.raises(UnencodableValueError, match="field 'id' is null"):
        one_of("old.Required", "id int", {"id": 1}, {"id": None})
    with pytest.raises(UnencodableValueError, match=r"field 'i32\.element' is null"):
        one_of("test.Repeated", "i32 array<int>", {"i32": [1, None]})


@pytest.mark.parametrize(
    ("name", "ddl", "reason"),
    [
        ("test.Atoms", "i32 bigint", "field 'i32' of type bigint cannot be written as the field"),
        ("test.Atoms", "text int", "field 'text' of type int cannot be written as the field"),
        ("test.Atoms", "other int", "field 'other' is not a field of test.Atoms"),
        ("test.Repeated", "i32 int", "field 'i32' of type int cannot be written as the field"),
        ("test.Maps", "counts string", "field 'counts' of type string cannot be written"),
        ("old.Required", "part struct<name string>", "the required field 'old.Required.id' is"),
        ("old.Groups", "one struct<id int>", "'old.Groups.one' is a group"),
    ],
)
def test_a_type_that_does_not_fit_is_refused(name, ddl, reason):
    with pytest.raises(InvalidDescriptorError, match=reason):
        one_of(name, ddl)


def test_narrower_numbers_and_names_in_another_case_fit():
    expected = GetMessageClass(message_named("test.Atoms"))(i64=-1, s32=2).SerializeToString()
    assert one_of("test.Atoms", "I64 tinyint, S32 smallint", {"I64": -1, "S32": 2}) == [expected]


def test_the_schema_is_the_file_of_the_message():
    inner = message_named("test.Nested").nested_types_by_name["Innermost"]
    encoder = ProtobufEncoder("value", inner, None, StructType((StructField("id", types.LONG),)))
    assert (encoder.record_name, encoder.message_indexes) == ("test.Nested.Innermost", (3, 1))
    schema = encoder.schema
    assert schema.type is SchemaType.PROTOBUF
    proto = FileDescriptorProto.FromString(base64.b64decode(schema.text))
    assert "Nested" in [message.name for message in proto.message_type]


def test_the_format_makes_an_encoder():
    assert VALUE_FORMAT.encoder is not None
    options = ValueOptions("value", "protobuf", message="test.Atoms")
    schema = registered(PROTO3)
    encoder = VALUE_FORMAT.encoder(options, schema, parse_struct("i32 int"))
    assert encoder.schema == schema
    with pytest.raises(OptionsError, match="The Protobuf schema of the value cannot be used"):
        VALUE_FORMAT.encoder(options, schema, parse_struct("nothing int"))
