"""Schemas of a schema registry."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import final


class SchemaType(enum.Enum):
    """The languages of schemas, in the registry's spelling."""

    AVRO = "AVRO"
    PROTOBUF = "PROTOBUF"
    JSON = "JSON"


@final
@dataclass(frozen=True, slots=True)
class SchemaReference:
    """A schema that another one imports: its name there, and where the registry has it."""

    name: str
    subject: str
    version: int


@final
@dataclass(frozen=True, slots=True)
class ImportedSchema:
    """The text of a schema, and the name by which others import it."""

    name: str
    text: str


@final
@dataclass(frozen=True, slots=True)
class Schema:
    """The text of a schema, and the schemas that it imports.

    ``references`` say where the registry has the schemas that the text itself imports. ``imports``
    are all schemas that it needs, each once and after those that it needs itself; they are empty
    until the references are resolved.
    """

    type: SchemaType
    text: str
    references: tuple[SchemaReference, ...] = ()
    imports: tuple[ImportedSchema, ...] = ()


@final
@dataclass(frozen=True, slots=True)
class SubjectVersion:
    """A version of a subject: a schema with the registry's id of it.

    ``guid`` is ``None`` if the registry has none.
    """

    subject: str
    version: int
    schema_id: int
    schema: Schema
    guid: str | None = None
