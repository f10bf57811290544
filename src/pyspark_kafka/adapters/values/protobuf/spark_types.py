"""The Spark types of messages and fields, by the options of ``from_protobuf``."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, cast, final

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import FeatureSet

from ....domain.errors import OptionsError
from ....domain.values import data_types as types
from ....domain.values.data_types import STRING, ArrayType, MapType, StructField, StructType
from . import program_layout as at
from . import wire_kernel as wire
from .invalid_descriptor import InvalidDescriptorError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from google.protobuf.descriptor import Descriptor, FieldDescriptor

    from ....domain.values.data_types import DataType
    from ....domain.values.value_options import ValueOptions

MAX_RECURSION: Final = 10
"""The greatest ``recursive.fields.max.depth`` (``SchemaConverters``)."""

_FLAGS: Final[Mapping[str, str]] = {
    "emit.default.values": "emit_defaults",
    "enums.as.ints": "enums_as_ints",
    "upcast.unsigned.ints": "upcast_unsigned",
    "unwrap.primitive.wrapper.types": "unwrap_wrappers",
    "retain.empty.message.types": "retain_empty",
    "convert.any.fields.to.json": "any_as_json",
}
_DEPTH: Final = "recursive.fields.max.depth"


@final
@dataclass(frozen=True, slots=True)
class ProtobufSettings:
    """The settings of structs for messages; ``max_recursion`` is 0 where recursion is refused."""

    emit_defaults: bool = False
    enums_as_ints: bool = False
    upcast_unsigned: bool = False
    unwrap_wrappers: bool = False
    retain_empty: bool = False
    any_as_json: bool = False
    max_recursion: int = 0


def protobuf_settings(options: ValueOptions) -> ProtobufSettings:
    """Return the settings of a column's options.

    :raises OptionsError: if the depth is not one.
    """
    settings = dict(options.settings)
    flags = {field: settings.get(name, "").lower() == "true" for name, field in _FLAGS.items()}
    return ProtobufSettings(**flags, max_recursion=_depth(settings.get(_DEPTH, "0")))


def _depth(text: str) -> int:
    try:
        depth = int(text)
    except ValueError:
        depth = MAX_RECURSION + 1
    if depth > MAX_RECURSION:
        raise OptionsError(
            [f"The option '{_DEPTH}' is a number up to {MAX_RECURSION}, got '{text}'."]
        )
    return max(depth, 0)


class FieldKind(NamedTuple):
    """The encoding of a type's fields on the wire, and their Spark type.

    Types of one encoding can be read as each other (Protobuf's rules on updating a message). The
    type is of one value, or of the name of an enum's; messages have none.
    """

    wire: int
    encoding: str
    spark: types.AtomicType = types.STRING
    convert: int = at.AS_IS


_F: Final = FieldDescriptor
FIELD_KINDS: Final[Mapping[int, FieldKind]] = {
    _F.TYPE_DOUBLE: FieldKind(wire.FIXED_64, "double", types.DOUBLE),
    _F.TYPE_FLOAT: FieldKind(wire.FIXED_32, "float", types.FLOAT),
    _F.TYPE_INT64: FieldKind(wire.VARINT, "varint", types.LONG),
    _F.TYPE_UINT64: FieldKind(wire.VARINT, "varint", types.LONG),
    _F.TYPE_INT32: FieldKind(wire.VARINT, "varint", types.INTEGER, at.LOW_32),
    _F.TYPE_UINT32: FieldKind(wire.VARINT, "varint", types.INTEGER, at.LOW_32),
    _F.TYPE_BOOL: FieldKind(wire.VARINT, "varint", types.BOOLEAN, at.TRUTH),
    _F.TYPE_ENUM: FieldKind(wire.VARINT, "varint"),
    _F.TYPE_SINT32: FieldKind(wire.VARINT, "zigzag", types.INTEGER, at.ZIGZAG_32),
    _F.TYPE_SINT64: FieldKind(wire.VARINT, "zigzag", types.LONG, at.ZIGZAG_64),
    _F.TYPE_FIXED32: FieldKind(wire.FIXED_32, "fixed32", types.INTEGER),
    _F.TYPE_SFIXED32: FieldKind(wire.FIXED_32, "fixed32", types.INTEGER),
    _F.TYPE_FIXED64: FieldKind(wire.FIXED_64, "fixed64", types.LONG),
    _F.TYPE_SFIXED64: FieldKind(wire.FIXED_64, "fixed64", types.LONG),
    _F.TYPE_STRING: FieldKind(wire.SIZED, "bytes", types.STRING),
    _F.TYPE_BYTES: FieldKind(wire.SIZED, "bytes", types.BINARY),
    _F.TYPE_MESSAGE: FieldKind(wire.SIZED, "message"),
    _F.TYPE_GROUP: FieldKind(wire.GROUP, "group"),
}


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
        return bool(is_asked_for and FIELD_KINDS[field.type].wire not in {wire.SIZED, wire.GROUP})


def is_map(field: FieldDescriptor) -> bool:
    """Return whether a field is a map."""
    message = field.message_type
    return message is not None and is_repeated(field) and is_map_entry(message)


def is_map_entry(message: Descriptor) -> bool:
    """Return whether a message is the type of the entries of a map."""
    return bool(message.GetOptions().map_entry)


def atom_type(field: FieldDescriptor, settings: ProtobufSettings) -> DataType:
    """Return the type of a field that is not a message, or of one value of a repeated one."""
    if field.type == FieldDescriptor.TYPE_ENUM and settings.enums_as_ints:
        return types.INTEGER
    if settings.upcast_unsigned and field.type == FieldDescriptor.TYPE_UINT32:
        return types.LONG
    if settings.upcast_unsigned and field.type == FieldDescriptor.TYPE_UINT64:
        return UINT64
    return FIELD_KINDS[field.type].spark


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


MAX_FIELDS: Final = 10_000
"""The most fields of a type, with nested ones: messages with two fields of the next message grow
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
