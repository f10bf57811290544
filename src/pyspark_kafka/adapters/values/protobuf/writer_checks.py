"""Whether values of a writer's schema can be read as the query's message."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

import numpy as np
from google.protobuf.descriptor import FieldDescriptor

from ....domain.values.data_types import ArrayType, MapType, StructField, StructType
from ....domain.values.errors import FailureReason
from ....domain.values.registry import SchemaType
from .invalid_descriptor import InvalidDescriptorError
from .schemas import compiled_messages
from .spark_types import FIELD_KINDS, inner_message, is_map

if TYPE_CHECKING:
    from collections.abc import Sequence

    from google.protobuf.descriptor import Descriptor

    from ....ports.values.value_format import Payloads, WriterSchema
    from ...kernels.arrays import Int32Array, UInt8Array

MAX_WRITERS: Final = 1_000
"""The writer schemas whose result is kept."""


@final
@dataclass(frozen=True, slots=True)
class WriterCheck:
    """Why values of a writer cannot be read, and the field that is the cause, if it is one."""

    reason: FailureReason = FailureReason.NONE
    field: str | None = None


@final
class WriterChecks:
    """Checks the schemas of writers, each of them once."""

    def __init__(self, message: Descriptor, data_type: StructType, names: Sequence[str]) -> None:
        self._message = message
        self._data_type = data_type
        self._numbers = {name: number for number, name in enumerate(names)}
        self._known: dict[WriterSchema, WriterCheck] = {}

    def checked(self, payloads: Payloads) -> tuple[UInt8Array, Int32Array]:
        """Return the reasons of payloads with those of their writers, and the fields' numbers.

        A number is an index of the names that were given, or -1.
        """
        reasons, fields = payloads.reasons.copy(), np.full(len(payloads.starts), -1, np.int32)
        checks = [self._check_of(one) for one in payloads.schemas]
        if any(one.reason for one in checks):
            of_writers = np.array([one.reason for one in checks], np.uint8)
            numbers = np.array([self._numbers.get(one.field or "", -1) for one in checks], np.int32)
            chosen = (reasons == FailureReason.NONE) & (payloads.writers >= 0)
            writers = payloads.writers[chosen]
            reasons[chosen], fields[chosen] = of_writers[writers], numbers[writers]
        return reasons, fields

    def _check_of(self, writer: WriterSchema) -> WriterCheck:
        if writer not in self._known:
            if len(self._known) >= MAX_WRITERS:
                self._known.clear()
            self._known[writer] = self._check(writer)
        return self._known[writer]

    def _check(self, writer: WriterSchema) -> WriterCheck:
        if writer.schema.type is not SchemaType.PROTOBUF:
            return WriterCheck(FailureReason.INCOMPATIBLE_SCHEMA)
        try:
            messages = compiled_messages(writer.schema)
        except InvalidDescriptorError:
            return WriterCheck(FailureReason.INCOMPATIBLE_SCHEMA)
        if writer.message_name is None:
            message = messages.at(writer.message_indexes, self._message.full_name)
        else:
            message = messages.outermost(writer.message_name)
        if message is None:
            return WriterCheck(FailureReason.UNKNOWN_MESSAGE)
        if message.full_name != self._message.full_name:
            return WriterCheck(FailureReason.INCOMPATIBLE_SCHEMA)
        field = unreadable_field(self._message, message, self._data_type)
        if field is not None:
            return WriterCheck(FailureReason.INCOMPATIBLE_SCHEMA, field)
        return WriterCheck()


def unreadable_field(reader: Descriptor, writer: Descriptor, wanted: StructType) -> str | None:
    """Return the first wanted field that the writer encodes otherwise, or ``None``.

    A field in a message is ``outer.inner``, and ``outer.element.inner`` in a repeated one.
    """
    # Names are compared as in the program: without case.
    wanted_fields = {one.name.lower(): one for one in wanted.fields}
    for field in reader.fields:
        one = wanted_fields.get(field.name.lower())
        other = writer.fields_by_number.get(field.number)
        if one is not None and other is not None:
            found = _unreadable(field, other, one)
            if found is not None:
                return found
    return None


def _unreadable(
    reader: FieldDescriptor, writer: FieldDescriptor, wanted: StructField
) -> str | None:
    encodings = {FIELD_KINDS[one.type].encoding for one in (reader, writer)}
    if encodings == {"message", "bytes"}:
        return None
    if len(encodings) > 1:
        return wanted.name
    if reader.message_type is None:
        return None
    path, struct = _struct_of(reader, wanted)
    if struct is None:
        return None
    inner = unreadable_field(inner_message(reader), inner_message(writer), struct)
    return None if inner is None else f"{path}.{inner}"


def _struct_of(field: FieldDescriptor, wanted: StructField) -> tuple[str, StructType | None]:
    """Return the wanted fields of a message, or ``None`` where it is wanted as one value."""
    path, kind = wanted.name, wanted.type
    if is_map(field) and isinstance(kind, MapType):
        return path, StructType((StructField("key", kind.key), StructField("value", kind.value)))
    if isinstance(kind, ArrayType):
        path, kind = f"{path}.element", kind.element
    return path, kind if isinstance(kind, StructType) else None
