"""Confluent's schema registry as its documentation and source describe it, by version.

It keeps Protobuf schemas as texts, also those that are registered as descriptors
(``ProtobufSchema.canonicalString``), and serializes them when it is asked to (``formattedString``).
Before 7.8 such a text has the entries of maps with ``option map_entry = true``. Before 8.0 there
are no GUIDs. Formats that a type of schema does not have are errors before 7.4.
"""

import base64
import json
from dataclasses import replace
from functools import cache
from typing import Any, Final, final
from urllib.parse import parse_qs, urlsplit

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)

from pyspark_kafka.adapters.memory.schema_registry import guid_of
from pyspark_kafka.adapters.values.protobuf.schemas import compiled_messages
from pyspark_kafka.application.values.schema_cache import SchemaCache
from pyspark_kafka.domain.values.registry import Schema, SchemaType, is_descriptor

from .http_server import Request, Response
from .registry_stub import RegistryStub

_ERROR: Final = {"error_code": 50001, "message": "Format not supported: serialized"}
_NOT_FOUND: Final = {"error_code": 404, "message": "HTTP 404 Not Found"}


@final
class ConfluentRegistry:
    """Answers requests as a version of Confluent's registry does."""

    def __init__(self, *, has_map_entries: bool = False, has_guids: bool = True) -> None:
        self.stub = RegistryStub()
        self._has_map_entries = has_map_entries
        self._has_guids = has_guids

    def respond(self, request: Request) -> Response:
        if "/guids/" in request.path and not self._has_guids:
            return Response(json.dumps(_NOT_FOUND).encode(), 404)
        response = self.stub.respond(self._with_text(request))
        if response.status != 200:
            return response
        fields = json.loads(response.body)
        if not self._has_guids:
            fields.pop("guid", None)
        elif "id" in fields:
            # Since 8.0 registrations are answered with them, too.
            fields["guid"] = guid_of(self.stub.registry.by_id(fields["id"]))
        if "serialized" in parse_qs(urlsplit(request.target).query).get("format", ()):
            if fields.get("schemaType") != SchemaType.PROTOBUF.value:
                return Response(json.dumps(_ERROR).encode(), 500)
            fields["schema"] = self._serialized(fields)
        return Response(json.dumps(fields).encode())

    def _with_text(self, request: Request) -> Request:
        if not request.body:
            return request
        fields = json.loads(request.body)
        if fields.get("schemaType") != "PROTOBUF" or not is_descriptor(fields["schema"]):
            return request
        proto = FileDescriptorProto.FromString(base64.b64decode(fields["schema"]))
        fields["schema"] = proto_text(proto, has_map_entries=self._has_map_entries)
        return replace(request, body=json.dumps(fields).encode())

    def _serialized(self, fields: dict[str, Any]) -> str:
        cached = SchemaCache(self.stub.registry)
        found = self.stub.registry
        for number in range(1, 1_000):
            schema = found.by_id(number)
            if schema.text == fields["schema"]:
                return _descriptor_of(cached.by_id(number))
        raise AssertionError("a schema that was answered is registered")


@cache
def _descriptor_of(schema: Schema) -> str:
    first = compiled_messages(schema).at(())
    assert first is not None
    proto = FileDescriptorProto()
    first.file.CopyToProto(proto)
    # Confluent's registry names the file of a schema so.
    proto.name = "default"
    return base64.b64encode(proto.SerializeToString()).decode()


_F = FieldDescriptorProto
_SCALARS: Final = {
    number: name.removeprefix("TYPE_").lower()
    for name, number in _F.Type.items()
    if number not in {_F.TYPE_MESSAGE, _F.TYPE_ENUM, _F.TYPE_GROUP}
}


def proto_text(proto: FileDescriptorProto, *, has_map_entries: bool) -> str:
    """Return the text of a file, with its maps as ``map<…>`` or as their entries."""
    lines = [f'syntax = "{proto.syntax or "proto2"}";']
    if proto.package:
        lines.append(f"package {proto.package};")
    lines += [f'import "{name}";' for name in proto.dependency]
    for message in proto.message_type:
        lines += _message(message, proto, has_map_entries)
    for enum in proto.enum_type:
        lines += _enum(enum)
    return "\n".join(lines) + "\n"


def _message(
    message: DescriptorProto, file: FileDescriptorProto, has_map_entries: bool
) -> list[str]:
    lines = [f"message {message.name} {{"]
    if message.options.map_entry:
        lines.append("option map_entry = true;")
    entries = (
        {}
        if has_map_entries
        else {one.name: one for one in message.nested_type if one.options.map_entry}
    )
    in_oneof: dict[int, list[str]] = {}
    for field in message.field:
        text = _field(field, file, entries.get(field.type_name.rpartition(".")[2]))
        if field.HasField("oneof_index") and not field.proto3_optional:
            in_oneof.setdefault(field.oneof_index, []).append(text)
        else:
            lines.append(text)
    for number, texts in in_oneof.items():
        lines += [f"oneof {message.oneof_decl[number].name} {{", *texts, "}"]
    for nested in message.nested_type:
        if nested.name not in entries:
            lines += _message(nested, file, has_map_entries)
    for enum in message.enum_type:
        lines += _enum(enum)
    return [*lines, "}"]


def _field(field: FieldDescriptorProto, file: FileDescriptorProto, entry: Any) -> str:
    if entry is not None:
        key, value = map(_type, entry.field)
        return f"map<{key}, {value}> {field.name} = {field.number};"
    label = ""
    if field.label == _F.LABEL_REPEATED:
        label = "repeated "
    elif field.proto3_optional or (file.syntax != "proto3" and not field.HasField("oneof_index")):
        label = "required " if field.label == _F.LABEL_REQUIRED else "optional "
    default = f" [default = {_default(field)}]" if field.HasField("default_value") else ""
    return f"{label}{_type(field)} {field.name} = {field.number}{default};"


def _default(field: FieldDescriptorProto) -> str:
    text = field.default_value
    return json.dumps(text) if field.type in {_F.TYPE_STRING, _F.TYPE_BYTES} else text


def _type(field: FieldDescriptorProto) -> str:
    return _SCALARS.get(field.type) or field.type_name


def _enum(enum: EnumDescriptorProto) -> list[str]:
    values = [f"{value.name} = {value.number};" for value in enum.value]
    return [f"enum {enum.name} {{", *values, "}"]
