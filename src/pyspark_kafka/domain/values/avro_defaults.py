"""The defaults of fields of readers, as Avro datums."""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Any, Final

from ..json_text import is_integer
from .avro_schema import Array, Enumeration, Fixed, Kind, Map, Primitive, Record, Union

if TYPE_CHECKING:
    from .avro_schema import AvroSchema, AvroType

MAX_VALUES: Final = 10_000
"""The values in a default: the defaults of records in it multiply."""

_MAX_DEPTH: Final = 64
_END: Final = b"\0"
_FORMS: Final = {Kind.FLOAT: "<f", Kind.DOUBLE: "<d"}
_RANGES: Final = {Kind.INT: 2**31, Kind.LONG: 2**63}


def encode_default(schema: AvroSchema, type_: AvroType, json: Any) -> bytes:
    """Return the datum of a default in a type of the schema.

    :raises ValueError: if it is not valid for the type.
    """
    return _Encoder(schema).encode(type_, json, 0)


def encode_long(number: int) -> bytes:
    """Return the zig-zag varint of a number of at most 64 bits, signed."""
    rest = 2 * number if number >= 0 else -2 * number - 1
    encoded = bytearray()
    while rest > 127:
        encoded.append(rest & 127 | 128)
        rest >>= 7
    return bytes((*encoded, rest))


class _Encoder:
    def __init__(self, schema: AvroSchema) -> None:
        self._schema = schema
        self._values = 0

    def encode(self, type_: AvroType, json: Any, depth: int) -> bytes:
        self._values += 1
        if self._values > MAX_VALUES or depth > _MAX_DEPTH:
            raise ValueError("its default is too large")
        match self._schema.resolve(type_):
            case Primitive(kind):
                return _encode_primitive(kind, json)
            case Fixed(_, size) if isinstance(json, str) and len(json) == size:
                return _latin1(json)
            case Enumeration(_, symbols) if json in symbols:
                return encode_long(symbols.index(json))
            case Union(branches):
                return self._union(branches, json, depth)
            case nested:
                return self._nested(nested, json, depth)

    def _nested(self, type_: AvroType, json: Any, depth: int) -> bytes:
        match type_:
            case Array(items) if isinstance(json, list):
                return _blocks([self.encode(items, one, depth + 1) for one in json])
            case Map(values) if isinstance(json, dict):
                return _blocks(
                    [
                        _encode_primitive(Kind.STRING, key) + self.encode(values, one, depth + 1)
                        for key, one in json.items()
                    ]
                )
            case Record() as record if isinstance(json, dict):
                return self._record(record, json, depth)
        raise _invalid(json, type_.name)

    def _union(self, branches: tuple[AvroType, ...], json: Any, depth: int) -> bytes:
        """Encode a value of the first branch that it is valid for, as Java does."""
        for number, branch in enumerate(branches):
            try:
                return encode_long(number) + self.encode(branch, json, depth + 1)
            except ValueError:
                continue
        raise _invalid(json, "union")

    def _record(self, record: Record, json: dict[str, Any], depth: int) -> bytes:
        parts = []
        for field in record.fields:
            if field.name not in json and not field.has_default:
                raise ValueError(f"the default of {record.name} lacks the field '{field.name}'")
            parts.append(self.encode(field.type, json.get(field.name, field.default), depth + 1))
        return b"".join(parts)


def _encode_primitive(kind: Kind, json: Any) -> bytes:
    if kind is Kind.NULL and json is None:
        return b""
    if kind is Kind.BOOLEAN and isinstance(json, bool):
        return bytes([json])
    if kind in _RANGES and is_integer(json) and -_RANGES[kind] <= json < _RANGES[kind]:
        return encode_long(json)
    if kind in _FORMS and isinstance(json, int | float) and not isinstance(json, bool):
        return _encode_floating(_FORMS[kind], json)
    if kind is Kind.STRING and isinstance(json, str):
        return _sized(_encoded(json, "utf-8"))
    if kind is Kind.BYTES and isinstance(json, str):
        return _sized(_latin1(json))
    raise _invalid(json, kind.value)


def _encode_floating(form: str, json: float) -> bytes:
    try:
        return struct.pack(form, float(json))
    except OverflowError:
        # Java rounds what is too large to infinity.
        return struct.pack(form, math.inf if json > 0 else -math.inf)


def _latin1(text: str) -> bytes:
    """Return the bytes whose values are the code points of a text."""
    return _encoded(text, "latin-1")


def _encoded(text: str, encoding: str) -> bytes:
    try:
        return text.encode(encoding)
    except UnicodeEncodeError:
        raise ValueError(f"its default {text!r} has characters that cannot be encoded") from None


def _sized(data: bytes) -> bytes:
    return encode_long(len(data)) + data


def _blocks(parts: list[bytes]) -> bytes:
    return (encode_long(len(parts)) + b"".join(parts) if parts else b"") + _END


def _invalid(json: Any, name: str) -> ValueError:
    return ValueError(f"its default {json!r} is not of the type {name}")
