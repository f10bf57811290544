"""Encoding struct columns as Protobuf, as upb serializes messages.

The entries of maps are in the order of the row.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, final

from google.protobuf.descriptor_pb2 import FileDescriptorProto

from ...domain.errors import OptionsError
from ...domain.values.registry import Schema, SchemaType
from ...ports.values.value_format import ValueEncoder
from ...ports.values.value_types import arrow_type
from ..value_columns.layout import columns_of
from ..value_encoding.input_table import InputTable
from ..value_encoding.row_encoder import RowEncoder
from .encode_kernel import FRAME, encode_protobuf
from .encode_program import EncodeProgram

if TYPE_CHECKING:
    import pyarrow as pa
    from google.protobuf.descriptor import Descriptor

    from ...domain.values.data_types import StructType

_WELL_KNOWN = "google/protobuf/"


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
        scratch = FRAME * (self._program.containers + 1)
        words = self._program.words
        self._rows = RowEncoder(encode_protobuf, words, scratch, self._columns, column)

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
        table = InputTable(self._columns, column)
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
    others = [name for name in proto.dependency if not name.startswith(_WELL_KNOWN)]
    if others:
        problem = (
            f"The file of {message.full_name} imports {', '.join(others)}, which cannot be "
            "registered with it. Register the schemas yourself, and set 'useLatestVersion'"
        )
        raise OptionsError([problem])
    text = base64.b64encode(proto.SerializeToString()).decode()
    return Schema(SchemaType.PROTOBUF, text)
