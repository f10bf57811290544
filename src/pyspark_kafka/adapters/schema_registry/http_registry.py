"""A schema registry with Confluent's HTTP API: Confluent's own, Apicurio, Karapace, Redpanda."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final
from urllib.parse import quote

from ...domain.values.registry import SchemaType
from ...ports.values.schema_registry import SchemaRegistry
from ..security.clear_text import warn_about_registry
from . import answers
from .rest_client import Request, RestClient

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...domain.values.registry import RegistrySettings, Schema, SubjectVersion


@final
class HttpSchemaRegistry(SchemaRegistry):
    """Sends a request for each call, and keeps nothing but connections."""

    def __init__(self, settings: RegistrySettings) -> None:
        """Read the files of TLS; no request is sent yet.

        :raises ValueError: if they cannot be used.
        """
        self._url = settings.url
        self._client = RestClient(settings)
        warn_about_registry(settings)

    def __repr__(self) -> str:
        return f"HttpSchemaRegistry({self._url!r})"

    @property
    def url(self) -> str:
        return self._url

    def by_id(self, schema_id: int) -> Schema:
        what = f"schema with the id {schema_id}"
        return self._client.request(
            Request("GET", f"schemas/ids/{schema_id}", what), answers.schema
        )

    def by_guid(self, guid: str) -> Schema:
        what = f"schema with the GUID {guid}"
        return self._client.request(
            Request("GET", f"schemas/guids/{_quoted(guid)}", what), answers.schema
        )

    def version(self, subject: str, version: int | None = None) -> SubjectVersion:
        name = "latest version" if version is None else f"version {version}"
        place = "latest" if version is None else str(version)
        path = f"subjects/{_quoted(subject)}/versions/{place}"
        request = Request("GET", path, f"{name} of the subject '{subject}'")
        return self._client.request(request, answers.subject_version)

    def look_up(self, subject: str, schema: Schema) -> SubjectVersion:
        what = f"version of the subject '{subject}' with this schema"
        request = Request("POST", f"subjects/{_quoted(subject)}", what, _body(schema))
        return self._client.request(request, answers.subject_version)

    def register(self, subject: str, schema: Schema) -> int:
        what = f"schema for the subject '{subject}'"
        path = f"subjects/{_quoted(subject)}/versions"
        request = Request("POST", path, what, _body(schema))
        return self._client.request(request, answers.registered_id)

    def close(self) -> None:
        self._client.close()


def _quoted(name: str) -> str:
    return quote(name, safe="")


def _body(schema: Schema) -> Mapping[str, Any]:
    body: dict[str, Any] = {"schema": schema.text}
    # Registries before Confluent Platform 5.5 refuse the other fields.
    if schema.type is not SchemaType.AVRO:
        body["schemaType"] = schema.type.value
    if schema.references:
        body["references"] = [
            {"name": each.name, "subject": each.subject, "version": each.version}
            for each in schema.references
        ]
    return body
