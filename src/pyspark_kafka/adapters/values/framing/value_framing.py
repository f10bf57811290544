"""Finding the payloads of a batch and their writers' schemas."""

from __future__ import annotations

import ctypes
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
import pyarrow as pa

from ....domain.options.option import INT32_MAX
from ....domain.values.errors import FailureReason, UnknownSchemaError
from ....domain.values.registry import SchemaType
from ....domain.values.value_options import Framing, writer_subject
from ....ports.record_schema import HEADERS
from ....ports.values.value_format import Payloads, WriterSchema
from .apicurio_ids import find_apicurio_ids, find_messages
from .framing_kernel import BEFORE_PAYLOAD, IN_HEADER, NO_FRAMING, find_payloads
from .wire_format import header_name, parse_framing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ....domain.values.registry import Schema
    from ....domain.values.value_options import ValueOptions
    from ....ports.values.schema_registry import SchemaRegistry
    from ...kernels.arrays import Int32Array

_MODES: Final = {
    Framing.NONE: NO_FRAMING,
    Framing.CONFLUENT: BEFORE_PAYLOAD,
    Framing.CONFLUENT_HEADER: IN_HEADER,
}
_PROTOBUF: Final = "protobuf"

MAX_LOOK_UPS: Final = 8
"""The requests to the registry at the same time."""

_NO_HEADERS: Final[pa.Array[Any]] = pa.array([], HEADERS)


@final
@dataclass(frozen=True, slots=True)
class _Named:
    """The schema that a framing names and, of Protobuf, the message in it."""

    schema_id: int | str
    indexes: tuple[int, ...]
    message: str | None = None
    is_global: bool = False

    @property
    def shown_id(self) -> int | str:
        return f"{self.schema_id} (globalId)" if self.is_global else self.schema_id


@final
class ValueFraming:
    """Finds payloads by the options of a column; any thread may use it.

    Without a registry, ids are skipped, and payloads have no writer's schema.
    """

    def __init__(self, options: ValueOptions, registry: SchemaRegistry | None = None) -> None:
        """Take the options of a column, and a registry that caches its results."""
        self._options = options
        self._mode = _MODES.get(options.framing, NO_FRAMING)
        self._has_indexes = options.format == _PROTOBUF
        self._header: pa.Buffer = pa.py_buffer(header_name(options.column).encode())
        self._registry = registry
        self._schema_type = SchemaType.__members__.get(options.format.upper(), SchemaType.AVRO)

    @property
    def needs_headers(self) -> bool:
        """Whether ``payloads`` needs the headers of the records."""
        return self._options.framing.uses_headers

    def payloads(
        self, values: pa.Array[Any], headers: pa.Array[Any] | None = None, topic: str | None = None
    ) -> Payloads:
        """Return the payloads of a binary array, with the schemas of a topic.

        :raises RegistryUnavailableError: if the registry cannot look up an id.
        :raises RegistryRefusedError: if it refuses the look-up.
        """
        if headers is None:
            if self.needs_headers and len(values):
                raise ValueError("this framing needs the headers of the records")
            headers = _NO_HEADERS
        if self._options.framing.is_apicurios:
            return self._apicurio_payloads(values, headers, topic)
        rows = len(values)
        starts, ends = np.empty(rows, np.int64), np.empty(rows, np.int64)
        reasons, writers = np.empty(rows, np.uint8), np.empty(rows, np.int32)
        # Zeroed memory costs nothing until a kernel touches it.
        slots = np.zeros(1 << (2 * rows).bit_length(), np.int32)
        framings = np.empty((rows, 2), np.int64)
        count = find_payloads(
            (*_bits(values), _address(values.buffers()[2])),
            self._header_addresses(headers),
            (self._mode, int(self._has_indexes)),
            (slots.ctypes.data, slots.size - 1, framings.ctypes.data),
            starts,
            ends,
            reasons,
            writers,
        )
        if self._registry is None:
            writers.fill(-1)
            return Payloads(values, starts, ends, reasons, writers)
        named = [
            _Named(*parse_framing(ctypes.string_at(*one))) for one in framings[:count].tolist()
        ]
        schemas, unknown_ids, numbers = self._look_up(self._registry, named, topic)
        if unknown_ids:
            writers = numbers[writers]
            reasons[writers < -1] = FailureReason.UNKNOWN_SCHEMA
        return Payloads(values, starts, ends, reasons, writers, schemas, unknown_ids)

    def _apicurio_payloads(
        self, values: pa.Array[Any], headers: pa.Array[Any], topic: str | None
    ) -> Payloads:
        column, is_global = self._options.column, self._options.framing is Framing.APICURIO_GLOBAL
        found = find_apicurio_ids(values, headers, column, are_global=is_global)
        writers, reasons = np.full(len(values), -1, np.int32), np.zeros(len(values), np.uint8)
        messages, names = writers, tuple[str, ...]()
        if self._has_indexes:
            found, messages, names = find_messages(values, headers, column, found)
        if self._registry is None:
            return Payloads(values, found.starts, found.ends, reasons, writers)
        is_valid, has_id = found.starts >= 0, found.ids >= 0
        is_named = is_valid & has_id & ((messages >= 0) | (not self._has_indexes))
        ids, are_global = found.ids[is_named], found.are_global[is_named]
        messages = messages[is_named] + 1
        _, keys = np.unique(ids, return_inverse=True)
        keys = (2 * keys + are_global) * (len(names) + 1) + messages
        _, firsts, places = np.unique(keys, return_index=True, return_inverse=True)
        named = [
            _Named(number, (), (None, *names)[message], is_global=is_global)
            for number, message, is_global in zip(
                *(one[firsts].tolist() for one in (ids, messages, are_global)), strict=True
            )
        ]
        schemas, unknown_ids, numbers = self._look_up(self._registry, named, topic)
        writers[is_named] = numbers[places]
        reasons[is_valid & ~is_named] = FailureReason.UNKNOWN_MESSAGE
        reasons[is_valid & ~has_id] = FailureReason.NO_FRAMING
        reasons[writers < -1] = FailureReason.UNKNOWN_SCHEMA
        return Payloads(values, found.starts, found.ends, reasons, writers, schemas, unknown_ids)

    def _header_addresses(self, headers: pa.Array[Any]) -> tuple[int, ...]:
        pairs: Any = headers.values  # type: ignore[attr-defined]  # it is a list array
        keys, values = pairs.field(0), pairs.field(1)
        key_offsets, _, _ = _bits(keys)
        name = self._header.address, self._header.size
        found = _address(keys.buffers()[2]), *_bits(values), _address(values.buffers()[2])
        return (*_bits(headers), *name, key_offsets, *found)

    def _look_up(
        self,
        registry: SchemaRegistry,
        named: Sequence[_Named],
        topic: str | None,
    ) -> tuple[tuple[WriterSchema, ...], tuple[int | str, ...], Int32Array]:
        """Return the schemas of framings, the ids of others, and the entries of ``writers``."""
        subject = writer_subject(self._options, topic)
        schemas: list[WriterSchema] = []
        unknown_ids: list[int | str] = []
        # The last number is for values without framing.
        numbers = np.full(len(named) + 1, -1, np.int32)
        found = self._known_schemas(registry, named, subject)
        for number, (one, schema) in enumerate(zip(named, found, strict=True)):
            if schema is None:
                unknown_ids.append(one.shown_id)
                numbers[number] = -1 - len(unknown_ids)
            else:
                numbers[number] = len(schemas)
                schemas.append(WriterSchema(one.shown_id, schema, one.indexes, one.message))
        return tuple(schemas), tuple(unknown_ids), numbers

    def _known_schemas(
        self, registry: SchemaRegistry, named: Sequence[_Named], subject: str | None
    ) -> list[Schema | None]:
        """Return schemas, or ``None`` for those that the registry lacks.

        If one schema is unknown, more may be: values without framing look as if each had an id.
        """
        found: list[Schema | None] = []
        for one in named:
            found.append(self._known_schema(registry, one, subject))
            if found[-1] is None:
                break
        rest = named[len(found) :]
        if not rest:
            return found
        with ThreadPoolExecutor(MAX_LOOK_UPS) as pool:
            found += pool.map(lambda one: self._known_schema(registry, one, subject), rest)
        return found

    def _known_schema(
        self, registry: SchemaRegistry, named: _Named, subject: str | None
    ) -> Schema | None:
        try:
            if isinstance(named.schema_id, str):
                return registry.by_guid(named.schema_id, subject)
            if named.is_global:
                return registry.by_global_id(named.schema_id, self._schema_type)
            # Registries number schemas by Java's int.
            return (
                registry.by_id(named.schema_id, subject) if named.schema_id <= INT32_MAX else None
            )
        except UnknownSchemaError:
            return None


def _bits(array: pa.Array[Any]) -> tuple[int, int, int]:
    """Return the addresses of the offsets and of the validity, and the first bit of that."""
    validity, offsets = array.buffers()[:2]
    return _address(offsets) + 4 * array.offset, _address(validity), array.offset


def _address(buffer: pa.Buffer | None) -> int:
    return 0 if buffer is None else buffer.address
