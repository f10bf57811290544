"""Schemas in files, which the driver reads once."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Final, final

from ...domain.checkpoints.entries import (
    SchemaVersion,
    read_schema_versions,
    write_schema_versions,
)
from ...domain.errors import MetadataLogError, OptionsError
from ...domain.subscription import SubscribePattern
from ...domain.values.data_types import StructType
from ...domain.values.typed_schema import (
    RECORD_TYPES,
    TypedColumn,
    TypedSchema,
    select,
    text_schema,
    typed_schema,
    with_corrupt_record,
)
from ...domain.values.value_options import LATEST, OnNewSchema, SubjectNameStrategy
from ..checkpoints.logs import newest_entry

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ...domain.checkpoints.storage_path import StoragePath
    from ...domain.options.source import SourceOptions
    from ...domain.values.registry import SubjectVersion
    from ...domain.values.value_options import ValueOptions
    from ...ports.checkpoints import MetadataLog
    from ...ports.values.schema_registry import SchemaRegistry
    from ...ports.values.value_format import ValueFormat

_DESCRIPTORS: Final = (".desc", ".pb")


def with_schema_file(
    options: ValueOptions, read_file: Callable[[StoragePath], bytes]
) -> ValueOptions:
    """Return the options with the content of the file that they name.

    :raises OptionsError: if the file cannot be used.
    """
    path = options.schema_file
    if path is None:
        return options
    content = read_file(path)
    if path.url.lower().endswith(_DESCRIPTORS):
        return replace(options, schema_file=None, descriptor=content)
    try:
        return replace(options, schema_file=None, schema=content.decode())
    except UnicodeDecodeError:
        problem = f"Option '{options.column}Schema': the file {path} is not a text in UTF-8"
        raise OptionsError([problem]) from None


@final
class SchemaVersions:
    """The version of each column, in the newest entry of a log; without a log there is none."""

    def __init__(self, log: MetadataLog | None) -> None:
        self._log = log
        self._latest: tuple[int, Mapping[str, SchemaVersion]] | None = None

    def stored(self) -> Mapping[str, SchemaVersion]:
        """Return the versions by ``key`` and ``value``.

        :raises MetadataLogError: if the log cannot be read.
        """
        return self._read()[1]

    def store(self, versions: Mapping[str, SchemaVersion]) -> None:
        """Store versions, unless they are stored already.

        :raises MetadataLogError: if the log cannot be written, or another query writes it.
        """
        number, stored = self._read()
        if self._log is None or not versions or stored == versions:
            return
        added = self._log.add(number + 1, write_schema_versions(versions))
        self._latest = None
        if not added and self.stored() != versions:
            raise MetadataLogError(
                str(self._log),
                "Another query has stored other versions of schemas at the same time. Give each "
                "query a 'metadataPath' of its own, and start this one again",
            )

    def _read(self) -> tuple[int, Mapping[str, SchemaVersion]]:
        if self._latest is None:
            self._latest = self._read_log()
        return self._latest

    def _read_log(self) -> tuple[int, Mapping[str, SchemaVersion]]:
        found = None if self._log is None else newest_entry(self._log, read_schema_versions)
        return found or (-1, {})


log = logging.getLogger("pyspark_kafka")

_OWN_SCHEMAS: Final = frozenset({"avro", "protobuf"})
"""Formats that cannot be read with the types of a user's schema alone."""


@final
class ValueSchemas:
    """Finds how the columns of a query are decoded, and keeps that for restarts."""

    def __init__(
        self,
        options: SourceOptions,
        formats: Callable[[str], ValueFormat],
        registry: Callable[[], SchemaRegistry],
        read_file: Callable[[StoragePath], bytes],
        versions: SchemaVersions,
    ) -> None:
        """Take formats by name, and what reads files; the registry is only made if it is needed."""
        self._options = options
        self._formats = formats
        self._registry = registry
        self._read_file = read_file
        self._versions = versions

    def resolve(self, requested: StructType | None = None) -> TypedSchema:
        """Return the columns of the query; ``requested`` are those of a user's schema.

        The version of a subject is the one of the options, or the one that the query has stored, or
        else the latest one.

        :raises OptionsError: if a schema is missing, or has no such fields.
        :raises UnknownSchemaError: if the registry has no such subject or version.
        :raises RegistryUnavailableError: if it cannot be reached.
        :raises RegistryRefusedError: if it refuses the login or the request.
        :raises MetadataLogError: if the stored versions cannot be read.
        """
        columns = [self._column(value, requested) for value in self._options.values]
        _check_new_schemas(columns)
        found = typed_schema(self._options.projection, columns)
        return found if requested is None else select(found, requested)

    def settle(self) -> TypedSchema:
        """Return the columns of a stream, and keep them; raises as ``resolve`` and ``keep`` do."""
        found = self.resolve()
        self.keep(found)
        return found

    def keep(self, schema: TypedSchema) -> None:
        """Store the versions of a stream's schemas, unless they are to be the latest ones.

        :raises MetadataLogError: if they cannot be stored.
        """
        self._versions.store(
            {
                column.name: SchemaVersion(column.version.subject, column.version.version)
                for column in schema.typed
                if column.version is not None and column.options.schema_version != LATEST
            }
        )

    def _column(self, given: ValueOptions, requested: StructType | None) -> TypedColumn:
        value_format = self._formats(given.format)
        options = with_schema_file(given, self._read_file)
        if options.schema is None and options.format not in _OWN_SCHEMAS:
            options = replace(options, schema=_requested_schema(options, requested))
        version = self._version(options)
        schema = text_schema(options) if version is None else version.schema
        column = with_corrupt_record(options, value_format.data_type(options, schema))
        return replace(column, version=version)

    def _version(self, options: ValueOptions) -> SubjectVersion | None:
        """Return the registry's schema, unless the options have one, or there is no registry."""
        if self._options.registry is None or options.schema or options.descriptor:
            return None
        subject = options.subject or self._subject(options)
        number = options.schema_version
        if number is None:
            stored = self._versions.stored().get(options.column)
            number = stored.version if stored is not None and stored.subject == subject else LATEST
        found = self._registry().version(subject, None if number == LATEST else number)
        log.info("The %ss are read as version %d of %s", options.column, found.version, subject)
        return found

    def _subject(self, options: ValueOptions) -> str:
        """Return the subject of the topic (``TopicNameStrategy``)."""
        needed = f"set '{options.column}Subject' or '{options.column}Schema'"
        strategy = options.subject_name_strategy
        if strategy is not SubjectNameStrategy.TOPIC_NAME:
            raise OptionsError([f"{strategy.value} names subjects by records: {needed}"])
        subscription = self._options.subscription
        topics = () if isinstance(subscription, SubscribePattern) else tuple(subscription.topics)
        if len(topics) != 1:
            problem = f"the query can read several topics, which may have several schemas: {needed}"
            raise OptionsError([problem])
        return f"{topics[0]}-{options.column}"


def _check_new_schemas(columns: Sequence[TypedColumn]) -> None:
    fails = any(column.options.on_new_schema is OnNewSchema.FAIL for column in columns)
    if fails and all(column.version is None for column in columns):
        problem = "onNewSchema 'fail' needs a schema of the registry: leave out 'valueSchema'"
        raise OptionsError([problem])


_OTHER_COLUMNS: Final = RECORD_TYPES.keys() | {"keyError", "keyBytes", "valueError", "valueBytes"}
"""The names of columns that are not fields of the values, except for the column's own."""


def _requested_schema(options: ValueOptions, requested: StructType | None) -> str | None:
    """Return the fields of a column in a user's schema as DDL, if it has them."""
    if requested is None:
        return None
    types = {field.name: field.type for field in requested.fields}
    found = types.get(options.column)
    if options.flatten:
        names = _OTHER_COLUMNS - {options.column}
        fields = tuple(field for field in requested.fields if field.name not in names)
        found = StructType(fields) if fields else None
    return str(found) if isinstance(found, StructType) else None
