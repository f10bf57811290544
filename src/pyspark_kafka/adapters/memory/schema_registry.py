"""A schema registry in memory."""

from __future__ import annotations

import itertools
import threading
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, TypeAlias, final

from ...domain.values.errors import (
    IncompatibleSchemaError,
    RegistryRefusedError,
    UnknownSchemaError,
)
from ...domain.values.registry import Schema, SubjectVersion, context_of, in_context_of
from ...ports.values.schema_registry import SchemaRegistry

_URL: Final = "memory"


Check: TypeAlias = "Callable[[Schema, Sequence[Schema]], str | None]"
"""Returns why a schema cannot follow the versions of a subject, or ``None`` if it can."""


@final
class MemorySchemaRegistry(SchemaRegistry):
    """Subjects with versions, by the rules of Confluent's registry.

    A schema has one id in all subjects of a context. Ids and versions count from 1. Every schema is
    compatible unless ``set_compatibility`` is called.
    """

    def __init__(self) -> None:
        self._checks: dict[str, Check] = {}
        self._lock = threading.Lock()
        self._schemas: dict[str, list[Schema]] = {}
        self._subjects: dict[str, list[int]] = {}

    @property
    def url(self) -> str:
        return _URL

    def by_id(self, schema_id: int, subject: str | None = None) -> Schema:
        with self._lock:
            for context in self._contexts_of(subject):
                schemas = self._schemas.get(context, [])
                if 1 <= schema_id <= len(schemas):
                    return schemas[schema_id - 1]
        raise UnknownSchemaError(_URL, f"schema with the id {schema_id}")

    def by_guid(self, guid: str, subject: str | None = None) -> Schema:  # noqa: ARG002
        with self._lock:
            for schema in itertools.chain(*self._schemas.values()):
                if guid_of(schema) == guid:
                    return schema
        raise UnknownSchemaError(_URL, f"schema with the GUID {guid}")

    def version(
        self,
        subject: str,
        version: int | None = None,
        *,
        deleted: bool = False,  # noqa: ARG002  # nothing is deleted
    ) -> SubjectVersion:
        with self._lock:
            ids = self._subjects.get(subject)
            if not ids:
                raise UnknownSchemaError(_URL, f"subject '{subject}'")
            number = len(ids) if version is None else version
            if not 1 <= number <= len(ids):
                raise UnknownSchemaError(_URL, f"version {version} of the subject '{subject}'")
            return self._subject_version(subject, number)

    def look_up(self, subject: str, schema: Schema) -> SubjectVersion:
        schema = replace(schema, imports=(), serialized="")
        with self._lock:
            for number in range(1, len(self._subjects.get(subject, [])) + 1):
                found = self._subject_version(subject, number)
                if found.schema == schema:
                    return found
        raise UnknownSchemaError(_URL, f"version of the subject '{subject}' with this schema")

    def register(self, subject: str, schema: Schema) -> int:
        schema = replace(schema, imports=(), serialized="")
        with self._lock:
            ids = self._subjects.get(subject, [])
            numbers = range(1, len(ids) + 1)
            versions = [self._subject_version(subject, number).schema for number in numbers]
            if schema not in versions:
                self._require_references(subject, schema)
                check = self._checks.get(subject)
                reason = check(schema, versions) if check and versions else None
                if reason is not None:
                    raise IncompatibleSchemaError(f"The schema for '{subject}'", reason)
                self._subjects[subject] = [*ids, self._id_of(subject, schema)]
            return self._id_of(subject, schema)

    def close(self) -> None:
        """Keep the schemas."""

    def set_compatibility(self, subject: str, check: Check) -> None:
        """Check each new version of a subject from now on, except its first one."""
        self._checks[subject] = check

    def _contexts_of(self, subject: str | None) -> list[str]:
        """Return the contexts in which an id is searched, in order."""
        context = context_of(subject or "")
        if context or subject is None:
            return [context]
        others = (context_of(each) for each in self._subjects if each.endswith(f":{subject}"))
        return [context, *others]

    def _require_references(self, subject: str, schema: Schema) -> None:
        for each in schema.references:
            imported = in_context_of(subject, each.subject)
            if not 1 <= each.version <= len(self._subjects.get(imported, [])):
                what = f"version {each.version} of the subject '{each.subject}'"
                raise RegistryRefusedError(_URL, "a schema", f"it has no {what}, which it imports")

    def _id_of(self, subject: str, schema: Schema) -> int:
        schemas = self._schemas.setdefault(context_of(subject), [])
        if schema not in schemas:
            schemas.append(schema)
        return schemas.index(schema) + 1

    def _subject_version(self, subject: str, number: int) -> SubjectVersion:
        schema_id = self._subjects[subject][number - 1]
        schema = self._schemas[context_of(subject)][schema_id - 1]
        return SubjectVersion(subject, number, schema_id, schema, guid_of(schema))


def guid_of(schema: Schema) -> str:
    """Return the GUID of a schema, which is the same in every registry in memory."""
    content = repr((schema.type.value, schema.text, schema.references))
    return str(uuid.uuid5(uuid.NAMESPACE_OID, content))
