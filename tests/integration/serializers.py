"""Values that this library, Confluent's serializers and other libraries write and read."""

import base64
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache
from typing import Any, Final, final
from uuid import UUID

import fastavro
import pyarrow as pa
from confluent_kafka.schema_registry import (
    SchemaRegistryClient,
    header_schema_id_serializer,
    prefix_schema_id_serializer,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message_factory import GetMessageClass

from pyspark_kafka.adapters.values.framing import wire_format
from pyspark_kafka.adapters.values.framing.value_framing import ValueFraming
from pyspark_kafka.adapters.values.framing.wire_format import id_prefix
from pyspark_kafka.adapters.values.protobuf.schemas import compiled_messages
from pyspark_kafka.application.values.sink_encoding import SinkEncoding
from pyspark_kafka.application.values.value_schemas import SchemaVersions, ValueSchemas
from pyspark_kafka.bootstrap.plugins import value_format_named
from pyspark_kafka.bootstrap.values import ValueDecoders, open_registry
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.sink import parse_sink_options
from pyspark_kafka.domain.options.source import parse_source_options
from pyspark_kafka.domain.security.policy import UNRESTRICTED
from pyspark_kafka.domain.values.data_types import parse_struct
from pyspark_kafka.domain.values.registry import (
    ImportedSchema,
    RegistryOptions,
    Schema,
    SchemaType,
)
from pyspark_kafka.domain.values.value_options import Framing, ValueOptions
from pyspark_kafka.ports.record_schema import HEADERS
from pyspark_kafka.ports.values.value_types import arrow_type, data_type_of
from tests.unit.adapters.values.json.payloads import payloads_of

from .serializer_matrix import CONFLUENT, OURS

Framed = tuple[bytes | None, list[tuple[str, bytes]]]
"""A value and its headers."""


@final
@dataclass(frozen=True, slots=True)
class Case:
    """Rows of one schema, as other libraries have them."""

    form: str
    schema: str
    native: tuple[Any, ...]
    ddl: str = ""
    version: str | None = None


AVRO_SCHEMA: Final = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "flag", "type": "boolean"},
        {"name": "number", "type": "int"},
        {"name": "id", "type": "long"},
        {"name": "ratio", "type": "float"},
        {"name": "price", "type": "double"},
        {"name": "data", "type": "bytes"},
        {"name": "name", "type": ["null", "string"], "default": None},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["NEW", "PAID"]}},
        {"name": "hash", "type": {"type": "fixed", "name": "Hash", "size": 2}},
        {"name": "tags", "type": {"type": "array", "items": ["null", "string"]}},
        {"name": "counts", "type": {"type": "map", "values": "long"}},
        {
            "name": "line",
            "type": {
                "type": "record",
                "name": "Line",
                "fields": [
                    {"name": "sku", "type": "string"},
                    {"name": "kinds", "type": {"type": "array", "items": "Kind"}},
                ],
            },
        },
        {"name": "lines", "type": {"type": "array", "items": "Line"}},
        {
            "name": "amount",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        },
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "millis", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "micros", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "local", "type": {"type": "long", "logicalType": "local-timestamp-micros"}},
        {"name": "uuid", "type": {"type": "string", "logicalType": "uuid"}},
    ],
}
_UUID: Final = "01234567-89ab-4def-8123-456789abcdef"
_TIME: Final = datetime(2024, 2, 29, 12, 30, 15, 123_000, UTC)
_AVRO_ROW: Final = {
    "flag": True,
    "number": -(2**31),
    "id": 2**63 - 1,
    "ratio": 0.5,
    "price": -1e300,
    "data": b"\0\xff",
    "name": "Grüße 🎉",
    "kind": "PAID",
    "hash": b"ab",
    "tags": ["x", None, ""],
    "counts": {"a": 1, "": -1},
    "line": {"sku": "s", "kinds": ["NEW", "PAID"]},
    "lines": [{"sku": "", "kinds": []}, {"sku": "t", "kinds": ["NEW"]}],
    "amount": Decimal("-1234567.89"),
    "day": date(1969, 12, 31),
    "millis": _TIME,
    "micros": _TIME.replace(microsecond=123_456),
    "local": datetime(1900, 1, 1, 0, 0, 0, 1),  # noqa: DTZ001  # it is local
    "uuid": _UUID,
}
_AVRO_EMPTY: Final = {
    **_AVRO_ROW,
    "name": None,
    "tags": [],
    "counts": {},
    "lines": [],
    "amount": Decimal("0.00"),
    "data": b"",
}

_MESSAGE: Final = "shop.Order"
PROTO_SCHEMA: Final = """syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto";
import "google/type/money.proto";
enum Kind { NEW = 0; PAID = 1; }
message Other { int32 x = 1; }
message Order {
  map<string, Line> lines = 1;
  map<int32, string> names = 2;
  message Line { string sku = 1; repeated Kind kinds = 2; }
  bool flag = 3;
  int32 number = 4;
  sint64 id = 5;
  fixed64 hash = 6;
  float ratio = 7;
  double price = 8;
  string name = 9;
  bytes data = 10;
  repeated int64 counts = 11;
  repeated string tags = 12;
  oneof way { string mail = 13; Line shop = 14; }
  optional int32 maybe = 15;
  Kind kind = 16;
  google.protobuf.Timestamp at = 17;
  google.protobuf.Duration span = 18;
  google.type.Money money = 19;
}
"""
_PROTO_NATIVE: Final = (
    {
        "lines": {"a": {"sku": "s", "kinds": ["PAID", "NEW"]}},
        "names": {"-1": "x"},
        "flag": True,
        "number": -5,
        "id": "-9223372036854775808",
        "hash": "7",
        "ratio": 0.5,
        "price": -1e300,
        "name": "Grüße 🎉",
        "data": "AP8=",
        "counts": ["1", "-1"],
        "tags": ["", "x"],
        "shop": {"sku": "t"},
        "maybe": 0,
        "kind": "PAID",
        "at": "2024-02-29T12:30:15.123456Z",
        "span": "-1.500s",
        "money": {"currencyCode": "EUR", "units": "12", "nanos": 500_000_000},
    },
    {"mail": "m"},
)

JSON_SCHEMA: Final = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "Order",
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "name": {"oneOf": [{"type": "null"}, {"type": "string"}]},
        "price": {"type": "number"},
        "flag": {"type": "boolean"},
        "line": {"type": "object", "properties": {"sku": {"type": "string"}}},
        "tags": {"type": "array", "items": {"type": "string"}},
        "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
    },
}
_JSON_ROWS: Final = (
    {"id": 2**53, "name": "Grüße 🎉\n", "price": -1.5, "flag": True, "line": {"sku": "s"},
     "tags": ["", "x"], "counts": {"a": 1}},
    {"id": 0, "price": 0.1, "flag": False, "line": {}, "tags": [], "counts": {}},
)  # fmt: skip


@cache
def proto_class(schema: str) -> Any:
    """Return the class of the messages ``shop.Order`` of a schema."""
    return GetMessageClass(compiled_messages(Schema(SchemaType.PROTOBUF, schema)).named(_MESSAGE))


CASES: Final = {
    "avro": Case("avro", json.dumps(AVRO_SCHEMA), (_AVRO_ROW, _AVRO_EMPTY)),
    "protobuf": Case("protobuf", PROTO_SCHEMA, _PROTO_NATIVE),
    "json": Case(
        "json",
        json.dumps(JSON_SCHEMA),
        _JSON_ROWS,
        ddl="id bigint, name string, price double, flag boolean, line struct<sku: string>, "
        "tags array<string>, counts map<string, bigint>",
    ),
}


@final
@dataclass(frozen=True, slots=True)
class Change:
    """Two schemas of a topic, and their rows as a reader of the other one has them."""

    old: Case
    new: Case
    old_as_new: tuple[Any, ...]
    new_as_old: tuple[Any, ...]


def _avro_change(*fields: object, line: Sequence[object]) -> str:
    inner = {"name": "line", "type": {"type": "record", "name": "Line", "fields": line}}
    return json.dumps({"type": "record", "name": "Order", "fields": [*fields, inner]})


def _json_change(line: Mapping[str, Any], **fields: str) -> str:
    found = {name: {"type": kind} for name, kind in fields.items()}
    inner = {"type": "object", "properties": line}
    return json.dumps({**JSON_SCHEMA, "properties": {**found, "line": inner}})


_GONE: Final = {"name": "gone", "type": "string", "default": "-"}
_SKU: Final = {"name": "sku", "type": "string"}
_OLD_ROWS: Final = ({"id": 1, "gone": "x", "line": {"sku": "s", "size": 2}},)
_NEW_ROWS: Final = ({"line": {"color": "c", "sku": "t"}, "more": 8, "id": 2},)
CHANGES: Final = {
    "avro": Change(
        Case(
            "avro",
            _avro_change(
                *({"name": "id", "type": "long"}, _GONE),
                line=[_SKU, {"name": "size", "type": "int", "default": 5}],
            ),
            _OLD_ROWS,
            version="1",
        ),
        Case(
            "avro",
            _avro_change(
                *({"name": "more", "type": ["long", "null"], "default": 7},),
                {"name": "id", "type": "long"},
                line=[{"name": "color", "type": ["null", "string"], "default": None}, _SKU],
            ),
            _NEW_ROWS,
            version="2",
        ),
        ({"id": 1, "more": 7, "line": {"sku": "s"}},),
        ({"id": 2, "gone": "-", "line": {"sku": "t", "size": 5}},),
    ),
    "protobuf": Change(
        Case(
            "protobuf",
            """syntax = "proto2"; package shop;
            message Line { optional string sku = 1; optional int32 size = 2 [default = 5]; }
            message Order { optional int32 id = 1; optional string gone = 2;
              optional Line line = 3; }""",
            _OLD_ROWS,
            version="1",
        ),
        Case(
            "protobuf",
            """syntax = "proto2"; package shop;
            message Line { optional string color = 3; optional string sku = 1; }
            message Order { optional Line line = 3; optional int32 more = 4 [default = 7];
              optional int32 id = 1; }""",
            _NEW_ROWS,
            version="2",
        ),
        ({"id": 1, "more": 7, "line": {"sku": "s"}},),
        ({"id": 2, "line": {"sku": "t", "size": 5}},),
    ),
    "json": Change(
        Case(
            "json",
            _json_change(
                {"sku": {"type": "string"}, "size": {"type": "integer"}},
                id="integer",
                gone="string",
            ),
            _OLD_ROWS,
            ddl="id int, gone string, line struct<sku: string, size: int>",
        ),
        Case(
            "json",
            _json_change(
                {"color": {"type": "string"}, "sku": {"type": "string"}},
                more="integer",
                id="integer",
            ),
            _NEW_ROWS,
            ddl="line struct<color: string, sku: string>, more bigint, id bigint",
        ),
        ({"id": 1, "line": {"sku": "s"}},),
        ({"id": 2, "line": {"sku": "t"}},),
    ),
}


@final
@dataclass(frozen=True, slots=True)
class Peer:
    """Confluent's serializers, this library, or one that knows no registry."""

    name: str
    case: Case
    url: str
    topic: str
    framing: str

    def write(self, rows: Sequence[Any]) -> list[Framed]:
        """Return the values of rows, native ones."""
        if self.name == OURS:
            return self._write_ours(rows)
        if self.name == CONFLUENT:
            with SchemaRegistryClient({"url": self.url}) as client:
                return [self._write_confluent(client, row) for row in rows]
        registry = open_registry(RegistryOptions(self.url))
        kind = SchemaType[self.case.form.upper()]
        number = registry.register(f"{self.topic}-value", Schema(kind, self.case.schema))
        indexes = (1,) if self.case.form == "protobuf" else None
        prefix = id_prefix(number, indexes)
        return [(prefix + plain_bytes(self.case, row), []) for row in rows]

    def read(self, values: Sequence[Framed]) -> list[Any]:
        """Return native rows."""
        if self.name == OURS:
            return self._read_ours(values)
        if self.name == CONFLUENT:
            with SchemaRegistryClient({"url": self.url}) as client:
                return [self._read_confluent(client, value) for value in values]
        skipped = 5 + (2 if self.case.form == "protobuf" else 0)
        return [plain_row(self.case, bytes(value or b"")[skipped:]) for value, _ in values]

    def _options(self) -> dict[str, str]:
        message = {"valueMessage": _MESSAGE} if self.case.form == "protobuf" else {}
        return {
            "kafka.bootstrap.servers": "b",
            "valueFormat": self.case.form,
            "valueFraming": self.framing,
            "schema.registry.url": self.url,
            **message,
        }

    def _write_ours(self, rows: Sequence[Any]) -> list[Framed]:
        given = {**self._options(), "topic": self.topic}
        if self.case.form == "avro":
            given["valueSchema"] = self.case.schema
        elif self.case.form == "protobuf":
            given["valueSchema"] = "/order.desc"
        options = parse_sink_options(given, QueryKind.BATCH, UNRESTRICTED)
        registry = open_registry(RegistryOptions(self.url))

        def encoding_of(options: Any) -> SinkEncoding:
            return SinkEncoding(
                *(options, value_format_named, lambda: registry, wire_format),
                lambda _: descriptor_set(self.case.schema),
            )

        column = our_column(self.case, rows)
        prepared = encoding_of(options).prepare({"value": data_type_of(column.type)})
        encoding = encoding_of(replace(prepared, topic=self.topic))
        batch = encoding.encode(pa.RecordBatch.from_pydict({"value": column}))
        headers: list[list[tuple[str, bytes]]] = [[] for _ in rows]
        if "headers" in batch.schema.names:
            headers = [
                [(one["key"], one["value"]) for one in each or ()]
                for each in batch.column("headers").to_pylist()
            ]
        return list(zip(batch.column("value").to_pylist(), headers, strict=True))

    def _read_ours(self, values: Sequence[Framed]) -> list[Any]:
        given = {**self._options(), "subscribe": self.topic}
        if self.case.ddl:
            given["valueSchema"] = self.case.ddl
        elif self.case.version:
            given["valueSchemaVersion"] = self.case.version
        options = parse_source_options(given, QueryKind.BATCH, UNRESTRICTED)
        registry = open_registry(RegistryOptions(self.url))
        schemas = ValueSchemas(
            options, value_format_named, lambda: registry, lambda _: b"", SchemaVersions(None)
        )
        [column] = schemas.resolve().typed
        decoder = ValueDecoders(value_format_named, lambda: registry).get(column)
        batch = pa.RecordBatch.from_pydict(
            {
                "value": pa.array([value for value, _ in values], pa.binary()),
                "headers": pa.array([headers for _, headers in values], HEADERS),
            }
        )
        decoded = decoder.decode(batch, self.topic)
        errors = decoded.errors().to_pylist()
        assert errors == [None] * len(values), errors
        return [native_row(self.case, row) for row in decoded.structs().to_pylist()]

    def _context(self, headers: Any) -> SerializationContext:
        return SerializationContext(self.topic, MessageField.VALUE, headers)

    def _write_confluent(self, client: SchemaRegistryClient, row: Any) -> Framed:
        headers: list[tuple[str, bytes]] = []
        if row is None:
            return None, headers
        where = header_schema_id_serializer if "header" in self.framing else None
        settings = {"schema.id.serializer": where or prefix_schema_id_serializer}
        serializer: Callable[..., bytes]
        if self.case.form == "avro":
            serializer = AvroSerializer(client, self.case.schema, conf=settings)
        elif self.case.form == "json":
            serializer = JSONSerializer(self.case.schema, client, conf=settings)
        else:
            message = proto_class(self.case.schema)
            serializer = ProtobufSerializer(message, client, settings)
            row = ParseDict(row, message())
        return serializer(row, self._context(headers)), headers

    def _read_confluent(self, client: SchemaRegistryClient, framed: Framed) -> Any:
        value, headers = framed
        deserializer: Callable[..., Any]
        if self.case.form == "avro":
            deserializer = AvroDeserializer(client, self.case.schema)
        elif self.case.form == "json":
            deserializer = JSONDeserializer(None, schema_registry_client=client)
        else:
            deserializer = ProtobufDeserializer(proto_class(self.case.schema), {}, client)
        found = deserializer(value, self._context(headers))
        return _with_defaults(found) if self.case.form == "protobuf" and found else found


def _with_defaults(message: Any) -> dict[str, Any]:
    """Return the fields of a message, also those that have only a default of proto2."""
    found = MessageToDict(message)
    for one in message.DESCRIPTOR.fields:
        if one.has_default_value:
            found[one.json_name] = getattr(message, one.name)
        elif one.name == "line" and message.HasField("line"):
            found["line"] = _with_defaults(message.line)
    return found


@cache
def descriptor_set(schema: str) -> bytes:
    """Return the file of a schema, as ``protoc`` writes it without what it imports."""
    proto = FileDescriptorProto()
    proto_class(schema).DESCRIPTOR.file.CopyToProto(proto)
    return FileDescriptorSet(file=[proto]).SerializeToString()


def plain_bytes(case: Case, row: Any) -> bytes:
    """Return a value as a library without a registry writes it."""
    if case.form == "json":
        return json.dumps(row, ensure_ascii=False).encode()
    if case.form == "protobuf":
        return bytes(ParseDict(row, proto_class(case.schema)()).SerializeToString())
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, json.loads(case.schema), row)
    return stream.getvalue()


def plain_row(case: Case, value: bytes) -> Any:
    """Return a row as a library without a registry reads it."""
    if case.form == "json":
        return json.loads(value)
    if case.form == "protobuf":
        return MessageToDict(proto_class(case.schema).FromString(value))
    return fastavro.schemaless_reader(io.BytesIO(value), json.loads(case.schema), None)


def our_column(case: Case, rows: Sequence[Any]) -> Any:
    """Return native rows as the struct column that a query would write."""
    if case.form == "protobuf":
        return proto_column(case.schema, [plain_bytes(case, row) for row in rows])
    if case.form == "json":
        return pa.array(rows, arrow_type(parse_struct(case.ddl)))
    data_type = value_format_named("avro").data_type(
        ValueOptions("value", "avro", schema=case.schema), None
    )
    return pa.array(rows, arrow_type(data_type))


def proto_column(schema: str, values: Sequence[bytes]) -> Any:
    """Return messages as a struct column, decoded without a registry."""
    options = ValueOptions("value", "protobuf", descriptor=descriptor_set(schema), message=_MESSAGE)
    form = value_format_named("protobuf")
    data_type = form.data_type(options, None)
    return form.decoder(options, None, data_type).decode(payloads_of(list(values))).column


def native_row(case: Case, row: Any) -> Any:
    """Return a row of this library as other libraries have it."""
    if row is None:
        return None
    if case.form != "protobuf":
        return {**row, "counts": dict(row["counts"])} if "counts" in row else row
    return MessageToDict(ParseDict(_message_fields(row), proto_class(case.schema)()))


def _message_fields(row: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in row.items():
        if value is None or value == []:
            continue
        match value:
            case bytes():
                found[name] = base64.b64encode(value).decode()
            case datetime():
                found[name] = value.astimezone(UTC).isoformat()
            case dict():
                found[name] = _message_fields(value)
            case _ if name == "span":
                found[name] = f"{value.total_seconds():.6f}s"
            case _ if name == "lines":
                found[name] = {key: _message_fields(one) for key, one in value}
            case _ if name == "names":
                found[name] = dict(value)
            case _:
                found[name] = value
    return found


_INNER: Final = 'syntax = "proto3"; package shop; message Inner { int32 x = 1; }'
_OUTER: Final = """syntax = "proto3"; package shop; import "inner.proto";
message Outer { map<string, Inner> inners = 1; Inner inner = 2; }"""


@final
@dataclass(frozen=True, slots=True)
class MessagePeer:
    """Writes and reads messages of a file that imports another one."""

    name: str
    url: str
    topic: str

    def write(self, rows: Sequence[Any]) -> list[Framed]:
        """Return the values of rows; this library takes the latest schema of the subject."""
        messages = [ParseDict(row, outer_class()()) for row in rows]
        if self.name == CONFLUENT:
            context = SerializationContext(self.topic, MessageField.VALUE)
            with SchemaRegistryClient({"url": self.url}) as client:
                serializer = ProtobufSerializer(outer_class(), client)
                return [(serializer(message, context), []) for message in messages]
        registry = open_registry(RegistryOptions(self.url))
        found = registry.version(f"{self.topic}-value")
        form, options = value_format_named("protobuf"), self._options()
        struct = form.data_type(options, found.schema)
        decoder = form.decoder(options, found.schema, struct)
        column = decoder.decode(payloads_of([one.SerializeToString() for one in messages])).column
        assert form.encoder is not None
        encoder = form.encoder(options, found.schema, struct)
        values: Any = encoder.encode(column, id_prefix(found.schema_id, encoder.message_indexes))
        return [(value, []) for value in values.to_pylist()]

    def read(self, values: Sequence[Framed]) -> list[Any]:
        """Return rows."""
        if self.name == CONFLUENT:
            context = SerializationContext(self.topic, MessageField.VALUE)
            with SchemaRegistryClient({"url": self.url}) as client:
                deserializer = ProtobufDeserializer(outer_class(), {}, client)
                return [MessageToDict(deserializer(value, context)) for value, _ in values]
        registry = open_registry(RegistryOptions(self.url))
        schema = registry.version(f"{self.topic}-value").schema
        form, options = value_format_named("protobuf"), self._options()
        decoder = form.decoder(options, schema, form.data_type(options, schema))
        framing = ValueFraming(options, registry)
        payloads = framing.payloads(pa.array([value for value, _ in values], pa.binary()))
        decoded = decoder.decode(payloads)
        assert not decoded.reasons.any(), decoded.reasons
        rows = [_message_fields(row or {}) for row in decoded.column.to_pylist()]
        return [MessageToDict(ParseDict(_outer_fields(row), outer_class()())) for row in rows]

    def _options(self) -> ValueOptions:
        return ValueOptions("value", "protobuf", message="shop.Outer", framing=Framing.CONFLUENT)


def _outer_fields(row: dict[str, Any]) -> dict[str, Any]:
    inners = {key: _message_fields(value) for key, value in row.get("inners", ())}
    return {**row, "inners": inners}


@cache
def outer_class() -> Any:
    """Return the class of messages of a file that imports another one."""
    imports = (ImportedSchema("inner.proto", _INNER),)
    schema = Schema(SchemaType.PROTOBUF, _OUTER, imports=imports)
    return GetMessageClass(compiled_messages(schema).named("shop.Outer"))


def message_peer(name: str, url: str, topic: str) -> MessagePeer:
    """Return this library or Confluent's serializers, for a file that imports another one."""
    return MessagePeer(name, url, topic)


def comparable(row: Any) -> Any:
    """Return a row without what libraries have in different types."""
    if isinstance(row, dict):
        return {name: comparable(value) for name, value in row.items() if value is not None}
    if isinstance(row, list | tuple):
        return [comparable(one) for one in row]
    if isinstance(row, UUID):
        return str(row)
    if isinstance(row, datetime) and row.tzinfo is not None:
        return row.astimezone(UTC)
    return row
