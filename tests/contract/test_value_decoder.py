import io
import json
from typing import Any, Final

import fastavro
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from pyspark_kafka.bootstrap.plugins import value_format_named
from pyspark_kafka.domain.values.value_options import ValueOptions
from pyspark_kafka.ports.values.value_format import ValueDecoder
from pyspark_kafka.testing import ValueDecoderContract
from pyspark_kafka.testing.value_decoder_contract import DECODED_TYPE

from .registry import VALUE_DECODERS

AVRO: Final = {
    "type": "record",
    "name": "Pair",
    "fields": [{"name": "number", "type": "long"}, {"name": "text", "type": "string"}],
}


def decoder_of(options: ValueOptions) -> ValueDecoder:
    value_format = value_format_named(options.format)
    assert value_format.data_type(options, None) == DECODED_TYPE
    decoder = value_format.decoder(options, None, DECODED_TYPE)
    assert type(decoder) in VALUE_DECODERS
    return decoder


class TestJson(ValueDecoderContract):
    @pytest.fixture
    def decoder(self):
        schema = "number bigint, text string"
        return decoder_of(ValueOptions("value", "json", schema=schema))

    @pytest.fixture
    def encode(self):
        return lambda value: json.dumps(value, ensure_ascii=False).encode()

    @pytest.fixture
    def malformed(self):
        return b'{"text":7,"number":"many"}'


class TestAvro(ValueDecoderContract):
    @pytest.fixture
    def decoder(self):
        return decoder_of(ValueOptions("value", "avro", schema=json.dumps(AVRO)))

    @pytest.fixture
    def encode(self):
        def encoded(value: dict[str, Any]) -> bytes:
            buffer = io.BytesIO()
            fastavro.schemaless_writer(buffer, AVRO, value)
            return buffer.getvalue()

        return encoded

    @pytest.fixture
    def malformed(self):
        return b"\x02\x7fshort"


class TestProtobuf(ValueDecoderContract):
    @pytest.fixture
    def descriptor(self):
        file = descriptor_pb2.FileDescriptorProto(name="pair.proto", syntax="proto2")
        message = file.message_type.add(name="Pair")
        types = descriptor_pb2.FieldDescriptorProto
        label = types.LABEL_OPTIONAL
        message.field.add(name="number", number=1, type=types.TYPE_INT64, label=label)
        message.field.add(name="text", number=2, type=types.TYPE_STRING, label=label)
        return descriptor_pb2.FileDescriptorSet(file=[file])

    @pytest.fixture
    def decoder(self, descriptor):
        options = ValueOptions("value", "protobuf", descriptor=descriptor.SerializeToString())
        return decoder_of(options)

    @pytest.fixture
    def encode(self, descriptor):
        pool = descriptor_pool.DescriptorPool()
        pool.Add(descriptor.file[0])
        pair: Any = message_factory.GetMessageClass(pool.FindMessageTypeByName("Pair"))
        return lambda value: pair(**value).SerializeToString()

    @pytest.fixture
    def malformed(self):
        return b"\x08\x01\x12\x7fshort"
