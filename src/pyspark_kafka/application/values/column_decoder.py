"""Decoding one column of records: its framing, its values, newer schemas, and what is wrong."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol, final

import numpy as np
import pyarrow as pa

from ...domain.values.errors import FailureReason, UnknownSchemaError, describe_failure
from ...ports.clock import Deadline
from .schema_cache import REST_S, UNKNOWN_S

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from ...domain.values.registry import SubjectVersion
    from ...domain.values.typed_schema import TypedColumn
    from ...ports.values.schema_registry import SchemaRegistry
    from ...ports.values.value_format import DecodedValues, Payloads, ValueDecoder, WriterSchema


@final
class NewSchemas:
    """Asks the registry once for each schema which version of the subject it is.

    A schema that is unknown may be one of another subject, or one that this server of the registry
    does not have yet: the schema is asked for again, after pauses that double.
    """

    def __init__(self, registry: SchemaRegistry, version: SubjectVersion) -> None:
        """Take the version with which the query reads."""
        self._registry = registry
        self._version = version
        self._newer: dict[int | str, SubjectVersion | None] = {version.schema_id: None}
        self._unknown: dict[int | str, tuple[Deadline, float]] = {}

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
        schema_id = writer.schema_id
        pause, pause_s = self._unknown.get(schema_id, (None, UNKNOWN_S))
        if schema_id not in self._newer and (pause is None or pause.has_passed):
            try:
                found = self._registry.look_up(self._version.subject, writer.schema)
            except UnknownSchemaError:
                longer_s = min(2 * pause_s, REST_S)
                self._unknown[schema_id] = Deadline.after(pause_s), longer_s
            else:
                is_newer = found.version > self._version.version
                self._newer[schema_id] = found if is_newer else None
        return self._newer.get(schema_id)


class Framing(Protocol):
    """Finds the payloads of a column, and the schemas of their writers."""

    @property
    def needs_headers(self) -> bool:
        """Whether ``payloads`` needs the headers of the records."""

    def payloads(
        self, values: pa.Array[Any], headers: pa.Array[Any] | None = None, topic: str | None = None
    ) -> Payloads:
        """Return the payloads of a binary array, with the schemas of a topic."""


@final
class ColumnDecoder:
    """Decodes a column of batches; tasks of one process use it after each other."""

    def __init__(
        self,
        column: TypedColumn,
        framing: Framing,
        decoder: ValueDecoder,
        new_schemas: NewSchemas | None = None,
    ) -> None:
        """Take what finds new schemas, if they fail the query."""
        self.column = column
        self._framing = framing
        self._decoder = decoder
        self._new_schemas = new_schemas
        kind = type(decoder)
        self.decoder_class = f"{kind.__module__}.{kind.__qualname__}"

    def decode(self, batch: pa.RecordBatch, topic: str) -> DecodedColumn:
        """Return the decoded column of records of one topic.

        :raises DecodedTooLargeError: if the decoded values exceed what Arrow can address.
        :raises RegistryUnavailableError: if the registry cannot look up a schema.
        :raises RegistryRefusedError: if it refuses to.
        """
        headers = batch.column("headers") if self._framing.needs_headers else None
        payloads = self._framing.payloads(batch.column(self.column.name), headers, topic)
        decoded = self._decoder.decode(payloads)
        newer = self._new_schemas.first_of(payloads) if self._new_schemas is not None else None
        return DecodedColumn(self, payloads, decoded, self._decoder.field_names, newer)


@final
class DecodedColumn:
    """The decoded values of a batch, row for row."""

    def __init__(
        self,
        decoder: ColumnDecoder,
        payloads: Payloads,
        decoded: DecodedValues,
        field_names: tuple[str, ...],
        newer: tuple[int, SubjectVersion] | None,
    ) -> None:
        """Take the first row of a newer schema than the query's, with its version."""
        self.decoder = decoder
        self.column = decoder.column
        self.newer = newer
        self.has_failed: NDArray[np.bool_] = decoded.reasons != FailureReason.NONE
        self._payloads = payloads
        self._decoded = decoded
        self._field_names = field_names

    @property
    def reasons(self) -> NDArray[np.uint8]:
        """A ``FailureReason`` for each row."""
        return self._decoded.reasons

    def describe(self, row: int) -> str:
        """Return what is wrong with the value of a row."""
        field = int(self._decoded.fields[row])
        schema_id = self._payloads.schema_id(row)
        return describe_failure(
            FailureReason(int(self._decoded.reasons[row])),
            self._field_names[field] if field >= 0 else "",
            "" if schema_id is None else schema_id,
        )

    def descriptions(self, rows: NDArray[np.int64]) -> pa.Array[Any]:
        """Return what is wrong with the values of rows."""
        if not len(rows):
            return pa.array([], pa.string())
        # One number for each failure, since `unique` of several columns compares byte by byte.
        failures = self._decoded.fields[rows].astype(np.int64) << 32
        failures += self._payloads.writers[rows]
        failures = failures * len(FailureReason) + self._decoded.reasons[rows]
        _, first, numbers = np.unique(failures, return_index=True, return_inverse=True)
        texts = [self.describe(int(rows[at])) for at in first]
        return pa.array(texts, pa.string()).take(numbers.ravel())

    def structs(self) -> pa.Array[Any]:
        """Return the column, with the text of corrupt records if a field is for that."""
        if self.column.corrupt_record not in self.column.data_type.names:
            return self._decoded.column
        arrays = self.fields()
        names = self.column.data_type.names
        members = [pa.field(name, each.type) for name, each in zip(names, arrays, strict=True)]
        # A struct that is null would hide its text.
        is_null = self._decoded.column.is_null().to_numpy(zero_copy_only=False)
        mask = pa.array(is_null & ~self.has_failed)
        return pa.StructArray.from_arrays(arrays, fields=members, mask=mask)

    def fields(self) -> list[pa.Array[Any]]:
        """Return the fields of the column; they are null where the struct is."""
        structs: Any = self._decoded.column
        decoded = iter(structs.flatten())
        corrupt = self.column.corrupt_record
        return [
            self._of_failed(self._texts) if name == corrupt else next(decoded)
            for name in self.column.data_type.names
        ]

    def errors(self) -> pa.Array[Any]:
        """Return what is wrong with each value, null where nothing is."""
        return self._of_failed(self.descriptions)

    def failed_bytes(self) -> pa.Array[Any]:
        """Return the bytes of values that could not be decoded, null for the others."""
        return self._of_failed(self._payloads.values.take)

    def _of_failed(self, values_of: Callable[[NDArray[np.int64]], pa.Array[Any]]) -> pa.Array[Any]:
        """Return an array that has the values of rows that failed, and null elsewhere."""
        rows = np.flatnonzero(self.has_failed)
        numbers = np.full(len(self.has_failed), -1, np.int64)
        numbers[rows] = np.arange(len(rows))
        places: Any = pa.array(numbers, mask=numbers < 0)
        return values_of(rows).take(places)

    def _texts(self, rows: NDArray[np.int64]) -> pa.Array[Any]:
        """Return the payloads of rows as texts; bytes that are not UTF-8 are replaced."""
        payloads = [self._payload(int(row)) for row in rows]
        with suppress(pa.ArrowInvalid):
            return pa.array(payloads, pa.binary()).cast(pa.string())
        texts = [each.decode(errors="replace") if each is not None else None for each in payloads]
        return pa.array(texts, pa.string())

    def _payload(self, row: int) -> bytes | None:
        start, end = int(self._payloads.starts[row]), int(self._payloads.ends[row])
        data = self._payloads.values.buffers()[2]
        return None if start < 0 or data is None else data.slice(start, end - start).to_pybytes()
