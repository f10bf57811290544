"""Looking up and registering schemas."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from ...domain.values.errors import RegistryRefusedError

if TYPE_CHECKING:
    from ...domain.values.registry import Schema, SchemaType, SubjectVersion


class SchemaRegistry(ABC):
    """A schema registry; any thread may call it.

    A subject may be qualified with a context, such as ``:.lsrc:orders-value``: each context has its
    own ids and versions.

    Every method may raise:

    :raises RegistryUnavailableError: if it does not answer in time, or answers nonsense.
    :raises RegistryRefusedError: if it refuses the login or the request.
    """

    @property
    @abstractmethod
    def url(self) -> str:
        """The registry's URL, without user and password."""

    @abstractmethod
    def by_id(self, schema_id: int, subject: str | None = None) -> Schema:
        """Return the schema of an id; an id never gets another schema in its context.

        The id is of the context of ``subject``. If a subject without a context is given, and the
        default context lacks the id, the id is of another context that has the subject.

        :raises UnknownSchemaError: if there is none.
        """

    @abstractmethod
    def by_guid(self, guid: str, subject: str | None = None) -> Schema:
        """Return the schema of a GUID, 32 hexadecimal digits in five groups.

        A GUID has no context; the context of ``subject`` is for the schema's imports.

        :raises UnknownSchemaError: if there is none.
        """

    def by_global_id(self, global_id: int, kind: SchemaType) -> Schema:
        """Return the schema of a global id, which Apicurio has for each version of a subject.

        Apicurio does not return what kind of schema that is. Other registries have no global ids.

        :raises UnknownSchemaError: if there is none.
        """
        raise RegistryRefusedError(
            self.url,
            f"the {kind.name} schema with the global id {global_id}",
            "only Apicurio has global ids, where the URL ends with /apis/ccompat/v7",
        )

    @abstractmethod
    def version(
        self, subject: str, version: int | None = None, *, deleted: bool = False
    ) -> SubjectVersion:
        """Return a version of a subject, the latest by default; ``deleted`` ones only if asked for.

        :raises UnknownSchemaError: if there is no such subject or version.
        """

    @abstractmethod
    def look_up(self, subject: str, schema: Schema) -> SubjectVersion:
        """Return the version of a subject that has this schema.

        :raises UnknownSchemaError: if no version has it.
        """

    @abstractmethod
    def register(self, subject: str, schema: Schema) -> int:
        """Return the id of a schema, which becomes the subject's latest version if it is new.

        :raises IncompatibleSchemaError: if the subject's compatibility level forbids it.
        """

    @abstractmethod
    def close(self) -> None:
        """Close connections. A second call does nothing."""
