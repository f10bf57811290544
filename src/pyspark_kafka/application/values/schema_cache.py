"""The answers of a schema registry, cached while they are valid, with the schemas they import.

How long they are valid does not depend on the registry: this is a use case, not an adapter.
"""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import Future
from copy import copy
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Final, Generic, TypeVar, final

from ...domain.values.errors import RegistryUnavailableError, UnknownSchemaError
from ...domain.values.registry import (
    ImportedSchema,
    Schema,
    SchemaType,
    SubjectVersion,
    in_context_of,
)
from ...ports.clock import Deadline
from ...ports.values.schema_registry import SchemaRegistry

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...domain.values.registry import Schema, SchemaReference
    from ...ports.clock import Deadline

log = logging.getLogger("pyspark_kafka")

MAX_IMPORTS: Final = 1_000
MAX_DEPTH: Final = 64
MAX_IMPORTED_CHARACTERS: Final = 16 * 1024 * 1024
"""The limit of all texts together that one schema imports."""


@final
class SchemaImports:
    """Fetches the schemas that one schema imports.

    As in Confluent's clients, names are of the whole schema: the first of a name counts.
    """

    def __init__(
        self, url: str, fetch: Callable[[str, int], Schema], what: str, deadline: Deadline
    ) -> None:
        """Take the registry's URL, and a function that fetches a version of a subject.

        ``what`` names the schema in errors.
        """
        self._url = url
        self._fetch = fetch
        self._what = what
        self._deadline = deadline
        self._imports: dict[str, ImportedSchema] = {}
        self._importing: list[tuple[str, int]] = []
        self._fetched = 0
        self._characters = 0

    def resolve(self, schema: Schema, subject: str) -> Schema:
        """Return the schema of a subject with its imports.

        :raises RegistryUnavailableError: if they are missing, import each other, or are too many.
        """
        self._import_all(schema.references, subject)
        return replace(schema, imports=tuple(self._imports.values()))

    def _import_all(self, references: tuple[SchemaReference, ...], subject: str) -> None:
        for reference in references:
            if reference.name not in self._imports:
                imported = in_context_of(subject, reference.subject)
                self._import(replace(reference, subject=imported))

    def _import(self, reference: SchemaReference) -> None:
        place = reference.subject, reference.version
        if place in self._importing:
            raise self._error(f"{_described(reference)}, which imports itself")
        if len(self._importing) >= MAX_DEPTH:
            raise self._error(f"schemas that are nested deeper than {MAX_DEPTH}")
        if self._fetched >= MAX_IMPORTS:
            raise self._error(f"more than {MAX_IMPORTS} schemas")
        if self._deadline.has_passed:
            raise self._error("schemas that took too long to be fetched")
        self._fetched += 1
        try:
            schema = self._fetch(*place)
        except UnknownSchemaError as error:
            raise self._error(f"{_described(reference)}, which it does not have") from error
        self._characters += len(schema.text) + len(schema.serialized)
        if self._characters > MAX_IMPORTED_CHARACTERS:
            raise self._error(f"schemas of more than {MAX_IMPORTED_CHARACTERS} characters")
        self._importing.append(place)
        self._import_all(schema.references, reference.subject)
        self._importing.pop()
        imported = ImportedSchema(reference.name, schema.text, schema.serialized)
        self._imports.setdefault(reference.name, imported)

    def _error(self, imports: str) -> RegistryUnavailableError:
        return RegistryUnavailableError(self._url, f"its {self._what} imports {imports}")


def _described(reference: SchemaReference) -> str:
    return f"version {reference.version} of the subject '{reference.subject}'"


K = TypeVar("K")
V = TypeVar("V", Schema, SubjectVersion)

MAX_ANSWERS: Final = 1_000
MAX_CHARACTERS: Final = 64 * 1024 * 1024
"""The limit of the texts of all answers together."""

MAX_UNKNOWN: Final = 10_000

UNKNOWN_S: Final = 1.0
"""How long a schema is taken for unknown at first: it may be registered at any time.

The time doubles each time that the registry still does not have it, up to ``REST_S``.
"""

PATIENCE_S: Final = 3.0
"""How long a schema is requested again before it is unknown: a server of the registry may lag."""

REST_S: Final = 30.0
"""How long no request is repeated at once after repeating one did not help: values that only look
as if they had an id must not slow down a query."""

_MIN_PAUSE_S: Final = 0.1
_MAX_PAUSE_S: Final = 0.5

IMPORTS_S: Final = 60.0
"""How long it may take to fetch what a schema imports."""


@final
class SchemaCache(SchemaRegistry):
    """Keeps the schemas of ids and of numbered versions, with the schemas that they import.

    Latest versions, look-ups and registrations are requested each time. An id that the registry
    does not have is requested again for ``patience_s``: one of its servers may not have it yet.
    """

    def __init__(
        self,
        registry: SchemaRegistry,
        unknown_s: float = UNKNOWN_S,
        patience_s: float = PATIENCE_S,
    ) -> None:
        """Take the registry, which is closed with the cache."""
        self._registry = registry
        self._patience = _Patience(patience_s)
        self._by_id = _Answers[tuple[int, str | None], Schema](unknown_s)
        self._by_guid = _Answers[tuple[str, str | None], Schema](unknown_s)
        self._by_global_id = _Answers[tuple[int, SchemaType], Schema](unknown_s)
        self._versions = _Answers[tuple[str, int], SubjectVersion](unknown_s)

    @property
    def url(self) -> str:
        """The registry's."""
        return self._registry.url

    def by_id(self, schema_id: int, subject: str | None = None) -> Schema:
        """Return as ``SchemaRegistry.by_id``, with all imports."""
        what = f"schema with the id {schema_id}"
        return self._by_id.get(
            (schema_id, subject),
            lambda: self._resolved(
                self._patience.ask(lambda: self._registry.by_id(schema_id, subject)), subject, what
            ),
        )

    def by_guid(self, guid: str, subject: str | None = None) -> Schema:
        """Return as ``SchemaRegistry.by_guid``, with all imports."""
        what = f"schema with the GUID {guid}"
        return self._by_guid.get(
            (guid, subject),
            lambda: self._resolved(
                self._patience.ask(lambda: self._registry.by_guid(guid, subject)), subject, what
            ),
        )

    def by_global_id(self, global_id: int, kind: SchemaType) -> Schema:
        """Return as ``SchemaRegistry.by_global_id``, with all imports."""
        what = f"schema with the global id {global_id}"
        return self._by_global_id.get(
            (global_id, kind),
            lambda: self._resolved(
                self._patience.ask(lambda: self._registry.by_global_id(global_id, kind)), None, what
            ),
        )

    def version(
        self, subject: str, version: int | None = None, *, deleted: bool = False
    ) -> SubjectVersion:
        """Return as ``SchemaRegistry.version``, with all imports."""
        if version is None:
            return self._with_imports(self._registry.version(subject, deleted=deleted))
        return self._with_imports(self._numbered(subject, version, deleted=deleted))

    def look_up(self, subject: str, schema: Schema) -> SubjectVersion:
        """Return as ``SchemaRegistry.look_up``, with all imports."""
        return self._with_imports(self._registry.look_up(subject, schema))

    def register(self, subject: str, schema: Schema) -> int:
        """Return as ``SchemaRegistry.register``."""
        return self._registry.register(subject, schema)

    def close(self) -> None:
        """Close the registry."""
        self._registry.close()

    def _numbered(self, subject: str, version: int, *, deleted: bool) -> SubjectVersion:
        return self._versions.get(
            (subject, version),
            lambda: self._registry.version(subject, version, deleted=deleted),
        )

    def _with_imports(self, found: SubjectVersion) -> SubjectVersion:
        what = f"version {found.version} of the subject '{found.subject}'"
        return replace(found, schema=self._resolved(found.schema, found.subject, what))

    def _resolved(self, schema: Schema, subject: str | None, what: str) -> Schema:
        if not schema.references:
            return schema
        # As Confluent's clients do: what others import stays when it is deleted.
        return SchemaImports(
            self.url,
            lambda *place: self._numbered(*place, deleted=True).schema,
            what,
            Deadline.after(IMPORTS_S),
        ).resolve(schema, subject or "")


@final
class _Patience:
    """Repeats look-ups of unknown ids, within a limit."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._rest = Deadline.after(0)

    def ask(self, fetch: Callable[[], Schema]) -> Schema:
        """Return as ``fetch``."""
        deadline = Deadline.after(self._seconds if self._rest.has_passed else 0)
        pause_s = _MIN_PAUSE_S
        while True:
            try:
                return fetch()
            except UnknownSchemaError as error:
                remaining_s = deadline.remaining
                if not remaining_s:
                    if pause_s > _MIN_PAUSE_S:
                        self._rest = Deadline.after(REST_S)
                        log.warning(
                            "%s Values without a schema id may look as if they had one.", error
                        )
                    raise
                log.info("%s It is requested again for %.1f s.", error, remaining_s)
            time.sleep(min(pause_s, remaining_s))
            pause_s = min(2 * pause_s, _MAX_PAUSE_S)


@final
class _Answers(Generic[K, V]):
    """Answers by their question; threads that ask the same at once wait for one request."""

    def __init__(self, unknown_s: float) -> None:
        self._unknown_s = unknown_s
        self._lock = threading.Lock()
        self._answers: dict[K, V] = {}
        self._characters = 0
        self._unknown: dict[K, tuple[Deadline, float, UnknownSchemaError]] = {}
        self._requests: dict[K, Future[V]] = {}

    def get(self, key: K, fetch: Callable[[], V]) -> V:
        """Return what ``fetch`` returned first; raise what it raises."""
        with self._lock:
            answer = self._answers.get(key)
            if answer is not None:
                return answer
            self._raise_unknown(key)
            request = self._requests.get(key)
            if request is None:
                mine = self._requests[key] = Future[V]()
        if request is not None:
            return request.result()
        return self._fetched(key, fetch, mine)

    def _raise_unknown(self, key: K) -> None:
        if key in self._unknown:
            deadline, _, error = self._unknown[key]
            if not deadline.has_passed:
                raise error.with_traceback(None)

    def _fetched(self, key: K, fetch: Callable[[], V], request: Future[V]) -> V:
        try:
            answer = fetch()
        except BaseException as error:
            with self._lock:
                del self._requests[key]
                if isinstance(error, UnknownSchemaError):
                    self._keep_unknown(key, error)
            request.set_exception(error)
            raise
        with self._lock:
            del self._requests[key]
            self._keep(key, answer)
        request.set_result(answer)
        return answer

    def _keep_unknown(self, key: K, error: UnknownSchemaError) -> None:
        _, last_s, _ = self._unknown.pop(key, (None, self._unknown_s / 2, None))
        seconds = min(2 * last_s, max(REST_S, self._unknown_s))
        # A copy has no stack, whose variables would be kept.
        self._unknown[key] = Deadline.after(seconds), seconds, copy(error)
        if len(self._unknown) > MAX_UNKNOWN:
            del self._unknown[next(iter(self._unknown))]

    def _keep(self, key: K, answer: V) -> None:
        self._unknown.pop(key, None)
        self._answers[key] = answer
        self._characters += _characters(answer)
        while len(self._answers) > MAX_ANSWERS or self._characters > MAX_CHARACTERS:
            self._characters -= _characters(self._answers.pop(next(iter(self._answers))))


def _characters(answer: Schema | SubjectVersion) -> int:
    schema = answer if isinstance(answer, Schema) else answer.schema
    texts = [(each.text, each.serialized) for each in schema.imports]
    return sum(map(len, chain((schema.text, schema.serialized), *texts)))
