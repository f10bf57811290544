"""A schema registry with Confluent's HTTP API: Confluent's own, Apicurio, Karapace, Redpanda.

Its answers are checked: they may be another server's, or a hostile one's.
"""

from __future__ import annotations

import json
import logging
import re
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, final
from urllib.parse import quote

from ....domain.options.option import INT32_MAX
from ....domain.values.errors import (
    RegistryRefusedError,
    RegistryUnavailableError,
    UnknownSchemaError,
)
from ....domain.values.registry import (
    Schema,
    SchemaReference,
    SchemaType,
    SubjectVersion,
    context_of,
    is_descriptor,
    split_context,
)
from ....ports.values.schema_registry import SchemaRegistry
from ...security.clear_text import warn_about_registry
from .rest_client import Request, RestClient, as_object, json_object, native_url, refuse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ....domain.values.registry import RegistrySettings, Schema, SubjectVersion
    from .rest_client import Fields

log = logging.getLogger("pyspark_kafka")

MAX_REFERENCES: Final = 1_000

_REFERENCE: Final = "a reference in its answer"

_ARTIFACT_FIELDS: Final = ("name", "artifactId", "version", "groupId")
_DEFAULT_GROUP: Final = "default"
_NUMBER: Final = re.compile(r"[1-9][0-9]{0,8}")

_NO_TYPE: Final = "Failed to discover artifact type"
"""Apicurio 3.0 guesses the type of an id's schema by its text; some texts it refuses."""


@final
class HttpSchemaRegistry(SchemaRegistry):
    """Sends a request for each call, and keeps nothing but connections."""

    def __init__(self, settings: RegistrySettings) -> None:
        """Read the files of TLS; no request is sent yet.

        :raises ValueError: if they cannot be used.
        """
        self._url = settings.url
        self._is_apicurio = all(native_url(server.url) for server in settings.servers)
        self._client = RestClient(settings)
        warn_about_registry(settings)

    def __repr__(self) -> str:
        return f"HttpSchemaRegistry({self._url!r})"

    @property
    def url(self) -> str:
        return self._url

    def by_id(self, schema_id: int, subject: str | None = None) -> Schema:
        path, what = _place_of(schema_id, subject), f"schema with the id {schema_id}"
        try:
            schema = self._client.request(Request("GET", path, what), parse_schema)
        except RegistryUnavailableError as error:
            if not self._is_apicurio or _NO_TYPE not in str(error):
                raise
            return self._native(f"ids/contentIds/{schema_id}", what, subject)
        schema = self._with_descriptor(schema, path, what)
        return self._with_groups(schema, schema_id, what, subject)

    def by_guid(self, guid: str, subject: str | None = None) -> Schema:  # noqa: ARG002
        path, what = f"schemas/guids/{_quoted(guid)}", f"schema with the GUID {guid}"
        schema = self._client.request(Request("GET", path, what), parse_schema)
        return self._with_descriptor(schema, path, what)

    def by_global_id(self, global_id: int, kind: SchemaType) -> Schema:
        if not self._is_apicurio:
            return super().by_global_id(global_id, kind)
        what = f"schema with the global id {global_id}"
        return replace(self._native(f"ids/globalIds/{global_id}", what), type=kind)

    def version(
        self, subject: str, version: int | None = None, *, deleted: bool = False
    ) -> SubjectVersion:
        name = "latest version" if version is None else f"version {version}"
        place = "latest" if version is None else str(version)
        path = f"/versions/{place}{'?deleted=true' if deleted else ''}"
        what = f"{name} of the subject '{subject}'"
        found = self._version(self._of_subject(subject, path, what), subject)
        path = _place_of(found.schema_id, subject)
        return replace(found, schema=self._with_descriptor(found.schema, path, what))

    def look_up(self, subject: str, schema: Schema) -> SubjectVersion:
        what = f"version of the subject '{subject}' with this schema"
        return self._version(self._of_subject(subject, "", what, schema), subject)

    def register(self, subject: str, schema: Schema) -> int:
        what = f"schema for the subject '{subject}'"
        return self._client.request(self._of_subject(subject, "/versions", what, schema), parse_id)

    def close(self) -> None:
        self._client.close()

    def _of_subject(
        self, subject: str, path: str, what: str, schema: Schema | None = None
    ) -> Request:
        """Return a request for a subject; Apicurio has groups instead of contexts."""
        group, name = split_context(subject) if self._is_apicurio else ("", subject)
        if schema is not None and self._is_apicurio:
            bare = (
                replace(one, subject=split_context(one.subject)[1]) for one in schema.references
            )
            schema = replace(schema, references=tuple(bare))
        body = None if schema is None else _body(schema)
        path = f"subjects/{_quoted(name)}{path}"
        return Request("GET" if body is None else "POST", path, what, body, group=group[1:])

    def _version(self, request: Request, subject: str) -> SubjectVersion:
        found = self._client.request(request, parse_version)
        schema = self._with_groups(found.schema, found.schema_id, request.what, subject)
        # Apicurio's answer lacks the group.
        return replace(found, schema=schema, subject=subject if request.group else found.subject)

    def _native(self, path: str, what: str, subject: str | None = None) -> Schema:
        """Return a schema by Apicurio's own API, which does not return its type."""
        content = Request("GET", path, what, read=_content, is_native=True)
        text = self._client.request(content, lambda fields: _text(fields, "schema"))
        return Schema(_guessed(text), text, self._references(path, what, subject))

    def _references(self, path: str, what: str, subject: str | None) -> tuple[SchemaReference, ...]:
        request = Request("GET", f"{path}/references", what, read=_wrapped, is_native=True)
        context = context_of(subject or "")
        return self._client.request(request, lambda fields: self._imported(fields, context))

    def _with_groups(
        self, schema: Schema, content_id: int, what: str, subject: str | None
    ) -> Schema:
        """Return a schema with the groups of its imports, which Confluent's API leaves out."""
        if not schema.references or not self._is_apicurio:
            return schema
        try:
            found = self._references(f"ids/contentIds/{content_id}", what, subject)
        except UnknownSchemaError:
            found = ()
        bare = {replace(each, subject=split_context(each.subject)[1]) for each in found}
        # An Apicurio whose ids are global ids may have another schema of this content id.
        return replace(schema, references=found) if bare == {*schema.references} else schema

    def _imported(self, fields: Fields, context: str) -> tuple[SchemaReference, ...]:
        """Return references of Apicurio's own API, whose artifacts have groups and named versions.

        Subjects of the schema's own group are not qualified.
        """
        found = []
        for name, artifact, version, group in map(_artifact, _listed(fields.get("references"))):
            if ":" in group or not _NUMBER.fullmatch(version):
                imported = f"version '{version}' of '{artifact}' in the group '{group}'"
                reason = f"it imports {imported}; versions must be numbers, and groups have no ':'"
                raise RegistryRefusedError(self._url, "a schema", reason)
            place = "" if group == _DEFAULT_GROUP else f".{group}"
            subject = artifact if place == context else f":{place or '.'}:{artifact}"
            found.append(SchemaReference(name, subject, int(version)))
        return tuple(found)

    def _with_descriptor(self, schema: Schema, path: str, what: str) -> Schema:
        """Return a Protobuf schema with its descriptor, if the registry serializes schemas.

        Confluent's does. Other registries ignore ``format`` or refuse it, and Apicurio since 3.1
        answers with bytes that are no text. They may do so for schemas of other types, too.
        """
        if schema.type is not SchemaType.PROTOBUF or is_descriptor(schema.text):
            return schema
        request = Request("GET", f"{path}{'&' if '?' in path else '?'}format=serialized", what)
        try:
            found = self._client.request_once(request, parse_schema).text
        except (RegistryUnavailableError, RegistryRefusedError, UnknownSchemaError) as error:
            log.debug("The registry has no descriptor of the %s: %s", what, error)
            return schema
        return replace(schema, serialized=found) if is_descriptor(found) else schema


def _place_of(schema_id: int, subject: str | None) -> str:
    query = "" if subject is None else f"?subject={_quoted(subject)}"
    return f"schemas/ids/{schema_id}{query}"


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


def parse_id(fields: Fields) -> int:
    """Return the id of a schema that was registered."""
    return _number(fields, "id", 0)


def parse_schema(fields: Fields) -> Schema:
    """Return a schema."""
    name = fields.get("schemaType", SchemaType.AVRO.value)
    try:
        kind = SchemaType(name)
    except ValueError:
        known = ", ".join(each.value for each in SchemaType)
        refuse(f"the 'schemaType' of its answer is not one of {known}")
    return Schema(kind, _text(fields, "schema"), _references(fields.get("references")))


def parse_version(fields: Fields) -> SubjectVersion:
    """Return a version of a subject."""
    version, schema_id = _number(fields, "version", 1), _number(fields, "id", 0)
    return SubjectVersion(
        _text(fields, "subject"),
        version,
        schema_id,
        parse_schema(fields),
        _guid(fields.get("guid")),
    )


def _guid(found: object) -> str | None:
    if found is None:
        return None
    try:
        return str(uuid.UUID(str(found)))
    except ValueError:
        refuse("its answer has no GUID for 'guid'")


def _references(found: object) -> tuple[SchemaReference, ...]:
    return tuple(_reference(as_object(each, _REFERENCE)) for each in _listed(found))


def _listed(found: object) -> list[Any]:
    if found is None:
        return []
    if not isinstance(found, list) or len(found) > MAX_REFERENCES:
        refuse(f"the 'references' of its answer are no list of at most {MAX_REFERENCES}")
    return found


def _guessed(text: str) -> SchemaType:
    """Return the type of a schema whose type Apicurio cannot guess, which is never Avro."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return SchemaType.PROTOBUF
    return SchemaType.JSON


def _content(answer: bytes) -> Fields:
    """Return a schema, which Apicurio's own API returns without fields."""
    try:
        return {"schema": answer.decode()}
    except UnicodeDecodeError:
        refuse("its answer is no text")


def _wrapped(answer: bytes) -> Fields:
    """Return references, which Apicurio's own API returns without fields."""
    return json_object(b'{"references": %b}' % answer)


def _artifact(found: object) -> tuple[str, str, str, str]:
    fields = {"groupId": _DEFAULT_GROUP, **as_object(found, _REFERENCE)}
    name, artifact, version, group = (_text(fields, one) for one in _ARTIFACT_FIELDS)
    return name, artifact, version, group


def _reference(fields: Fields) -> SchemaReference:
    version = _number(fields, "version", 1)
    return SchemaReference(_text(fields, "name"), _text(fields, "subject"), version)


def _text(fields: Fields, name: str) -> str:
    found = fields.get(name)
    # JSON can express halves of characters, which no other text can have.
    if not isinstance(found, str) or any("\ud800" <= each <= "\udfff" for each in found):
        refuse(f"its answer has no text for '{name}'")
    return found


def _number(fields: Fields, name: str, minimum: int) -> int:
    found = fields.get(name)
    if type(found) is not int or not minimum <= found <= INT32_MAX:
        refuse(f"its answer has no number from {minimum} to {INT32_MAX} for '{name}'")
    return found
