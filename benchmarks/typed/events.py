"""Events of seven fields, and their values in each format."""

from __future__ import annotations

import json
from functools import cache
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final

from ..topics import Shape
from ..values import ACTIONS

if TYPE_CHECKING:
    from random import Random

DDL: Final = "id bigint, user string, event string, amount double"
"""The four of the seven fields that readers ask for."""

ALL_DDL: Final = f"{DDL}, session string, page string, ref string"

AVRO: Final = json.dumps(
    {
        "type": "record",
        "name": "Event",
        "namespace": "benchmarks",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "user", "type": "string"},
            {"name": "event", "type": "string"},
            {"name": "amount", "type": "double"},
            {"name": "session", "type": "string"},
            {"name": "page", "type": ["null", "string"]},
            {"name": "ref", "type": "string"},
        ],
    }
)

FIELDS: Final = (
    ("id", 3),
    ("user", 9),
    ("event", 9),
    ("amount", 1),
    ("session", 9),
    ("page", 9),
    ("ref", 9),
)
"""The fields of the Protobuf message, with the types of ``FieldDescriptorProto``."""

MESSAGE: Final = "benchmarks.Event"
BAD_EVERY: Final = 100
"""The interval of truncated values, where some values are bad."""


def event(generator: Random) -> dict[str, Any]:
    """Return an event: about 190 B as JSON, and 110 B as Avro or Protobuf."""
    number = generator.getrandbits(17)
    return {
        "id": number,
        "user": f"user-{generator.randrange(10**6)}",
        "event": generator.choice(ACTIONS),
        "amount": generator.random() * 100,
        "session": f"{generator.getrandbits(128):032x}",
        "page": f"/products/{generator.randrange(10**5)}",
        "ref": f"https://example.com/{number}",
    }


def json_value(generator: Random, _size: int) -> bytes:
    """Return an event as JSON."""
    return json.dumps(event(generator)).encode()


def partly_bad_json_value(generator: Random, size: int) -> bytes:
    """Return an event as JSON; one in ``BAD_EVERY`` is truncated."""
    value = json_value(generator, size)
    return value if generator.randrange(BAD_EVERY) else value[: len(value) // 2]


def avro_value(generator: Random, _size: int) -> bytes:
    """Return an event as an Avro datum."""
    import fastavro

    target = BytesIO()
    fastavro.schemaless_writer(target, _avro_schema(), event(generator))
    return target.getvalue()


def protobuf_value(generator: Random, _size: int) -> bytes:
    """Return an event as a Protobuf message."""
    encoded: bytes = message_class()(**event(generator)).SerializeToString()
    return encoded


@cache
def _avro_schema() -> Any:
    import fastavro

    return fastavro.parse_schema(json.loads(AVRO))


@cache
def message_class() -> Any:
    """Return the class of the message, of the package ``protobuf``."""
    from google.protobuf import descriptor_pool, message_factory
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    pool = descriptor_pool.DescriptorPool()
    for file in FileDescriptorSet.FromString(descriptor_set()).file:
        pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(MESSAGE))


@cache
def descriptor_set() -> bytes:
    """Return the ``FileDescriptorSet`` of the message, as ``protoc --descriptor_set_out`` does."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

    package, name = MESSAGE.split(".")
    file = FileDescriptorProto(name="event.proto", package=package, syntax="proto3")
    message = file.message_type.add(name=name)
    for number, (field, type_) in enumerate(FIELDS, start=1):
        message.field.add(name=field, number=number, type=type_, label=1)
    encoded: bytes = FileDescriptorSet(file=[file]).SerializeToString()
    return encoded


JSON: Final = Shape("JSON events", 190, json_value, "zstd", volume=2)
BAD_JSON: Final = Shape("JSON events, 1 in 100 bad", 190, partly_bad_json_value, "zstd", volume=2)
AVRO_EVENTS: Final = Shape("Avro events", 110, avro_value, "zstd")
PROTOBUF_EVENTS: Final = Shape("Protobuf events", 112, protobuf_value, "zstd")
