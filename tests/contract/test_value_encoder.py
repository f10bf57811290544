import io
import json
from typing import Any

import fastavro
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.message_factory import GetMessageClass

from pyspark_kafka.adapters.values.protobuf.schemas import Messages
from pyspark_kafka.bootstrap.plugins import value_format_named
from pyspark_kafka.domain.values.value_options import ValueOptions
from pyspark_kafka.ports.values.value_format import ValueEncoder
from pyspark_kafka.testing import ValueEncoderContract
from pyspark_kafka.testing.value_encoder_contract import ENCODED_TYPE

from .registry import VALUE_ENCODERS


def encoder_of(options: ValueOptions) -> ValueEncoder:
    make = value_format_named(options.format).encoder
    assert make is not None
    encoder = make(options, None, ENCODED_TYPE)
    assert type(encoder) in VALUE_ENCODERS
    return encoder


class TestAvro(ValueEncoderContract):
    @pytest.fixture
    def encoder(self):
        return encoder_of(ValueOptions("value", "avro"))

    @pytest.fixture
    def decode(self, encoder):
        schema = json.loads(encoder.schema.text)

        def decoded(value: bytes) -> dict[str, Any]:
            row: Any = fastavro.schemaless_reader(io.BytesIO(value), schema)
            return dict(row)

        return decoded


class TestJson(ValueEncoderContract):
    @pytest.fixture
    def encoder(self):
        return encoder_of(ValueOptions("value", "json"))

    @pytest.fixture
    def decode(self):
        return json.loads


class TestProtobuf(ValueEncoderContract):
    @pytest.fixture
    def descriptor(self):
        """Return the file of a message with the fields of the contract's type."""
        file = FileDescriptorProto(name="row.proto", syntax="proto3")
        message = file.message_type.add(name="Row")
        message.field.add(name="number", number=1, type="TYPE_INT64", label="LABEL_OPTIONAL")
        message.field.add(name="text", number=2, type="TYPE_STRING", label="LABEL_OPTIONAL")
        return FileDescriptorSet(file=[file]).SerializeToString()

    @pytest.fixture
    def encoder(self, descriptor):
        return encoder_of(ValueOptions("value", "protobuf", descriptor=descriptor))

    @pytest.fixture
    def decode(self, descriptor):
        make = GetMessageClass(Messages(descriptor).only())

        def decoded(value: bytes) -> dict[str, Any]:
            row: Any = make.FromString(value)
            return {"number": row.number, "text": row.text}

        return decoded
