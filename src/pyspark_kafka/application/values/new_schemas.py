"""Finding values whose schema is newer than the one with which a query reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

import numpy as np

from ...domain.values.errors import UnknownSchemaError

if TYPE_CHECKING:
    from ...domain.values.registered_schema import SubjectVersion
    from ...ports.values.schema_registry import SchemaRegistry
    from ...ports.values.value_decoder import Payloads, WriterSchema


@final
class NewSchemas:
    """Asks the registry once for each schema which version of the subject it is."""

    def __init__(self, registry: SchemaRegistry, version: SubjectVersion) -> None:
        """Take the version with which the query reads."""
        self._registry = registry
        self._version = version
        self._newer: dict[int | str, SubjectVersion | None] = {version.schema_id: None}

    def first_of(self, payloads: Payloads) -> tuple[int, SubjectVersion] | None:
        """Return the first row whose schema is a newer version of the subject, and the version.

        :raises RegistryUnavailableError: if the registry cannot be asked.
        :raises RegistryRefusedError: if it refuses to answer.
        """
        found = [
            (int(np.argmax(payloads.writers == number)), newer)
            for number, writer in enumerate(payloads.schemas)
            if (newer := self._newer_version(writer)) is not None
        ]
        return min(found, key=lambda each: each[0], default=None)

    def _newer_version(self, writer: WriterSchema) -> SubjectVersion | None:
        if writer.schema_id not in self._newer:
            self._newer[writer.schema_id] = self._look_up(writer)
        return self._newer[writer.schema_id]

    def _look_up(self, writer: WriterSchema) -> SubjectVersion | None:
        try:
            found = self._registry.look_up(self._version.subject, writer.schema)
        except UnknownSchemaError:
            # It is a schema of another subject.
            return None
        return found if found.version > self._version.version else None
