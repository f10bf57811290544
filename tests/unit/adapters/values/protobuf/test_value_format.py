from dataclasses import replace
from typing import Final

import pyarrow as pa
import pytest

from pyspark_kafka.adapters.values.protobuf.value_format import VALUE_FORMAT
from pyspark_kafka.domain.errors import OptionsError
from pyspark_kafka.domain.values.data_types import parse_struct
from pyspark_kafka.domain.values.registry import Schema, SchemaType
from pyspark_kafka.domain.values.value_options import ValueOptions

from ..json.payloads import payloads_of
from .oracle import outcomes
from .schemas import PROTO3, message_named, registered
from .test_schemas import file, serialized
from .wire import number

OPTIONS: Final = ValueOptions("value", "protobuf")
ONE: Final = serialized(file("a.proto", message="A"))


def test_a_message_of_a_descriptor_file():
    first = file("a.proto", message="A")
    first.message_type[0].field.add(name="id", number=1, type="TYPE_INT32", label="LABEL_OPTIONAL")
    options = replace(OPTIONS, descriptor=serialized(first))
    for one in (options, replace(options, message="p.A"), replace(options, message="A")):
        assert str(VALUE_FORMAT.data_type(one, None)) == "struct<id:int>"
    decoder = VALUE_FORMAT.decoder(options, None, VALUE_FORMAT.data_type(options, None))
    assert outcomes(decoder.decode(payloads_of([number(1, 5)]))) == [{"id": 5}]


def test_a_message_of_a_registered_schema():
    schema = registered(PROTO3)
    emit = replace(OPTIONS, settings=(("emit.default.values", "true"),))
    kind = VALUE_FORMAT.data_type(emit, schema)
    assert kind.names == tuple(field.name for field in message_named("test.Atoms").fields)
    row, *_ = outcomes(VALUE_FORMAT.decoder(emit, schema, kind).decode(payloads_of([b""])))
    assert row["color"] == "RED"
    nested = replace(OPTIONS, message="test.Nested.Innermost")
    assert str(VALUE_FORMAT.data_type(nested, schema)) == "struct<words:array<string>,id:bigint>"


def test_rows_are_written_with_a_schema_in_a_text():
    text = 'syntax = "proto3";\nmessage A { int32 id = 1; }\n'
    options, struct = replace(OPTIONS, schema=text), parse_struct("id int")
    assert VALUE_FORMAT.encoder is not None
    encoder = VALUE_FORMAT.encoder(options, None, struct)
    assert encoder.schema == registered(text)
    assert encoder.encode(pa.array([{"id": 5}])).to_pylist() == [number(1, 5)]
    newer = registered(text.replace("1;", "2;"))
    encoder = VALUE_FORMAT.encoder(options, newer, struct)
    assert encoder.schema == newer
    assert encoder.encode(pa.array([{"id": 5}])).to_pylist() == [number(2, 5)]


@pytest.mark.parametrize(
    ("options", "schema", "problem"),
    [
        (OPTIONS, None, "set the option 'valueSchema' to a file that protoc wrote"),
        (OPTIONS, Schema(SchemaType.AVRO, "{}"), "is AVRO, not PROTOBUF. Change the option"),
        (OPTIONS, registered('syntax = "proto3";'), "it has no messages"),
        (
            OPTIONS,
            registered("message M"),
            "the Protobuf schema of the value cannot be used: schema",
        ),
        (replace(OPTIONS, descriptor=b"\xff"), None, "it is not a FileDescriptorSet"),
        (replace(OPTIONS, descriptor=ONE, message="B"), None, "there is no message 'B'"),
    ],
)
def test_options_that_are_refused(options, schema, problem):
    with pytest.raises(OptionsError, match=f"(?i){problem}"):
        VALUE_FORMAT.data_type(options, schema)
    with pytest.raises(OptionsError, match=f"(?i){problem}"):
        VALUE_FORMAT.decoder(options, schema, VALUE_FORMAT.data_type(options, schema))


def test_a_type_that_the_message_does_not_have():
    atoms = VALUE_FORMAT.data_type(OPTIONS, registered(PROTO3))
    with pytest.raises(OptionsError, match=r"the message 'p\.A' has no field 'i32'"):
        VALUE_FORMAT.decoder(replace(OPTIONS, descriptor=ONE), None, atoms)
