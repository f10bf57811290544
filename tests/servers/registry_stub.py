"""Confluent's HTTP API over a registry in memory, for what real registries here lack."""

import json
import re
from typing import Any, Final, final
from urllib.parse import parse_qs, unquote, urlsplit

from pyspark_kafka.adapters.memory.schema_registry import MemorySchemaRegistry
from pyspark_kafka.domain.values.errors import (
    IncompatibleSchemaError,
    RegistryRefusedError,
    UnknownSchemaError,
)
from pyspark_kafka.domain.values.registry import Schema, SchemaReference, SchemaType, SubjectVersion

from .http_server import Request, Response

_NOT_FOUND: Final = 40403

_PATH: Final = re.compile(
    r"/schemas/ids/(?P<id>\d+)|/schemas/guids/(?P<guid>[^/]+)"
    r"|/subjects/(?P<subject>[^/]+)(?P<versions>/versions)?(?:/(?P<version>[^/]+))?"
)


@final
class RegistryStub:
    """Answers requests from a registry in memory, and notes them."""

    def __init__(self, registry: MemorySchemaRegistry | None = None) -> None:
        self.registry = registry or MemorySchemaRegistry()
        self.requests: list[Request] = []

    def respond(self, request: Request) -> Response:
        self.requests.append(request)
        found = _PATH.fullmatch(request.path)
        if found is None:
            return _refusal(404, 404, "HTTP 404 Not Found")
        try:
            return Response(json.dumps(self._answer(found, request)).encode())
        except UnknownSchemaError as error:
            return _refusal(404, _NOT_FOUND, str(error))
        except IncompatibleSchemaError as error:
            return _refusal(409, 409, str(error))
        except RegistryRefusedError as error:
            return _refusal(422, 42201, str(error))

    def _answer(self, found: re.Match[str], request: Request) -> Any:
        if found["id"]:
            subject = parse_qs(urlsplit(request.target).query).get("subject", [None])[0]
            return _fields(self.registry.by_id(int(found["id"]), subject))
        if found["guid"]:
            return _fields(self.registry.by_guid(found["guid"]))
        subject = unquote(found["subject"])
        if not found["versions"]:
            return _version(self.registry.look_up(subject, _schema(request.body)))
        if not found["version"]:
            return {"id": self.registry.register(subject, _schema(request.body))}
        number = None if found["version"] == "latest" else int(found["version"])
        return _version(self.registry.version(subject, number))


def _schema(body: bytes) -> Schema:
    fields = json.loads(body)
    references = [
        SchemaReference(each["name"], each["subject"], each["version"])
        for each in fields.get("references", ())
    ]
    kind = SchemaType(fields.get("schemaType", "AVRO"))
    return Schema(kind, fields["schema"], tuple(references))


def _fields(schema: Schema) -> dict[str, Any]:
    kind = {} if schema.type is SchemaType.AVRO else {"schemaType": schema.type.value}
    references = [
        {"name": each.name, "subject": each.subject, "version": each.version}
        for each in schema.references
    ]
    return {"schema": schema.text, **kind, **({"references": references} if references else {})}


def _version(found: SubjectVersion) -> dict[str, Any]:
    place = {"subject": found.subject, "version": found.version, "id": found.schema_id}
    return {**place, "guid": found.guid, **_fields(found.schema)}


def _refusal(status: int, code: int, message: str) -> Response:
    return Response(json.dumps({"error_code": code, "message": message}).encode(), status)
