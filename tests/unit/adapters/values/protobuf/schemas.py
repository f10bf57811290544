"""Schemas of the tests, compiled once."""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from google.protobuf import duration_pb2, timestamp_pb2, wrappers_pb2
from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from pyspark_kafka.adapters.values.protobuf.schemas import compiled_messages
from pyspark_kafka.domain.values.registry import ImportedSchema, Schema, SchemaType

MESSAGES: Final = {
    name: (Path(__file__).parent / f"{name}.proto").read_text(encoding="utf-8")
    for name in ("test", "old", "modern")
}
"""The schemas of this folder, by their packages."""

PROTO3: Final = MESSAGES["test"]


def registered(text: str, **imports: str) -> Schema:
    """Return a schema, and the schemas that it imports by names without ``.proto``."""
    imported = tuple(ImportedSchema(f"{name}.proto", one) for name, one in imports.items())
    return Schema(SchemaType.PROTOBUF, text, imports=imported)


def message_named(name: str) -> Descriptor:
    """Return a message of a package of ``MESSAGES``."""
    return compiled_messages(registered(MESSAGES[name.partition(".")[0]])).named(name)


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
