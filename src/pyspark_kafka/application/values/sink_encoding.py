"""Encoding the struct columns of a sink, and registering their schemas."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Protocol, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...domain.errors import OptionsError
from ...domain.values.errors import UnencodableValueError, UnknownSchemaError
from ...domain.values.value_options import (
    LATEST,
    EncodedColumn,
    Framing,
    SubjectNameStrategy,
    subject_of,
)
from ...ports.record_schema import HEADERS, with_headers
from ...ports.values.value_types import data_type_of
from .value_schemas import with_schema_file

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ...domain.checkpoints.storage_path import StoragePath
    from ...domain.options.sink import SinkOptions
    from ...domain.values.data_types import StructType
    from ...domain.values.registry import Schema
    from ...domain.values.value_options import ValueOptions
    from ...ports.values.schema_registry import SchemaRegistry
    from ...ports.values.value_format import ValueEncoder, ValueFormat


MAX_ENCODERS: Final = 1_000
"""The encoders that are kept: rows name any number of topics."""


class WireFormat(Protocol):
    """Confluent's wire format."""

    def id_prefix(self, schema_id: int, message_indexes: Sequence[int] | None = None) -> bytes:
        """Return the framing of a schema id."""

    def guid_header(self, guid: str, message_indexes: Sequence[int] | None = None) -> bytes:
        """Return the framing of a GUID, which only headers have."""

    def header_name(self, column: str) -> str:
        """Return the name of the header with a schema id."""


@final
@dataclass(frozen=True, slots=True)
class _Registered:
    """An encoder, and the framing of the schema that its values have."""

    encoder: ValueEncoder
    framing: bytes = b""


@final
class SinkEncoding:
    """Encodes the columns that have a format; one thread uses it at a time.

    The driver calls ``prepare`` before tasks start. Tasks register what depends on the topics of
    rows, and what no driver has prepared, before the first record with that schema is sent.
    """

    def __init__(
        self,
        options: SinkOptions,
        formats: Callable[[str], ValueFormat],
        registry: Callable[[], SchemaRegistry],
        wire_format: WireFormat,
        read_file: Callable[[StoragePath], bytes],
    ) -> None:
        """Take formats by name, a registry, which is opened if it is needed, and a file reader."""
        self._options = options
        self._formats = formats
        self._registry = registry
        self._wire_format = wire_format
        self._read_file = read_file
        self._prepared: dict[tuple[tuple[str, StructType], ...], SinkOptions] = {}
        self._types: dict[pa.DataType, StructType] = {}
        self._registered: dict[tuple[str, StructType, str | None], _Registered] = {}

    def prepare(self, types: Mapping[str, StructType]) -> SinkOptions:
        """Return the options for tasks: with the schemas of files, and of columns by their types.

        Schemas are registered, unless the topics of rows decide on their subjects. That is done
        once: all micro-batches of a query have the same schemas.

        :raises OptionsError: if rows of a type cannot have the schema.
        :raises IncompatibleSchemaError: if the registry refuses a schema.
        :raises UnknownSchemaError: if the registry has no such schema.
        :raises RegistryUnavailableError: if it cannot be reached.
        """
        key = tuple(sorted(types.items(), key=lambda item: item[0]))
        found = self._prepared.get(key)
        if found is None:
            found = self._prepared[key] = self._prepare(types)
        return found

    def encode(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch whose struct columns are encoded.

        :raises UnencodableValueError: for the first row that does not fit its schema.
        :raises PysparkKafkaError: as ``prepare``.
        """
        for options in self._options.values:
            if options.column in batch.schema.names:
                batch = self._encoded(batch, options)
        return batch

    def _prepare(self, types: Mapping[str, StructType]) -> SinkOptions:
        values = tuple(with_schema_file(one, self._read_file) for one in self._options.values)
        encoded = tuple(
            self._column(value, types[value.column]) for value in values if value.column in types
        )
        return replace(self._options, values=values, encoded=encoded)

    def _column(self, options: ValueOptions, data_type: StructType) -> EncodedColumn:
        plain = EncodedColumn(options, data_type)
        is_framed = options.framing is not Framing.NONE
        subject = self._subject(plain, self._options.topic) if is_framed else None
        if subject is not None:
            return self._settled(plain, subject)
        if not is_framed or _version(options) is None:
            # The rows must fit their schema before any is sent.
            self._encoder(plain)
        return plain

    def _settled(self, column: EncodedColumn, subject: str) -> EncodedColumn:
        """Return a column with the registry's schema of a subject."""
        options, registry = column.options, self._registry()
        version = _version(options)
        if version is not None:
            found = registry.version(subject, None if version == LATEST else version)
            settled = EncodedColumn(
                options, column.data_type, found.schema, found.schema_id, found.guid
            )
            # The registry's schema must fit the rows before any is sent.
            self._encoder(settled)
            return settled
        schema = self._encoder(column).schema
        if not options.auto_register_schemas:
            found = registry.look_up(subject, schema)
            return EncodedColumn(options, column.data_type, None, found.schema_id, found.guid)
        schema_id = registry.register(subject, schema)
        is_in_header = options.framing is Framing.CONFLUENT_HEADER
        guid = _guid(registry, subject, schema) if is_in_header else None
        return EncodedColumn(options, column.data_type, None, schema_id, guid)

    def _subject(self, column: EncodedColumn, topic: str | None) -> str | None:
        """Return the subject; an encoder is made only if its name has the name of a record.

        Without the registry's schema, some formats have no encoder.
        """
        options = column.options
        has_record = options.subject_name_strategy is not SubjectNameStrategy.TOPIC_NAME
        needs_record = has_record and options.subject is None
        record_name = self._encoder(column).record_name if needs_record else None
        try:
            return subject_of(options, topic, record_name)
        except ValueError as error:
            raise OptionsError([str(error)]) from None

    def _encoder(self, column: EncodedColumn) -> ValueEncoder:
        make = self._formats(column.options.format).encoder
        if make is None:
            raise OptionsError([f"The format '{column.options.format}' cannot be written"])
        return make(column.options, column.schema, column.data_type)

    def _encoded(self, batch: pa.RecordBatch, options: ValueOptions) -> pa.RecordBatch:
        column = batch.column(options.column)
        data_type = self._data_type(column.type)
        if self._options.topic is not None or not _depends_on_topic(options):
            one = self._of(options, data_type, self._options.topic)
            return self._framed(batch, options, [(one, None)])
        topics = pc.unique(batch.column("topic")).drop_null().to_pylist()
        if len(topics) == 1 and not batch.column("topic").null_count:
            one = self._of(options, data_type, str(topics[0]))
            return self._framed(batch, options, [(one, None)])
        parts = [
            (self._of(options, data_type, str(topic)), _rows_of(batch, topic)) for topic in topics
        ]
        return self._framed(batch, options, parts)

    def _of(self, options: ValueOptions, data_type: StructType, topic: str | None) -> _Registered:
        """Return what encodes a column of a topic; it is made and registered once."""
        key = (options.column, data_type, topic if _depends_on_topic(options) else None)
        found = self._registered.get(key)
        if found is None:
            if len(self._registered) >= MAX_ENCODERS:
                del self._registered[next(iter(self._registered))]
            found = self._registered[key] = self._register(options, data_type, topic)
        return found

    def _register(
        self, options: ValueOptions, data_type: StructType, topic: str | None
    ) -> _Registered:
        column = self._pinned(options, data_type)
        if options.framing is Framing.NONE:
            return _Registered(self._encoder(column))
        if column.schema_id is None:
            subject = self._subject(column, topic)
            if subject is None:
                raise ValueError("the subject needs a topic")
            column = self._settled(column, subject)
        encoder = self._encoder(column)
        return _Registered(encoder, self._framing(column, encoder.message_indexes))

    def _framing(self, column: EncodedColumn, message_indexes: Sequence[int] | None) -> bytes:
        """Return the framing of a schema: an id where the registry has no GUID for a header."""
        if column.options.framing is Framing.CONFLUENT_HEADER and column.guid is not None:
            return self._wire_format.guid_header(column.guid, message_indexes)
        if column.schema_id is None:
            raise ValueError("a registered schema has an id")
        return self._wire_format.id_prefix(column.schema_id, message_indexes)

    def _pinned(self, options: ValueOptions, data_type: StructType) -> EncodedColumn:
        """Return what the driver has prepared, if it has."""
        for column in self._options.encoded:
            if column.options == options and column.data_type == data_type:
                return column
        return EncodedColumn(options, data_type)

    def _data_type(self, arrow: pa.DataType) -> StructType:
        found = self._types.get(arrow)
        if found is None:
            found = self._types[arrow] = data_type_of(arrow)
        return found

    def _framed(
        self,
        batch: pa.RecordBatch,
        options: ValueOptions,
        parts: Sequence[tuple[_Registered, Any]],
    ) -> pa.RecordBatch:
        """Return a batch with a column encoded; each part has its encoder, and its rows or all."""
        in_header = options.framing is Framing.CONFLUENT_HEADER
        column = batch.column(options.column)
        encoded = [
            _encode(one.encoder, column, rows, b"" if in_header else one.framing)
            for one, rows in parts
        ]
        numbers = [rows for _, rows in parts]
        batch = _with_column(batch, options.column, _joined(encoded, numbers, len(column)))
        if not in_header:
            return batch
        framings = [
            pa.repeat(pa.scalar(one.framing), len(column) if rows is None else len(rows))
            for one, rows in parts
        ]
        name = self._wire_format.header_name(options.column)
        framing = _joined(framings, numbers, len(column))
        mask = batch.column(options.column).is_null()
        framing = pc.if_else(mask, pa.scalar(None, pa.binary()), framing)
        if "headers" not in batch.schema.names:
            empty = pa.nulls(batch.num_rows, HEADERS)
            batch = batch.append_column(pa.field("headers", HEADERS), empty)
        return _with_column(
            batch, "headers", with_headers(batch.column("headers"), {name: framing})
        )


def _depends_on_topic(options: ValueOptions) -> bool:
    """Return whether the subject of a column depends on the topic of a row."""
    return options.framing is not Framing.NONE and subject_of(options, None, "") is None


def _guid(registry: SchemaRegistry, subject: str, schema: Schema) -> str | None:
    """Return the GUID of a schema that was registered, or ``None`` if the registry has none."""
    try:
        return registry.look_up(subject, schema).guid
    except UnknownSchemaError:
        # A replica of the registry may not have it yet.
        return None


def _version(options: ValueOptions) -> int | None:
    """Return the version whose schema the registry gives, if the options name one."""
    return LATEST if options.use_latest_version else options.schema_version


def _rows_of(batch: pa.RecordBatch, topic: object) -> Any:
    found = pc.equal(batch.column("topic"), pa.scalar(topic, batch.column("topic").type))
    return pc.indices_nonzero(found).to_numpy()


def _encode(encoder: ValueEncoder, column: Any, rows: Any, prefix: bytes) -> Any:
    if rows is None:
        return encoder.encode(column, prefix)
    try:
        return encoder.encode(column.take(pa.array(rows)), prefix)
    except UnencodableValueError as error:
        row = int(rows[error.row])
        raise UnencodableValueError(error.column, row, error.field, error.reason) from None


def _joined(parts: Sequence[Any], numbers: Sequence[Any], rows: int) -> Any:
    """Return the values of parts in the order of the batch; rows of no part are null."""
    if len(parts) == 1 and numbers[0] is None:
        return parts[0]
    if not parts:
        return pa.nulls(rows, pa.binary())
    places = np.full(rows, -1, np.int64)
    start = 0
    for part, own in zip(parts, numbers, strict=True):
        places[own] = np.arange(start, start + len(part))
        start += len(part)
    return pa.concat_arrays(parts).take(pa.array(places, mask=places < 0))


def _with_column(batch: pa.RecordBatch, name: str, column: Any) -> pa.RecordBatch:
    place = batch.schema.get_field_index(name)
    return batch.set_column(place, pa.field(name, column.type), column)
