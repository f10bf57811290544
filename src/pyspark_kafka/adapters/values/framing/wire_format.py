"""Confluent's wire format: schema ids, GUIDs and the message indexes of Protobuf.

``SchemaId`` of schema-registry defines it: a magic byte, the id, and for Protobuf which message of
the schema it is.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from typing import Final

from ....domain.values.avro_defaults import encode_long

ID_MAGIC: Final = 0
GUID_MAGIC: Final = 1

ID_BYTES: Final = 4
GUID_BYTES: Final = 16

MAX_INDEXES: Final = 32
"""How deep messages are nested: more than protoc accepts."""

_FIRST_MESSAGE: Final = (0,)


def header_name(column: str) -> str:
    """Return the header with the schema id of a column, ``key`` or ``value``."""
    return f"__{column}_schema_id"


def id_prefix(schema_id: int, message_indexes: Sequence[int] | None = None) -> bytes:
    """Return what comes before the payload; the indexes are for Protobuf only."""
    return bytes([ID_MAGIC]) + schema_id.to_bytes(ID_BYTES, "big") + _encoded(message_indexes)


def guid_header(guid: str, message_indexes: Sequence[int] | None = None) -> bytes:
    """Return the value of the header with a GUID; the indexes are for Protobuf only."""
    return bytes([GUID_MAGIC]) + uuid.UUID(guid).bytes + _encoded(message_indexes)


def parse_framing(framing: bytes) -> tuple[int | str, tuple[int, ...]]:
    """Return the id or GUID of a complete framing, and its message indexes.

    Without indexes it is not Protobuf.
    """
    if framing[0] == GUID_MAGIC:
        end = 1 + GUID_BYTES
        return str(uuid.UUID(bytes=framing[1:end])), _decoded(framing[end:])
    end = 1 + ID_BYTES
    return int.from_bytes(framing[1:end], "big"), _decoded(framing[end:])


def _encoded(message_indexes: Sequence[int] | None) -> bytes:
    if message_indexes is None:
        return b""
    if tuple(message_indexes) == _FIRST_MESSAGE:
        return b"\0"
    return b"".join(map(encode_long, (len(message_indexes), *message_indexes)))


def _decoded(encoded: bytes) -> tuple[int, ...]:
    count, *indexes = [*_numbers(encoded)] or [-1]
    return _FIRST_MESSAGE if count == 0 else tuple(indexes)


def _numbers(encoded: bytes) -> Iterator[int]:
    number = shift = 0
    for byte in encoded:
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            yield number >> 1
            number = shift = 0
