"""The program by which the kernel encodes rows as Protobuf: a node for each field of a message.

A node has sixteen numbers of 64 bits; offsets in it are in bytes. The fields of a message stand
behind it by their numbers, the order in which all serializers write them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

import numpy as np
from google.protobuf.descriptor import FieldDescriptor

from ...domain.values import data_types as types
from ..value_encoding.input_table import fields_of
from .descriptors import InvalidDescriptorError
from .field_shapes import (
    UINT64,
    Shape,
    inner_message,
    is_packed,
    is_repeated,
    is_required,
    shape_of,
)
from .settings import ProtobufSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from google.protobuf.descriptor import Descriptor

    from ...domain.values.data_types import DataType
    from ..kernels.arrays import Int64Array, UInt8Array
    from ..value_columns.layout import Column

STRIDE: Final = 128

OPERATION: Final = 0
COLUMN: Final = 8
END: Final = 16
"""The number of the first node that is not below this one."""

TAG: Final = 24
"""The field's number and wire type, or -1 for the elements of a packed field."""

WRITING: Final = 32
"""How a number is written."""

IS_IMPLICIT: Final = 40
"""Whether the default value is left out."""

IS_REQUIRED: Final = 48
IS_PACKED: Final = 56
COUNT: Final = 64
"""The number of symbols of an enum."""

SYMBOLS: Final = 72
"""The address of the symbols' numbers, then of the offsets of their texts, then the texts."""

OTHERS: Final = 80
"""The address of the columns of a oneof's later fields, and behind it their number."""

OTHERS_COUNT: Final = 88

BOOL: Final = 0
INT8: Final = 1
INT16: Final = 2
INT32: Final = 3
INT64: Final = 4
UINT32: Final = 5
"""An unsigned number in 32 bits of a signed one."""

LONG_AS_UINT32: Final = 6
DECIMAL_AS_UINT64: Final = 7
FLOAT: Final = 8
ENUM: Final = 9
BYTES: Final = 10
STRING: Final = 11
TIMESTAMP: Final = 12
DURATION: Final = 13
MESSAGE: Final = 14
LIST: Final = 15
MAP: Final = 16

VARINT: Final = 0
ZIGZAG: Final = 1
FIXED32: Final = 2
FIXED64: Final = 3

_WORDS: Final = STRIDE // 8
_LENGTH_DELIMITED: Final = 2
_WIRE_TYPES: Final = {VARINT: 0, ZIGZAG: 0, FIXED32: 5, FIXED64: 1}

_INTEGERS: Final = {types.BYTE: INT8, types.SHORT: INT16, types.INTEGER: INT32, types.LONG: INT64}
_SMALL: Final = frozenset({types.BYTE, types.SHORT, types.INTEGER})
_F = FieldDescriptor
_SIGNED: Final = {
    _F.TYPE_INT32: VARINT,
    _F.TYPE_SINT32: ZIGZAG,
    _F.TYPE_SFIXED32: FIXED32,
    _F.TYPE_INT64: VARINT,
    _F.TYPE_SINT64: ZIGZAG,
    _F.TYPE_SFIXED64: FIXED64,
}
_LONGS: Final = frozenset({_F.TYPE_INT64, _F.TYPE_SINT64, _F.TYPE_SFIXED64})
_OTHERS: Final = {
    (_F.TYPE_BOOL, types.BOOLEAN): (BOOL, VARINT),
    (_F.TYPE_FLOAT, types.FLOAT): (FLOAT, FIXED32),
    (_F.TYPE_DOUBLE, types.DOUBLE): (INT64, FIXED64),
    (_F.TYPE_STRING, types.STRING): (STRING, VARINT),
    (_F.TYPE_BYTES, types.BINARY): (BYTES, VARINT),
    (_F.TYPE_UINT32, types.INTEGER): (UINT32, VARINT),
    (_F.TYPE_UINT32, types.LONG): (LONG_AS_UINT32, VARINT),
    (_F.TYPE_FIXED32, types.INTEGER): (INT32, FIXED32),
    (_F.TYPE_UINT64, types.LONG): (INT64, VARINT),
    (_F.TYPE_UINT64, UINT64): (DECIMAL_AS_UINT64, VARINT),
    (_F.TYPE_FIXED64, types.LONG): (INT64, FIXED64),
}
"""The types of a field and of its column, how the column is read, and how the field is written."""

_NO_SETTINGS: Final = ProtobufSettings()


@final
class EncodeProgram:
    """The program for rows of a type as a message, with the memory that it points to."""

    def __init__(
        self, message: Descriptor, struct: types.StructType, columns: Sequence[Column]
    ) -> None:
        """Compile a message.

        :raises InvalidDescriptorError: if rows of the type cannot be the message.
        """
        self._columns = columns
        self._nodes: list[list[int]] = [self._node(MESSAGE, 0)]
        self._kept: list[UInt8Array] = []
        self._last = 0
        self._add_fields(message, struct, 0)
        self._nodes[0][END // 8] = len(self._nodes)
        self.words: Int64Array = np.array(self._nodes, np.int64)

    @property
    def containers(self) -> int:
        """How deeply messages, lists and maps are nested, at most; an entry is a message."""
        return sum(
            2 if node[OPERATION // 8] == MAP else 1
            for node in self._nodes
            if node[OPERATION // 8] >= MESSAGE
        )

    def _node(self, operation: int, column: int) -> list[int]:
        node = [0] * _WORDS
        node[OPERATION // 8], node[COLUMN // 8], node[TAG // 8] = operation, column, -1
        return node

    def _add_fields(self, message: Descriptor, struct: types.StructType, column: int) -> None:
        numbers = fields_of(self._columns, column)
        found: dict[int, tuple[FieldDescriptor, DataType, int]] = {}
        for field, number in zip(struct.fields, numbers, strict=True):
            one = _matching(message, field.name)
            if one is None or one.number in found:
                raise InvalidDescriptorError(
                    f"{self._place(number)} is not a field of {message.full_name}"
                )
            found[one.number] = one, field.type, number
        for one in message.fields:
            if is_required(one) and one.number not in found:
                raise InvalidDescriptorError(f"the required field '{one.full_name}' is missing")
        for _, (one, data_type, number) in sorted(found.items()):
            place = len(self._nodes)
            self._add_field(one, data_type, number)
            self._nodes[place][IS_REQUIRED // 8] = is_required(one)
            self._add_others(self._nodes[place], one, found)

    def _add_others(
        self,
        node: list[int],
        field: FieldDescriptor,
        found: dict[int, tuple[FieldDescriptor, DataType, int]],
    ) -> None:
        oneof = field.containing_oneof
        if oneof is None:
            return
        others = [
            column
            for number, (one, _, column) in found.items()
            if number > field.number and one.containing_oneof is oneof
        ]
        memory = np.frombuffer(np.array([*others, 0], np.int64).tobytes(), np.uint8)
        self._kept.append(memory)
        node[OTHERS // 8], node[OTHERS_COUNT // 8] = memory.ctypes.data, len(others)

    def _add_field(self, field: FieldDescriptor, data_type: DataType, column: int) -> None:
        if field.type == FieldDescriptor.TYPE_GROUP:
            raise InvalidDescriptorError(
                f"the field '{field.full_name}' is a group, which cannot be written"
            )
        if shape_of(field, _NO_SETTINGS) is Shape.MAP:
            self._add_map(field, data_type, column)
        elif not is_repeated(field):
            self._add_value(field, data_type, column)
            self._nodes[self._last][IS_IMPLICIT // 8] = not field.has_presence
        elif isinstance(data_type, types.ArrayType):
            self._add_list(field, data_type, column)
        else:
            raise self._unfit(field, data_type, column)

    def _add_list(self, field: FieldDescriptor, data_type: types.ArrayType, column: int) -> None:
        node = self._node(LIST, column)
        self._nodes.append(node)
        element = len(self._nodes)
        self._add_value(field, data_type.element, column + 1)
        self._nodes[element][IS_REQUIRED // 8] = 1
        if is_packed(field):
            node[IS_PACKED // 8], node[TAG // 8] = 1, _tag(field, _LENGTH_DELIMITED)
            self._nodes[element][TAG // 8] = -1
        node[END // 8] = len(self._nodes)

    def _add_map(self, field: FieldDescriptor, data_type: DataType, column: int) -> None:
        if not isinstance(data_type, types.MapType):
            raise self._unfit(field, data_type, column)
        node = self._node(MAP, column)
        node[TAG // 8] = _tag(field, _LENGTH_DELIMITED)
        self._nodes.append(node)
        entry = inner_message(field).fields_by_name
        key, value = fields_of(self._columns, column + 1)
        for name, one, child in (("key", data_type.key, key), ("value", data_type.value, value)):
            self._add_value(entry[name], one, child)
            self._nodes[self._last][IS_REQUIRED // 8] = 1
        node[END // 8] = len(self._nodes)

    def _add_value(self, field: FieldDescriptor, data_type: DataType, column: int) -> None:
        """Add a node for one value; ``_last`` is its number."""
        number = self._last = len(self._nodes)
        node = self._node(MESSAGE, column)
        self._nodes.append(node)
        shape = shape_of(field, _NO_SETTINGS)
        node[TAG // 8] = _tag(field, _LENGTH_DELIMITED)
        if shape is Shape.MESSAGE and isinstance(data_type, types.StructType):
            self._add_fields(inner_message(field), data_type, column)
        elif shape is Shape.TIMESTAMP and data_type == types.TIMESTAMP:
            node[OPERATION // 8] = TIMESTAMP
        elif shape is Shape.DURATION and data_type == types.DAY_TIME_INTERVAL:
            node[OPERATION // 8] = DURATION
        else:
            self._number(node, field, data_type, column)
        self._last = number
        node[END // 8] = len(self._nodes)

    def _number(
        self, node: list[int], field: FieldDescriptor, data_type: DataType, column: int
    ) -> None:
        found = self._operation(node, field, data_type)
        if found is None:
            raise self._unfit(field, data_type, column)
        node[OPERATION // 8], node[WRITING // 8] = found
        if found[0] not in {BYTES, STRING}:
            node[TAG // 8] = _tag(field, _WIRE_TYPES[found[1]])

    def _operation(
        self, node: list[int], field: FieldDescriptor, data_type: DataType
    ) -> tuple[int, int] | None:
        if field.type == FieldDescriptor.TYPE_ENUM:
            if data_type == types.STRING:
                self._symbols(node, field)
                return ENUM, VARINT
            return (INT32, VARINT) if data_type == types.INTEGER else None
        if field.type in _SIGNED:
            is_long = field.type in _LONGS
            fits = data_type in _SMALL or (is_long and data_type == types.LONG)
            if fits and isinstance(data_type, types.AtomicType):
                return _INTEGERS[data_type], _SIGNED[field.type]
            return None
        if isinstance(data_type, types.AtomicType | types.DecimalType):
            return _OTHERS.get((field.type, data_type))
        return None

    def _symbols(self, node: list[int], field: FieldDescriptor) -> None:
        values = list(field.enum_type.values) if field.enum_type is not None else []
        names = [value.name.encode() for value in values]
        numbers = np.array([value.number for value in values], np.int64)
        offsets = np.cumsum([0, *map(len, names)], dtype=np.int64)
        content = numbers.tobytes() + offsets.tobytes() + b"".join(names)
        memory = np.frombuffer(content, np.uint8)
        self._kept.append(memory)
        node[COUNT // 8], node[SYMBOLS // 8] = len(names), memory.ctypes.data

    def _unfit(
        self, field: FieldDescriptor, data_type: DataType, column: int
    ) -> InvalidDescriptorError:
        return InvalidDescriptorError(
            f"{self._place(column)} of type {data_type} cannot be written as the field "
            f"'{field.full_name}'"
        )

    def _place(self, column: int) -> str:
        return f"field '{self._columns[column].path}'"


def _tag(field: FieldDescriptor, wire_type: int) -> int:
    return int(field.number) << 3 | wire_type


def _matching(message: Descriptor, name: str) -> FieldDescriptor | None:
    """Return the field of a name, or else the only one of it in another case, as Spark does."""
    exact = message.fields_by_name.get(name)
    if exact is not None:
        return exact
    other = [field for field in message.fields if field.name.lower() == name.lower()]
    return other[0] if len(other) == 1 else None
