"""The Spark type of a message, by the rules of Spark's ``SchemaConverters``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from ...domain.values.data_types import STRING, ArrayType, MapType, StructField, StructType
from .descriptors import InvalidDescriptorError
from .field_shapes import Shape, inner_message, is_repeated, shape_of, value_type

if TYPE_CHECKING:
    from collections.abc import Mapping

    from google.protobuf.descriptor import Descriptor, FieldDescriptor

    from ...domain.values.data_types import DataType
    from .settings import ProtobufSettings

MAX_FIELDS: Final = 10_000
"""The fields of a type, nested ones included: messages that have two fields of the next one grow
exponentially."""

MAX_DEPTH: Final = 100
"""The nesting of messages, as Protobuf's parsers bound it."""

DUMMY: Final = "__dummy_field_in_empty_struct"
"""The field of empty structs with ``retain.empty.message.types``."""


def message_type(message: Descriptor, settings: ProtobufSettings) -> StructType:
    """Return the type of a message.

    :raises InvalidDescriptorError: if it is recursive and ``max_recursion`` is 0, or too large.
    """
    return _Converter(settings).root(message)


@final
class _Converter:
    def __init__(self, settings: ProtobufSettings) -> None:
        self._settings = settings
        self._fields = 0

    def root(self, message: Descriptor) -> StructType:
        struct = self._struct(message, {message.full_name: 1}, 1)
        return struct or StructType(())

    def _struct(
        self, message: Descriptor, depths: Mapping[str, int], depth: int
    ) -> StructType | None:
        """Return the type, or ``None`` for a message without fields, which Spark drops."""
        if depth > MAX_DEPTH:
            raise InvalidDescriptorError(f"its messages are nested more than {MAX_DEPTH} deep")
        fields = []
        for field in message.fields:
            kind = self._field(field, depths, depth)
            if kind is not None:
                fields.append(StructField(field.name, kind))
        if not fields and self._settings.retain_empty:
            fields.append(StructField(DUMMY, STRING))
        return StructType(tuple(fields)) if fields else None

    def _field(
        self, field: FieldDescriptor, depths: Mapping[str, int], depth: int
    ) -> DataType | None:
        self._fields += 1
        if self._fields > MAX_FIELDS:
            raise InvalidDescriptorError(f"it has more than {MAX_FIELDS} fields")
        shape = shape_of(field, self._settings)
        if shape is Shape.MAP:
            return self._map(field, depths, depth)
        kind: DataType | None = (
            self._message(field, depths, depth)
            if shape is Shape.MESSAGE
            else value_type(field, shape, self._settings)
        )
        return ArrayType(kind) if kind is not None and is_repeated(field) else kind

    def _map(
        self, field: FieldDescriptor, depths: Mapping[str, int], depth: int
    ) -> DataType | None:
        entry = inner_message(field).fields_by_name
        key = self._field(entry["key"], depths, depth)
        value = self._field(entry["value"], depths, depth)
        return None if key is None or value is None else MapType(key, value)

    def _message(
        self, field: FieldDescriptor, depths: Mapping[str, int], depth: int
    ) -> DataType | None:
        name = inner_message(field).full_name
        times = depths.get(name, 0)
        limit = self._settings.max_recursion
        if times and not limit:
            raise InvalidDescriptorError(
                f"the field '{field.full_name}' is recursive; set the option "
                "'recursive.fields.max.depth' to 1 to drop such fields, or to more"
            )
        if times and times >= limit:
            return None
        return self._struct(inner_message(field), {**depths, name: times + 1}, depth + 1)
