"""A parser of framed values that is slow and plain."""

import uuid
from collections.abc import Collection
from typing import Final

from pyspark_kafka.domain.values.errors import FailureReason as Reason
from pyspark_kafka.domain.values.value_options import Framing

HEADER: Final = "__value_schema_id"


def plain_payload(
    value: bytes | None,
    headers: list[tuple[str, bytes | None]] | None,
    framing: Framing,
    form: str,
    known: Collection[int | str],
) -> tuple[bytes | None, Reason, object]:
    """Return a payload, a reason, and the writer: the id and the indexes of a known schema."""
    if value is None or framing is Framing.NONE:
        return value, Reason.NONE, None
    named = [content for name, content in headers or [] if name == HEADER]
    header = named[-1] if named and framing is Framing.CONFLUENT_HEADER else None
    text = value if header is None else header
    if text[:1] == b"\0" and len(text) >= 5:
        schema_id: int | str = int.from_bytes(text[1:5], "big")
        place = 5
    elif text[:1] == b"\1" and len(text) >= 17:
        schema_id, place = str(uuid.UUID(bytes=text[1:17])), 17
    else:
        return value, Reason.NO_FRAMING, None
    indexes: tuple[int, ...] = ()
    if form == "protobuf":
        try:
            indexes, place = _indexes(text, place)
        except ValueError as error:
            return value, Reason[str(error)], None
    payload = value[place:] if header is None else value
    if schema_id in known:
        return payload, Reason.NONE, (schema_id, indexes)
    return payload, Reason.UNKNOWN_SCHEMA, schema_id


def _indexes(text: bytes, place: int) -> tuple[tuple[int, ...], int]:
    """Return message indexes and where they end."""
    count, place = _varint(text, place)
    if not 0 <= count <= 32:
        raise ValueError("UNKNOWN_MESSAGE")
    indexes = []
    for _ in range(count):
        index, place = _varint(text, place)
        if index < 0:
            raise ValueError("UNKNOWN_MESSAGE")
        indexes.append(index)
    return tuple(indexes) or (0,), place


def _varint(text: bytes, place: int) -> tuple[int, int]:
    """Return a zig-zag varint of 32 bits and where it ends."""
    number = 0
    for shift in range(0, 35, 7):
        if place >= len(text):
            raise ValueError("TRUNCATED")
        byte = text[place]
        place += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            if number >= 2**32:
                break
            return (number >> 1) ^ -(number & 1), place
    raise ValueError("BAD_VARINT")
