"""Whether values of a writer's schema can be read as the query's message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

import numpy as np
from google.protobuf.descriptor import FieldDescriptor

from ...domain.values.data_types import ArrayType, MapType, StructField, StructType
from ...domain.values.failure_reason import FailureReason
from ...domain.values.registered_schema import SchemaType
from .descriptors import InvalidDescriptorError
from .field_shapes import inner_message, is_map
from .proto_compiler import compiled_messages

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt
    from google.protobuf.descriptor import Descriptor

    from ...domain.values.data_types import DataType
    from ...ports.value_decoder import Payloads, WriterSchema

MAX_WRITERS: Final = 1_000
"""The writer schemas whose result is kept."""

_F: Final = FieldDescriptor
_ENCODINGS: Final[Mapping[int, str]] = {
    _F.TYPE_INT32: "varint",
    _F.TYPE_INT64: "varint",
    _F.TYPE_UINT32: "varint",
    _F.TYPE_UINT64: "varint",
    _F.TYPE_BOOL: "varint",
    _F.TYPE_ENUM: "varint",
    _F.TYPE_SINT32: "zigzag",
    _F.TYPE_SINT64: "zigzag",
    _F.TYPE_FIXED32: "fixed32",
    _F.TYPE_SFIXED32: "fixed32",
    _F.TYPE_FIXED64: "fixed64",
    _F.TYPE_SFIXED64: "fixed64",
    _F.TYPE_FLOAT: "float",
    _F.TYPE_DOUBLE: "double",
    _F.TYPE_STRING: "bytes",
    _F.TYPE_BYTES: "bytes",
    _F.TYPE_MESSAGE: "message",
    _F.TYPE_GROUP: "group",
}
"""Types of one encoding can be read as each other (Protobuf's rules on updating a message)."""


@final
class WriterChecks:
    """The failure reasons of writer schemas, of which each is looked at once."""

    def __init__(self, message: Descriptor, data_type: StructType) -> None:
        self._message = message
        self._data_type = data_type
        self._known: dict[WriterSchema, FailureReason] = {}

    def checked(self, payloads: Payloads) -> npt.NDArray[np.uint8]:
        """Return the reasons of payloads, with those of their writers' schemas."""
        reasons = payloads.reasons.copy()
        of_writers = np.array([self._reason(one) for one in payloads.schemas], np.uint8)
        if of_writers.any():
            chosen = (reasons == FailureReason.NONE) & (payloads.writers >= 0)
            reasons[chosen] = of_writers[payloads.writers[chosen]]
        return reasons

    def _reason(self, writer: WriterSchema) -> FailureReason:
        if writer not in self._known:
            if len(self._known) >= MAX_WRITERS:
                self._known.clear()
            self._known[writer] = self._check(writer)
        return self._known[writer]

    def _check(self, writer: WriterSchema) -> FailureReason:
        if writer.schema.type is not SchemaType.PROTOBUF:
            return FailureReason.INCOMPATIBLE_SCHEMA
        try:
            message = compiled_messages(writer.schema).at(writer.message_indexes)
        except InvalidDescriptorError:
            return FailureReason.INCOMPATIBLE_SCHEMA
        if message is None:
            return FailureReason.UNKNOWN_MESSAGE
        if message.full_name != self._message.full_name:
            return FailureReason.INCOMPATIBLE_SCHEMA
        is_readable = can_read(self._message, message, self._data_type)
        return FailureReason.NONE if is_readable else FailureReason.INCOMPATIBLE_SCHEMA


def can_read(reader: Descriptor, writer: Descriptor, wanted: StructType) -> bool:
    """Return whether all wanted fields that the writer has are encoded as the reader expects."""
    # Names are compared as in the program: without case.
    types = {one.name.lower(): one.type for one in wanted.fields}
    for field in reader.fields:
        kind = types.get(field.name.lower())
        other = writer.fields_by_number.get(field.number)
        if kind is not None and other is not None and not _can_read_field(field, other, kind):
            return False
    return True


def _can_read_field(reader: FieldDescriptor, writer: FieldDescriptor, wanted: DataType) -> bool:
    encodings = {_ENCODINGS[reader.type], _ENCODINGS[writer.type]}
    if encodings == {"message", "bytes"}:
        return True
    if len(encodings) > 1:
        return False
    if reader.message_type is None:
        return True
    entry_or_struct = _struct_of(reader, wanted)
    return entry_or_struct is None or can_read(
        inner_message(reader), inner_message(writer), entry_or_struct
    )


def _struct_of(field: FieldDescriptor, wanted: DataType) -> StructType | None:
    """Return the wanted fields of a message, or ``None`` where it is wanted as one value."""
    if is_map(field) and isinstance(wanted, MapType):
        return StructType((StructField("key", wanted.key), StructField("value", wanted.value)))
    if isinstance(wanted, ArrayType):
        wanted = wanted.element
    return wanted if isinstance(wanted, StructType) else None
