"""What Spark makes of a field: the distinctions of its ``SchemaConverters``."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Final, cast

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import FeatureSet

from ...domain.values import data_types as types

if TYPE_CHECKING:
    from collections.abc import Mapping

    from google.protobuf.descriptor import Descriptor

    from ...domain.values.data_types import DataType
    from .settings import ProtobufSettings

_NEVER_PACKED: Final = frozenset(
    {
        FieldDescriptor.TYPE_STRING,
        FieldDescriptor.TYPE_BYTES,
        FieldDescriptor.TYPE_MESSAGE,
        FieldDescriptor.TYPE_GROUP,
    }
)


class Shape(enum.Enum):
    """The shapes of a field, or of the elements of a repeated one."""

    ATOM = enum.auto()
    ENUM = enum.auto()
    TIMESTAMP = enum.auto()
    DURATION = enum.auto()
    WRAPPER = enum.auto()
    ANY = enum.auto()
    """An ``Any`` that becomes JSON."""
    MAP = enum.auto()
    MESSAGE = enum.auto()


UINT64: Final = types.DecimalType(20, 0)
"""The type of unsigned 64-bit numbers with ``upcast.unsigned.ints``."""

_ATOMS: Final[Mapping[int, types.AtomicType]] = {
    FieldDescriptor.TYPE_DOUBLE: types.DOUBLE,
    FieldDescriptor.TYPE_FLOAT: types.FLOAT,
    FieldDescriptor.TYPE_INT64: types.LONG,
    FieldDescriptor.TYPE_UINT64: types.LONG,
    FieldDescriptor.TYPE_INT32: types.INTEGER,
    FieldDescriptor.TYPE_FIXED64: types.LONG,
    FieldDescriptor.TYPE_FIXED32: types.INTEGER,
    FieldDescriptor.TYPE_BOOL: types.BOOLEAN,
    FieldDescriptor.TYPE_STRING: types.STRING,
    FieldDescriptor.TYPE_BYTES: types.BINARY,
    FieldDescriptor.TYPE_UINT32: types.INTEGER,
    FieldDescriptor.TYPE_SFIXED32: types.INTEGER,
    FieldDescriptor.TYPE_SFIXED64: types.LONG,
    FieldDescriptor.TYPE_SINT32: types.INTEGER,
    FieldDescriptor.TYPE_SINT64: types.LONG,
}
_WRAPPERS: Final = frozenset(
    f"google.protobuf.{name}Value"
    for name in ("Bool", "Int32", "UInt32", "Int64", "UInt64", "String", "Bytes", "Float", "Double")
)
_TIMES: Final = {"Timestamp": Shape.TIMESTAMP, "Duration": Shape.DURATION}
_TIME_FIELDS: Final = [
    ("seconds", FieldDescriptor.TYPE_INT64),
    ("nanos", FieldDescriptor.TYPE_INT32),
]


def shape_of(field: FieldDescriptor, settings: ProtobufSettings) -> Shape:
    """Return the shape of a field."""
    if field.type == FieldDescriptor.TYPE_ENUM:
        return Shape.ENUM
    message = field.message_type
    if message is None:
        return Shape.ATOM
    # Any message of these names is one, whatever its package. Spark does not look at the types of
    # its fields, and fails at each record if they are others.
    if message.name in _TIMES and [(one.name, one.type) for one in message.fields] == _TIME_FIELDS:
        return _TIMES[message.name]
    if (
        settings.any_as_json
        and message.full_name == "google.protobuf.Any"
        and field.type == FieldDescriptor.TYPE_MESSAGE
    ):
        return Shape.ANY
    if settings.unwrap_wrappers and message.full_name in _WRAPPERS and len(message.fields) == 1:
        return Shape.WRAPPER
    return Shape.MAP if is_map(field) else Shape.MESSAGE


def inner_message(field: FieldDescriptor) -> Descriptor:
    """Return the message that a field has as its type."""
    return cast("Descriptor", field.message_type)


def is_repeated(field: FieldDescriptor) -> bool:
    """Return whether a field is a list or a map."""
    try:
        return field.is_repeated
    except AttributeError:  # protobuf before 6.31
        return bool(field.label == FieldDescriptor.LABEL_REPEATED)  # type: ignore[attr-defined]


def is_required(field: FieldDescriptor) -> bool:
    """Return whether a message without the field is malformed."""
    try:
        return field.is_required
    except AttributeError:  # as above
        return bool(field.label == FieldDescriptor.LABEL_REQUIRED)  # type: ignore[attr-defined]


def is_packed(field: FieldDescriptor) -> bool:
    """Return whether the values of a list stand in one field on the wire."""
    try:
        return field.is_packed
    except AttributeError:  # as above
        features = field._GetFeatures()  # type: ignore[attr-defined]  # noqa: SLF001
        is_asked_for = features.repeated_field_encoding == FeatureSet.PACKED
        return bool(is_asked_for and field.type not in _NEVER_PACKED)


def is_map(field: FieldDescriptor) -> bool:
    """Return whether a field is a map."""
    message = field.message_type
    return bool(is_repeated(field) and message is not None and message.GetOptions().map_entry)


def atom_type(field: FieldDescriptor, settings: ProtobufSettings) -> DataType:
    """Return the type of a field that is not a message, or of one value of a repeated one."""
    if field.type == FieldDescriptor.TYPE_ENUM:
        return types.INTEGER if settings.enums_as_ints else types.STRING
    if settings.upcast_unsigned and field.type == FieldDescriptor.TYPE_UINT32:
        return types.LONG
    if settings.upcast_unsigned and field.type == FieldDescriptor.TYPE_UINT64:
        return UINT64
    return _ATOMS[field.type]


def value_type(field: FieldDescriptor, shape: Shape, settings: ProtobufSettings) -> DataType:
    """Return the type of one value of a field that is neither a map nor a struct."""
    if shape is Shape.TIMESTAMP:
        return types.TIMESTAMP
    if shape is Shape.DURATION:
        return types.DAY_TIME_INTERVAL
    if shape is Shape.ANY:
        return types.STRING
    if shape is Shape.WRAPPER:
        return atom_type(inner_message(field).fields[0], settings)
    return atom_type(field, settings)
