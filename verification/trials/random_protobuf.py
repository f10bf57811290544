"""Random Protobuf schemas, and what they become when they evolve."""

from random import Random
from typing import Final

from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
)

from pyspark_kafka.adapters.values.protobuf.schemas import Messages

_F = FieldDescriptorProto
_KEYS: Final = (
    *(_F.TYPE_INT64, _F.TYPE_UINT64, _F.TYPE_INT32, _F.TYPE_FIXED64, _F.TYPE_FIXED32),
    *(_F.TYPE_BOOL, _F.TYPE_STRING, _F.TYPE_UINT32, _F.TYPE_SFIXED32, _F.TYPE_SFIXED64),
    *(_F.TYPE_SINT32, _F.TYPE_SINT64),
)
_SCALARS: Final = (*_KEYS, _F.TYPE_DOUBLE, _F.TYPE_FLOAT, _F.TYPE_BYTES)
_UNPACKED: Final = frozenset({_F.TYPE_STRING, _F.TYPE_BYTES, _F.TYPE_MESSAGE})
_KNOWN: Final = (
    ".google.protobuf.Timestamp",
    ".google.protobuf.Duration",
    ".google.protobuf.Int64Value",
    ".google.protobuf.StringValue",
)
_IMPORTS: Final = (
    "google/protobuf/timestamp.proto",
    "google/protobuf/duration.proto",
    "google/protobuf/wrappers.proto",
)
_ENUMS: Final = (
    {"A": 0, "B": 1, "C": 2},
    {"A": 0, "N": -3, "BIG": 2**31 - 1},
    {"A": 0, "Z": 100, "Y": 7},
)
_DEFAULTS: Final = {
    _F.TYPE_STRING: "dé",
    _F.TYPE_BYTES: "\\000x",
    _F.TYPE_BOOL: "true",
    _F.TYPE_ENUM: "A",
    _F.TYPE_DOUBLE: "nan",
    _F.TYPE_FLOAT: "-inf",
}
_PLACES: Final = ("one", "one", "one", "optional", "repeated", "repeated", "map", "oneof")


class RandomFile:
    """A file of messages in each other, of either syntax; ``M0`` is the outermost."""

    def __init__(self, dice: Random) -> None:
        """Make the file by chance."""
        self._dice = dice
        self._is_new = dice.random() < 0.6
        self._has_required = not self._is_new and dice.random() < 0.5
        syntax = "proto3" if self._is_new else "proto2"
        self.proto = FileDescriptorProto(
            name="a.proto", package="p", syntax=syntax, dependency=_IMPORTS
        )
        enum = self.proto.enum_type.add(name="E")
        for name, number in dice.choice(_ENUMS).items():
            enum.value.add(name=name, number=number)
        self._count = dice.randint(1, 5)
        for level in range(self._count):
            self._add_message(level)

    def message(self) -> Descriptor:
        """Return the outermost message."""
        return message_of(self.proto)

    def _add_message(self, level: int) -> None:
        message = self.proto.message_type.add(name=f"M{level}")
        for _ in range(self._dice.randint(1, 8)):
            self.add_field(level)
        _declare_oneofs(message)

    def add_field(self, level: int) -> None:
        """Add a field of a name and a number that the message does not have."""
        message, dice = self.proto.message_type[level], self._dice
        used = {field.number for field in message.field}
        number = next(one for one in iter(lambda: _number(dice), None) if one not in used)
        field = message.field.add(name=f"f{number}", number=number, label=_F.LABEL_OPTIONAL)
        place = dice.choice(_PLACES)
        if place == "map":
            self._make_map(message, field, level)
            return
        self._set_type(field, level)
        if place == "repeated":
            field.label = _F.LABEL_REPEATED
            if field.type not in _UNPACKED and dice.random() < 0.5:
                field.options.packed = dice.random() < 0.5
        elif place == "oneof":
            field.oneof_index = dice.randrange(2)
        elif place == "optional" and self._is_new:
            field.proto3_optional = True
        elif not self._is_new:
            self._make_old(field)

    def _make_map(self, message: DescriptorProto, field: _F, level: int) -> None:
        entry = message.nested_type.add(name=f"F{field.number}Entry")
        entry.options.map_entry = True
        key = self._dice.choice(_KEYS)
        entry.field.add(name="key", number=1, label=_F.LABEL_OPTIONAL, type=key)
        # An entry without a value is refused here if its message has required fields.
        level = self._count if self._has_required else level
        self._set_type(entry.field.add(name="value", number=2, label=_F.LABEL_OPTIONAL), level)
        field.label, field.type = _F.LABEL_REPEATED, _F.TYPE_MESSAGE
        field.type_name = f".p.{message.name}.{entry.name}"

    def _make_old(self, field: _F) -> None:
        if self._has_required and self._dice.random() < 0.3:
            field.label = _F.LABEL_REQUIRED
        elif field.type != _F.TYPE_MESSAGE and self._dice.random() < 0.3:
            field.default_value = _DEFAULTS.get(field.type, "7")

    def _set_type(self, field: _F, level: int) -> None:
        kind, has_inner = self._dice.random(), level + 1 < self._count
        if kind < 0.6:
            field.type = self._dice.choice(_SCALARS)
        elif kind < 0.7:
            field.type, field.type_name = _F.TYPE_ENUM, ".p.E"
        elif kind < 0.8 or not has_inner:
            field.type, field.type_name = _F.TYPE_MESSAGE, self._dice.choice(_KNOWN)
        else:
            inner = self._dice.randint(level + 1, self._count - 1)
            field.type, field.type_name = _F.TYPE_MESSAGE, f".p.M{inner}"


def message_of(proto: FileDescriptorProto) -> Descriptor:
    """Return the outermost message of a file."""
    return Messages(FileDescriptorSet(file=[proto]).SerializeToString(), proto.name).named("p.M0")


def evolved(dice: Random, file: RandomFile) -> FileDescriptorProto:
    """Return a file that has fewer and more fields, and other names of fields."""
    before = FileDescriptorProto()
    before.CopyFrom(file.proto)
    for level, message in enumerate(file.proto.message_type):
        kept = [one for one in message.field if dice.random() < 0.8] or list(message.field)[:1]
        copies = [_copy(one) for one in kept]
        del message.field[:]
        message.field.extend(copies)
        _drop_entries(message)
        if dice.random() < 0.5:
            file.add_field(level)
        _declare_oneofs(message)
    after = FileDescriptorProto()
    after.CopyFrom(file.proto)
    file.proto.CopyFrom(before)
    return after


def _copy(field: _F) -> _F:
    copied = _F()
    copied.CopyFrom(field)
    return copied


def _drop_entries(message: DescriptorProto) -> None:
    """Drop the entries of maps that are gone: a new map may have the same number."""
    used = {one.type_name.rpartition(".")[2] for one in message.field}
    for place in reversed(range(len(message.nested_type))):
        if message.nested_type[place].name not in used:
            del message.nested_type[place]


def _declare_oneofs(message: DescriptorProto) -> None:
    """Declare the oneofs that fields are in, and one for each optional field of proto3."""
    del message.oneof_decl[:]
    numbers: dict[int, int] = {}
    for field in message.field:
        if field.HasField("oneof_index") and not field.proto3_optional:
            place = numbers.setdefault(field.oneof_index, len(numbers))
            field.oneof_index = place
    for place in range(len(numbers)):
        message.oneof_decl.add(name=f"o{place}")
    for field in message.field:
        if field.proto3_optional:
            field.oneof_index = len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{field.name}")


def _number(dice: Random) -> int:
    while True:
        highest = dice.choice((15, 40, 300, 2050, 2**29 - 1))
        number = dice.randint(1, highest)
        if not 19_000 <= number <= 19_999:
            return number
