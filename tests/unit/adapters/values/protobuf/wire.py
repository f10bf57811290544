"""Messages on the wire: by hand, and made by chance."""

import random
import struct
from collections.abc import Callable, Sequence
from typing import Any, Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from pyspark_kafka.adapters.values.protobuf.spark_types import (
    inner_message,
    is_repeated,
    is_required,
)

F: Final = FieldDescriptor
VARINTS: Final = (
    *(0, 1, 2, 5, 7, 127, 128, 300),
    *(2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**63, 2**64 - 1),
)
LATE: Final = (-(2**31), -1, 10**9, 253_402_300_800, 2**62, -(2**62))
TEXTS: Final = (
    b"",
    b"a",
    b"caf\xc3\xa9",
    b"a longer text of more than eight bytes",
    b"\xff",
    b"\xed\xa0\x80",
)
_FIXED: Final = {F.TYPE_DOUBLE: 1, F.TYPE_FIXED64: 1, F.TYPE_SFIXED64: 1}
_FIXED_32: Final = {F.TYPE_FLOAT: 5, F.TYPE_FIXED32: 5, F.TYPE_SFIXED32: 5}
_MESSAGES: Final = (F.TYPE_MESSAGE, F.TYPE_GROUP)
_SIZED: Final = (F.TYPE_STRING, F.TYPE_BYTES, F.TYPE_MESSAGE)


def varint(number: int, size: int = 0) -> bytes:
    """Return an unsigned varint of at least ``size`` bytes; a negative number has 64 bits."""
    rest, out = number % 2**64, bytearray()
    while rest > 0x7F or len(out) + 1 < size:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def tag(number: int, wire: int) -> bytes:
    """Return a tag."""
    return varint(number << 3 | wire)


def sized(number: int, *parts: bytes) -> bytes:
    """Return a field of bytes, a string, or a message made of fields."""
    content = b"".join(parts)
    return tag(number, 2) + varint(len(content)) + content


def number(field: int, value: int) -> bytes:
    """Return a field that is a varint."""
    return tag(field, 0) + varint(value)


def zigzag(value: int) -> int:
    """Return what a ``sint`` is on the wire."""
    return (value << 1) ^ (value >> 63)


def fixed32(field: int, value: int) -> bytes:
    """Return a field of four bytes."""
    return tag(field, 5) + struct.pack("<I", value)


def fixed64(field: int, value: int) -> bytes:
    """Return a field of eight bytes."""
    return tag(field, 1) + struct.pack("<Q", value)


def group(field: int, *parts: bytes) -> bytes:
    """Return a group."""
    return tag(field, 3) + b"".join(parts) + tag(field, 4)


def message_bytes(dice: random.Random, descriptor: Descriptor, depth: int = 0) -> bytes:
    """Return fields of a message, mostly valid, in any order and number."""
    fields: Sequence[Any] = descriptor.fields
    out = b""
    for _ in range(dice.choice((0, 1, 2, 3, 6, 12)) if fields else 0):
        field = dice.choice(fields)
        out += _unlikely(dice, field) if dice.random() < 0.05 else field_bytes(dice, field, depth)
    for field in fields:
        if is_required(field) and dice.random() < 0.9:
            out += field_bytes(dice, field, depth)
    return out


def field_bytes(dice: random.Random, field: FieldDescriptor, depth: int = 0) -> bytes:
    """Return a field with its tag."""
    if field.type in _MESSAGES:
        inner = message_bytes(dice, inner_message(field), depth + 1) if depth < 5 else b""
        return (
            group(field.number, inner) if field.type == F.TYPE_GROUP else sized(field.number, inner)
        )
    wire, make = _scalar(field)
    if is_repeated(field) and wire != 2 and dice.random() < 0.5:
        return sized(field.number, *(make(dice) for _ in range(dice.randrange(5))))
    content = make(dice)
    return tag(field.number, wire) + (varint(len(content)) if wire == 2 else b"") + content


def _scalar(field: FieldDescriptor) -> tuple[int, Callable[[random.Random], bytes]]:
    if field.type in _SIZED:
        texts = TEXTS if field.type == F.TYPE_BYTES else TEXTS[:4] * 8 + TEXTS
        return 2, lambda dice: dice.choice(texts)
    if field.type in _FIXED or field.type in _FIXED_32:
        size = 8 if field.type in _FIXED else 4
        return _FIXED.get(field.type, 5), lambda dice: dice.choice(
            (bytes(size), dice.randbytes(size), b"\xff" * size, bytes(size - 1) + b"\x80")
        )
    if field.enum_type is not None:
        known = [one.number for one in field.enum_type.values]
        return 0, lambda dice: varint(dice.choice((*known, *known, *known, 3, -5)))
    if field.name in {"seconds", "nanos"}:
        return 0, lambda dice: varint(dice.choice((*VARINTS[:9], *LATE)))
    return 0, lambda dice: varint(
        dice.choice((*VARINTS, dice.getrandbits(7))), dice.choice((0, 0, 0, 3, 10))
    )


def _unlikely(dice: random.Random, field: FieldDescriptor) -> bytes:
    """Return the field with another wire type, or an unknown field."""
    where = dice.choice((field.number, field.number, 19, 77, 5_000))
    return dice.choice(
        (
            number(where, dice.choice(VARINTS)),
            fixed64(where, 7),
            fixed32(where, 7),
            sized(where, dice.choice(TEXTS)),
            group(where, number(3, 1), sized(9, b"x")),
        )
    )


def damaged(dice: random.Random, data: bytes) -> bytes:
    """Return a message that is changed in a few places."""
    out = bytearray(data)
    for _ in range(dice.choice((1, 1, 2, 4))):
        place = dice.randrange(len(out) + 1)
        kind = dice.randrange(5)
        if kind == 0:
            del out[place:]
        elif kind == 1:
            out[place:place] = dice.choice(
                (b"\x80", b"\xff" * 9, b"\x00", b"\x06", b"\x0b", b"\x0c")
            )
        elif kind == 2 and place < len(out):
            out[place] ^= 1 << dice.randrange(8)
        elif kind == 3 and place < len(out):
            out[place] = dice.choice((0, 0x7F, 0x80, 0xFF, 1, 2))
        else:
            del out[place : place + dice.randrange(1, 4)]
    return bytes(out)
