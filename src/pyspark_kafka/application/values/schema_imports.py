"""The schemas that a schema imports, directly or through others."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, final

from ...domain.values.errors import RegistryUnavailableError, UnknownSchemaError
from ...domain.values.registered_schema import ImportedSchema

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...domain.values.registered_schema import Schema, SchemaReference
    from ...ports.deadline import Deadline

MAX_IMPORTS: Final = 1_000
MAX_DEPTH: Final = 64
MAX_CHARACTERS: Final = 16 * 1024 * 1024
"""Of the texts of all schemas that one schema imports."""


@final
class SchemaImports:
    """Fetches the schemas that one schema imports.

    As in Confluent's clients, names are of the whole schema: the first of a name counts.
    """

    def __init__(
        self, url: str, fetch: Callable[[str, int], Schema], what: str, deadline: Deadline
    ) -> None:
        """Take the registry's URL, and what fetches a version of a subject.

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

    def resolve(self, schema: Schema) -> Schema:
        """Return the schema with its imports.

        :raises RegistryUnavailableError: if they are missing, import each other, or are too many.
        """
        self._import_all(schema.references)
        return replace(schema, imports=tuple(self._imports.values()))

    def _import_all(self, references: tuple[SchemaReference, ...]) -> None:
        for reference in references:
            if reference.name not in self._imports:
                self._import(reference)

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
        self._characters += len(schema.text)
        if self._characters > MAX_CHARACTERS:
            raise self._error(f"schemas of more than {MAX_CHARACTERS} characters")
        self._importing.append(place)
        self._import_all(schema.references)
        self._importing.pop()
        self._imports.setdefault(reference.name, ImportedSchema(reference.name, schema.text))

    def _error(self, imports: str) -> RegistryUnavailableError:
        return RegistryUnavailableError(self._url, f"its {self._what} imports {imports}")


def _described(reference: SchemaReference) -> str:
    return f"version {reference.version} of the subject '{reference.subject}'"
