"""Encoding struct columns as Protobuf, as upb serializes messages.

The entries of maps are in the order of the row.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from ....domain.errors import OptionsError
from ....domain.values import data_types as types
from ....domain.values.registry import Schema, SchemaType
from ....ports.values.value_format import ValueEncoder
from ....ports.values.value_types import arrow_type
from ..columns.layout import columns_of
from ..encoding.input_columns import InputColumns
from ..encoding.row_encoder import RowEncoder
from . import encode_kernel as layout
from .invalid_descriptor import InvalidDescriptorError
from .known_files import is_known
from .spark_types import (
    UINT64,
    ProtobufSettings,
    Shape,
    inner_message,
    is_packed,
    is_repeated,
    is_required,
    shape_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from google.protobuf.descriptor import Descriptor

    from ....domain.values.data_types import DataType, StructType
    from ...kernels.arrays import Int64Array, UInt8Array
    from ..columns.layout import Column

_WORDS: Final = layout.STRIDE // 8
_LENGTH_DELIMITED: Final = 2
_WIRE_TYPES: Final = {layout.VARINT: 0, layout.ZIGZAG: 0, layout.FIXED32: 5, layout.FIXED64: 1}

_INTEGERS: Final = {
    types.BYTE: layout.INT8,
    types.SHORT: layout.INT16,
    types.INTEGER: layout.INT32,
    types.LONG: layout.INT64,
}
_SMALL: Final = frozenset({types.BYTE, types.SHORT, types.INTEGER})
_F = FieldDescriptor
_SIGNED: Final = {
    _F.TYPE_INT32: layout.VARINT,
    _F.TYPE_SINT32: layout.ZIGZAG,
    _F.TYPE_SFIXED32: layout.FIXED32,
    _F.TYPE_INT64: layout.VARINT,
    _F.TYPE_SINT64: layout.ZIGZAG,
    _F.TYPE_SFIXED64: layout.FIXED64,
}
_LONGS: Final = frozenset({_F.TYPE_INT64, _F.TYPE_SINT64, _F.TYPE_SFIXED64})
_OTHERS: Final = {
    (_F.TYPE_BOOL, types.BOOLEAN): (layout.BOOL, layout.VARINT),
    (_F.TYPE_FLOAT, types.FLOAT): (layout.FLOAT, layout.FIXED32),
    (_F.TYPE_DOUBLE, types.DOUBLE): (layout.INT64, layout.FIXED64),
    (_F.TYPE_STRING, types.STRING): (layout.STRING, layout.VARINT),
    (_F.TYPE_BYTES, types.BINARY): (layout.BYTES, layout.VARINT),
    (_F.TYPE_UINT32, types.INTEGER): (layout.UINT32, layout.VARINT),
    (_F.TYPE_UINT32, types.LONG): (layout.LONG_AS_UINT32, layout.VARINT),
    (_F.TYPE_FIXED32, types.INTEGER): (layout.INT32, layout.FIXED32),
    (_F.TYPE_UINT64, types.LONG): (layout.INT64, layout.VARINT),
    (_F.TYPE_UINT64, UINT64): (layout.DECIMAL_AS_UINT64, layout.VARINT),
    (_F.TYPE_FIXED64, types.LONG): (layout.INT64, layout.FIXED64),
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
        self._nodes: list[list[int]] = [self._node(layout.MESSAGE, 0)]
        self._kept: list[UInt8Array] = []
        self._last = 0
        self._add_fields(message, struct, 0)
        self._nodes[0][layout.END // 8] = len(self._nodes)
        self.words: Int64Array = np.array(self._nodes, np.int64)

    def _node(self, operation: int, column: int) -> list[int]:
        node = [0] * _WORDS
        node[layout.OPERATION // 8], node[layout.COLUMN // 8], node[layout.TAG // 8] = (
            operation,
            column,
            -1,
        )
        return node

    def _add_fields(self, message: Descriptor, struct: types.StructType, column: int) -> None:
        numbers = self._columns[column].children
        found: dict[int, tuple[FieldDescriptor, DataType, int]] = {}
        for field, number in zip(struct.fields, numbers, strict=True):
            one = types.find_named(message.fields, field.name)
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
            self._nodes[place][layout.IS_REQUIRED // 8] = is_required(one)
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
        node[layout.OTHERS // 8], node[layout.OTHERS_COUNT // 8] = memory.ctypes.data, len(others)

    def _add_field(self, field: FieldDescriptor, data_type: DataType, column: int) -> None:
        if field.type == FieldDescriptor.TYPE_GROUP:
            raise InvalidDescriptorError(
                f"the field '{field.full_name}' is a group, which cannot be written"
            )
        if shape_of(field, _NO_SETTINGS) is Shape.MAP:
            self._add_map(field, data_type, column)
        elif not is_repeated(field):
            self._add_value(field, data_type, column)
            self._nodes[self._last][layout.IS_IMPLICIT // 8] = not field.has_presence
        elif isinstance(data_type, types.ArrayType):
            self._add_list(field, data_type, column)
        else:
            raise self._unfit(field, data_type, column)

    def _add_list(self, field: FieldDescriptor, data_type: types.ArrayType, column: int) -> None:
        node = self._node(layout.LIST, column)
        self._nodes.append(node)
        element = len(self._nodes)
        self._add_value(field, data_type.element, column + 1)
        self._nodes[element][layout.IS_REQUIRED // 8] = 1
        if is_packed(field):
            node[layout.IS_PACKED // 8], node[layout.TAG // 8] = 1, _tag(field, _LENGTH_DELIMITED)
            self._nodes[element][layout.TAG // 8] = -1
        node[layout.END // 8] = len(self._nodes)

    def _add_map(self, field: FieldDescriptor, data_type: DataType, column: int) -> None:
        if not isinstance(data_type, types.MapType):
            raise self._unfit(field, data_type, column)
        node = self._node(layout.MAP, column)
        node[layout.TAG // 8] = _tag(field, _LENGTH_DELIMITED)
        self._nodes.append(node)
        entry = inner_message(field).fields_by_name
        key, value = self._columns[column + 1].children
        for name, one, child in (("key", data_type.key, key), ("value", data_type.value, value)):
            self._add_value(entry[name], one, child)
            self._nodes[self._last][layout.IS_REQUIRED // 8] = 1
        node[layout.END // 8] = len(self._nodes)

    def _add_value(self, field: FieldDescriptor, data_type: DataType, column: int) -> None:
        """Add a node for one value; ``_last`` is its number."""
        number = self._last = len(self._nodes)
        node = self._node(layout.MESSAGE, column)
        self._nodes.append(node)
        shape = shape_of(field, _NO_SETTINGS)
        node[layout.TAG // 8] = _tag(field, _LENGTH_DELIMITED)
        if shape is Shape.MESSAGE and isinstance(data_type, types.StructType):
            self._add_fields(inner_message(field), data_type, column)
        elif shape is Shape.TIMESTAMP and data_type == types.TIMESTAMP:
            node[layout.OPERATION // 8] = layout.TIMESTAMP
        elif shape is Shape.DURATION and data_type == types.DAY_TIME_INTERVAL:
            node[layout.OPERATION // 8] = layout.DURATION
        else:
            self._number(node, field, data_type, column)
        self._last = number
        node[layout.END // 8] = len(self._nodes)

    def _number(
        self, node: list[int], field: FieldDescriptor, data_type: DataType, column: int
    ) -> None:
        found = self._operation(node, field, data_type)
        if found is None:
            raise self._unfit(field, data_type, column)
        node[layout.OPERATION // 8], node[layout.WRITING // 8] = found
        if found[0] not in {layout.BYTES, layout.STRING}:
            node[layout.TAG // 8] = _tag(field, _WIRE_TYPES[found[1]])

    def _operation(
        self, node: list[int], field: FieldDescriptor, data_type: DataType
    ) -> tuple[int, int] | None:
        if field.type == FieldDescriptor.TYPE_ENUM:
            if data_type == types.STRING:
                self._symbols(node, field)
                return layout.ENUM, layout.VARINT
            return (layout.INT32, layout.VARINT) if data_type == types.INTEGER else None
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
        node[layout.COUNT // 8], node[layout.SYMBOLS // 8] = len(names), memory.ctypes.data

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


@final
class ProtobufEncoder(ValueEncoder):
    """Encodes rows of one type as one message."""

    def __init__(
        self, column: str, message: Descriptor, schema: Schema | None, data_type: StructType
    ) -> None:
        """Take the registry's schema, if the message is of it.

        :raises InvalidDescriptorError: if rows of the type cannot be the message.
        """
        self._message = message
        self._schema = schema
        self._columns = columns_of(arrow_type(data_type))
        self._program = EncodeProgram(message, data_type, self._columns)
        self._rows = RowEncoder(layout.encode_protobuf, self._program.words, self._columns, column)

    @property
    def schema(self) -> Schema:
        """The registry's, or the file of the message in base64, as Confluent's clients send it.

        :raises OptionsError: if the file imports others, which would have to be registered first.
        """
        return self._schema or _file_schema(self._message)

    @property
    def record_name(self) -> str:
        return str(self._message.full_name)

    @property
    def message_indexes(self) -> tuple[int, ...]:
        return _indexes(self._message)

    def encode(self, column: pa.Array[Any], prefix: bytes = b"") -> pa.Array[Any]:
        table = InputColumns(self._columns, column)
        return self._rows.encode(column, table.address, prefix)


def _indexes(message: Descriptor) -> tuple[int, ...]:
    outer = message.containing_type
    if outer is not None:
        return (*_indexes(outer), _place(message, outer.nested_types))
    return (_place(message, message.file.message_types_by_name.values()),)


def _place(message: Descriptor, messages: Any) -> int:
    return [one.full_name for one in messages].index(message.full_name)


def _file_schema(message: Descriptor) -> Schema:
    proto = FileDescriptorProto()
    message.file.CopyToProto(proto)
    others = [name for name in proto.dependency if not is_known(name)]
    if others:
        problem = (
            f"The file of {message.full_name} imports {', '.join(others)}, which cannot be "
            "registered with it. Register the schemas yourself, and set 'useLatestVersion'"
        )
        raise OptionsError([problem])
    text = base64.b64encode(proto.SerializeToString()).decode()
    return Schema(SchemaType.PROTOBUF, text)
