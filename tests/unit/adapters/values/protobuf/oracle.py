"""Spark's result for a message: upb parses it, and the rules of Spark's deserializer convert it.

The spark-protobuf jar is not among the tests' jars, so the rules are written down here again, from
Spark's source: ``ProtobufDataToCatalyst`` (which records are refused) and ``ProtobufDeserializer``
(values). Where decision 0025 differs from them, this does, too.
"""

import struct
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

import pyarrow as pa
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.unknown_fields import UnknownFieldSet

from pyspark_kafka.adapters.kafka_format.column_buffers import valid_utf8
from pyspark_kafka.adapters.values.protobuf.decoder import ProtobufDecoder
from pyspark_kafka.adapters.values.protobuf.spark_types import (
    ProtobufSettings,
    Shape,
    inner_message,
    is_repeated,
    shape_of,
)
from pyspark_kafka.domain.values.data_types import ArrayType, DataType, MapType, StructType
from pyspark_kafka.ports.values.value_format import DecodedValues

from ..json.payloads import payloads_of
from .schemas import message_class

REFUSED: Final = "refused"
MAX_MICROS: Final = 2**63


class Refused(Exception):  # noqa: N818  # the result of parsing, not an error of the test
    """A message that Spark refuses after parsing it."""


def expected(
    descriptor: Descriptor, data: bytes, wanted: StructType, settings: ProtobufSettings
) -> Any:
    """Return the fields of a message, or ``REFUSED``."""
    message = message_class(descriptor)()
    try:
        message.ParseFromString(data)
    except DecodeError:
        return REFUSED
    known = {field.number for field in descriptor.fields}
    unknown = {field.field_number for field in _unknown(message)}
    if not _is_complete(descriptor, data) or known & unknown:
        return REFUSED
    try:
        return _struct(message, wanted, settings, is_outermost=True)
    except Refused:
        return REFUSED


def _is_complete(descriptor: Descriptor, data: bytes) -> bool:
    """Return whether no required field is missing, also in the values of maps.

    Classes whose maps are lists do not look into these.
    """
    plain = GetMessageClass(descriptor)()
    plain.ParseFromString(data)
    return plain.IsInitialized()


def _struct(
    message: Any, wanted: StructType, settings: ProtobufSettings, *, is_outermost: bool = False
) -> dict[str, Any]:
    fields = message.DESCRIPTOR.fields_by_name
    values: dict[str, Any] = {}
    for one in wanted.fields:
        if one.name not in fields:
            values[one.name] = None
        elif isinstance(one.type, MapType):
            entries = getattr(message, one.name)
            values[one.name] = _map(entries, one.type, settings, is_outermost=is_outermost)
        else:
            values[one.name] = _field(message, fields[one.name], one.type, settings)
    return values


def _map(entries: Any, wanted: MapType, settings: Any, *, is_outermost: bool) -> dict[Any, Any]:
    values = {}
    for entry in entries:
        key, value = (entry.DESCRIPTOR.fields_by_name[name] for name in ("key", "value"))
        shown = _value(_last(entry.key, key), key, wanted.key, settings)
        last = _value(_last(entry.value, value), value, wanted.value, settings)
        if not _has_unknown_enum(entry, value):
            values[shown] = last
        elif is_outermost:
            raise Refused
    return values


def _has_unknown_enum(entry: Any, value: FieldDescriptor) -> bool:
    """Return whether Protobuf leaves an entry among the unknown fields."""
    unknown = {(one.field_number, one.wire_type) for one in _unknown(entry)}
    return value.enum_type is not None and value.enum_type.is_closed and (2, 0) in unknown


def _unknown(message: Any) -> Iterator[Any]:
    fields: Any = UnknownFieldSet(message)
    return iter(fields)


def _last(value: Any, field: FieldDescriptor) -> Any:
    """Return the last of the texts of an entry.

    :raises Refused: if one is not UTF-8. Java checks texts of maps in any syntax
        (``needsUtf8Check``).
    """
    if not is_repeated(field):
        return value
    if any(isinstance(text, bytes) for text in value):
        raise Refused
    return value[-1] if value else ""


def _field(message: Any, field: FieldDescriptor, wanted: DataType, settings: Any) -> Any:
    value = getattr(message, field.name)
    if isinstance(wanted, ArrayType):
        return [_value(one, field, wanted.element, settings) for one in value]
    is_set = (
        message.HasField(field.name)
        if field.has_presence
        else field.name in {one.name for one, _ in message.ListFields()}
    )
    is_emitted = field.has_default_value or (not field.has_presence and settings.emit_defaults)
    return _value(value, field, wanted, settings) if is_set or is_emitted else None


def _value(value: Any, field: FieldDescriptor, wanted: DataType, settings: Any) -> Any:
    shape = shape_of(field, settings)
    if shape in {Shape.TIMESTAMP, Shape.DURATION}:
        return _micros(value)
    if shape is Shape.WRAPPER:
        return _field(value, inner_message(field).fields[0], wanted, settings)
    if isinstance(wanted, StructType):
        return _struct(value, wanted, settings)
    if field.enum_type is not None and not settings.enums_as_ints:
        found = field.enum_type.values_by_number.get(value)
        return found.name if found else f"UNKNOWN_ENUM_VALUE_{field.enum_type.name}_{value}"
    if field.type == FieldDescriptor.TYPE_STRING and isinstance(value, bytes):
        return valid_utf8(pa.array([value], pa.binary()))[0].as_py()
    return _atom(value, field, settings)


def _atom(value: Any, field: FieldDescriptor, settings: ProtobufSettings) -> Any:
    if isinstance(value, float):
        return repr(value)
    if field.type in {FieldDescriptor.TYPE_UINT32, FieldDescriptor.TYPE_UINT64}:
        if settings.upcast_unsigned:
            return value
    elif field.type not in {FieldDescriptor.TYPE_FIXED32, FieldDescriptor.TYPE_FIXED64}:
        return value
    code = "i" if field.type in {FieldDescriptor.TYPE_UINT32, FieldDescriptor.TYPE_FIXED32} else "q"
    return struct.unpack(f"<{code}", struct.pack(f"<{code.upper()}", value))[0]


def _micros(value: Any) -> int:
    micros = abs(value.nanos) // 1000 * (-1 if value.nanos < 0 else 1)
    if not -MAX_MICROS <= value.seconds * 10**6 < MAX_MICROS:
        raise Refused
    return int(value.seconds * 10**6 + micros)


def python_values(array: Any) -> list[Any]:
    """Return an array's values: maps as dicts, floats as texts, times in microseconds."""
    kind = array.type
    if pa.types.is_struct(kind):
        names = [field.name for field in kind]
        fields = [python_values(array.field(number)) for number in range(len(names))]
        rows: Any = zip(*fields, strict=True) if fields else [()] * len(array)
        values: list[Any] = [dict(zip(names, row, strict=True)) for row in rows]
    elif pa.types.is_map(kind):
        keys, items = python_values(array.keys), python_values(array.items)
        offsets = array.offsets.to_pylist()
        values = []
        for start, end in pairwise(offsets):
            values.append(dict(zip(keys[start:end], items[start:end], strict=True)))
            assert len(values[-1]) == end - start, "keys are unique"
    elif pa.types.is_list(kind):
        elements, offsets = python_values(array.values), array.offsets.to_pylist()
        values = [elements[start:end] for start, end in pairwise(offsets)]
    elif pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        return array.cast(pa.int64()).to_pylist()
    else:
        array.validate(full=True)
        return [_shown(value) for value in array.to_pylist()]
    return [
        value if valid else None
        for value, valid in zip(values, array.is_valid().to_pylist(), strict=True)
    ]


def _shown(value: Any) -> Any:
    return repr(value) if isinstance(value, float) else value


def decoder_of(
    descriptor: Descriptor, wanted: StructType, settings: ProtobufSettings | None = None
) -> ProtobufDecoder:
    """Return the decoder of a message."""
    return ProtobufDecoder(descriptor, wanted, settings or ProtobufSettings())


def decoded(decoder: ProtobufDecoder, values: Sequence[bytes | None]) -> list[Any]:
    """Return what a decoder makes of values: the fields, or the reason why there are none."""
    result = decoder.decode(payloads_of(values))
    return outcomes(result)


def outcomes(result: DecodedValues) -> list[Any]:
    """Return the fields of each row, or the reason why there are none."""
    result.column.validate()
    rows = python_values(result.column)
    return [
        int(reason) if reason else row for row, reason in zip(rows, result.reasons, strict=True)
    ]
