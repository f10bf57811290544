"""Inputs of a fuzzer: stretches of a log that are nearly right.

Batches are made field by field, and some fields are then made hostile; lengths and checksums are
put right behind it, mostly, so that what is wrong is met by the kernels and not at the door.
"""

import random
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import lz4.frame

from pyspark_kafka.domain.reading.records import COLUMNS
from tests.unit.adapters.kafka_format.batches import (
    CODECS,
    CONTROL,
    GZIP,
    LZ4,
    NONE,
    SNAPPY,
    T0,
    TRANSACTIONAL,
    ZSTD,
    Batch,
    compress,
    java_lz4,
    message,
    raw_snappy,
    sizeless_zstd,
    varint,
)

END: Final = 2**63 - 1

HOSTILE_VARINTS: Final = (
    *(varint(number) for number in (-3, -2, -1, 0, 1, 2, 63, 64, 8191, 8192, 2**31 - 1, -(2**31))),
    *(b"\xff" * count + last for count in range(1, 11) for last in (b"\x00", b"\x01", b"\x7f")),
    *(b"\xfe" * count + b"\x0f" for count in range(1, 10)),
    *(b"\x80" * count + b"\x01" for count in range(1, 11)),
)
HOSTILE_INTS: Final = (-(2**31), -2, -1, 0, 1, 13, 14, 21, 22, 2**31 - 5, 2**31 - 1)
HOSTILE_LONGS: Final = (-(2**63), -(2**62), -1, 0, 1, 2**31, 2**53, 2**63 - 2, 2**63 - 1)
SIZES: Final = (0, 0, 1, 1, 2, 3, 5, 7, 15, 16, 62, 63, 64, 65, 127, 128, 129, 300)


@dataclass(frozen=True)
class Case:
    """A stretch, how to decode it, and how much room there is at first."""

    blob: bytes
    from_offset: int = 0
    until_offset: int = END
    aborted: tuple[tuple[int, int], ...] = ()
    columns: tuple[str, ...] = COLUMNS
    check_crcs: bool = True
    room: dict[str, int] = field(default_factory=dict)


def case_from(dice: random.Random) -> Case:
    offset = dice.choice((0, 0, 0, 5, 1_000, 2**31, 2**53, END - dice.randrange(200)))
    first = offset
    parts: list[bytes] = []
    for _ in range(dice.choice((1, 1, 1, 2, 3, 5))):
        part, offset = _part(dice, offset)
        parts.append(part)
    if dice.random() < 0.1:
        dice.shuffle(parts)
    blob = b"".join(parts)
    if dice.random() < 0.15:
        blob = mutated(dice, blob)
    if dice.random() < 0.15:
        blob = blob[: dice.randrange(len(blob) + 1)]
    around = (0, first, first + 1, (first + offset) // 2, offset - 1, offset, offset + 9)
    whole = dice.random() < 0.5
    columns = list(COLUMNS)
    if dice.random() < 0.3:
        dice.shuffle(columns)
        columns = columns[: dice.randrange(1, len(columns) + 1)]
    return Case(
        blob,
        0 if whole else min(END, max(0, dice.choice(around))),
        END if whole else min(END, max(0, dice.choice(around))),
        tuple((dice.choice(around), dice.randrange(4)) for _ in range(dice.choice((0, 0, 1, 3)))),
        tuple(columns),
        check_crcs=dice.random() < 0.7,
        room={
            "rows": dice.choice((1, 2, 3, 7, 64)),
            "bytes": dice.choice((1, 2, 16, 64, 1024)),
            "headers": dice.choice((1, 2, 8, 64)),
            "scratch": dice.choice((1, 2, 5, 16, 64, 256, 1024)),
        },
    )


def mutated(dice: random.Random, data: bytes) -> bytes:
    """Change a few bytes, or their number."""
    changed = bytearray(data)
    for _ in range(dice.choice((1, 1, 1, 2, 4))):
        place = dice.randrange(len(changed) + 1)
        length = dice.choice((1, 1, 2, 4, 8, 20))
        match dice.randrange(7):
            case 0 if place < len(changed):
                changed[place] ^= 1 << dice.randrange(8)
            case 1 if place < len(changed):
                changed[place] = dice.choice((0, 1, 0x7F, 0x80, 0xFF, dice.randrange(256)))
            case 2:
                changed[place:place] = dice.randbytes(length)
            case 3:
                del changed[place : place + length]
            case 4:
                changed[place:place] = changed[place : place + length]
            case 5:
                hostile = dice.choice(HOSTILE_VARINTS)
                changed[place : place + dice.choice((1, len(hostile)))] = hostile
            case _:
                number = struct.pack(">i", dice.choice(HOSTILE_INTS))
                changed[place : place + 4] = number
    return bytes(changed)


def _part(dice: random.Random, offset: int) -> tuple[bytes, int]:
    if dice.random() < 0.6:
        return _batch(dice, offset)
    return _messages(dice, offset)


def _bytes(dice: random.Random) -> bytes:
    size = dice.choice(SIZES) if dice.random() < 0.995 else dice.choice((8191, 8192, 70_000))
    return dice.randbytes(size) if size < 100 else bytes(size)


def _or_null(dice: random.Random) -> bytes | None:
    return None if dice.random() < 0.2 else _bytes(dice)


def _sized_tokens(value: bytes | None) -> list[bytes]:
    return [varint(-1)] if value is None else [varint(len(value)), value]


def _record(dice: random.Random, offset_delta: int, *, hostile: bool) -> bytes:
    time = dice.choice((0, 0, 1, -1, 1000, 2**33))
    pairs = dice.choice((0, 0, 0, 1, 2, 5)) if dice.random() < 0.99 else 300
    tokens = [b"\0", varint(time), varint(offset_delta)]
    tokens += _sized_tokens(_or_null(dice)) + _sized_tokens(_or_null(dice)) + [varint(pairs)]
    for _ in range(pairs):
        name = dice.choice((b"", b"a", b"\xff", b"\xed\xa0\x80", b"\xc3\xbc", _bytes(dice)[:60]))
        tokens += _sized_tokens(name) + _sized_tokens(_or_null(dice))
    length = varint(sum(map(len, tokens)))
    if hostile:
        tokens[dice.randrange(len(tokens))] = dice.choice(HOSTILE_VARINTS)
        choice = dice.randrange(4)
        if choice < 2:
            length = varint(sum(map(len, tokens)))
        elif choice == 2:
            length = dice.choice(HOSTILE_VARINTS)
    return length + b"".join(tokens)


def _batch(dice: random.Random, offset: int) -> tuple[bytes, int]:
    count = dice.choice((0, 1, 1, 2, 3, 8, 20))
    wrong = dice.random() < 0.5
    deltas = []
    delta = dice.choice((0, 0, 0, 1, 7))
    for _ in range(count):
        deltas.append(delta)
        delta += dice.choice((1, 1, 1, 1, 2, 9)) if not wrong or dice.random() < 0.98 else 0
    bad = dice.randrange(count) if wrong and count and dice.random() < 0.6 else -1
    body = b"".join(_record(dice, at, hostile=place == bad) for place, at in enumerate(deltas))
    if wrong and dice.random() < 0.3:
        body = mutated(dice, body)
    last = (deltas[-1] if deltas else 0) + dice.choice((0, 0, 0, 3))
    attributes = dice.choice((0, 0, 0, 0, 8, TRANSACTIONAL, TRANSACTIONAL | CONTROL, CONTROL, 0x40))
    fields: dict[str, Any] = {
        "count": count,
        "base_offset": offset,
        "last_delta": last,
        "base_timestamp": dice.choice((T0, T0, -1, 0, 2**63 // 1000, -(2**63) // 1000)),
        "max_timestamp": dice.choice((T0, T0, -1, *HOSTILE_LONGS)),
    }
    if wrong and dice.random() < 0.3:
        name = dice.choice(list(fields))
        fields[name] = dice.choice(
            HOSTILE_INTS if name in {"count", "last_delta"} else HOSTILE_LONGS
        )
    codec = dice.choice(CODECS) if dice.random() < 0.98 else dice.randrange(5, 8)
    batch = Batch(body, attributes=attributes, producer_id=dice.randrange(4), codec=codec, **fields)
    packed = _packed(dice, codec, body, 2, hostile=wrong and dice.random() < 0.2)
    return batch.with_packed(packed), min(END, offset + last + 1 + dice.choice((0, 0, 5)))


def _packed(dice: random.Random, codec: int, body: bytes, magic: int, *, hostile: bool) -> bytes:
    if codec not in CODECS:
        return body
    ways: list[Callable[[bytes], bytes]] = [lambda plain: compress(codec, plain, magic)]
    match codec:
        case 2:
            ways += [raw_snappy, lambda plain: _xerial(dice, plain)]
        case 3:
            ways += [java_lz4, lambda plain: _lz4(dice, plain)]
        case 4:
            ways.append(sizeless_zstd)
    way = dice.choice(ways)
    if codec in {GZIP, LZ4, ZSTD} and dice.random() < 0.1:
        middle = dice.randrange(len(body) + 1)  # in two frames
        packed = way(body[:middle]) + way(body[middle:])
    else:
        packed = way(body)
    return mutated(dice, packed) if hostile and codec != NONE else packed


def _xerial(dice: random.Random, plain: bytes) -> bytes:
    framed = b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"
    while plain:
        size = len(plain) // 64 + dice.randrange(1, len(plain) + 1)  # not one byte each time
        block = raw_snappy(plain[:size])
        framed += struct.pack(">i", len(block)) + block
        plain = plain[size:]
    return framed


def _lz4(dice: random.Random, plain: bytes) -> bytes:
    packed: bytes = lz4.frame.compress(
        plain,
        block_linked=dice.random() < 0.5,
        content_checksum=dice.random() < 0.5,
        block_checksum=dice.random() < 0.5,
        store_size=dice.random() < 0.5,
    )
    return packed


def _messages(dice: random.Random, offset: int) -> tuple[bytes, int]:
    magic = dice.randrange(2)
    codec = dice.choice((NONE, GZIP, SNAPPY, LZ4))
    wrong = dice.random() < 0.5
    count = dice.choice((0, 1, 2, 5, 9)) if codec else dice.choice((1, 2, 4))
    base = offset if magic == 0 or not codec else 0
    at = base
    made: list[bytes] = []
    for _ in range(count):
        if at > END:
            break
        made.append(_message(dice, magic, at, hostile=wrong and dice.random() < 0.3))
        at += dice.choice((1, 1, 1, 4)) if not wrong or dice.random() < 0.98 else 0
    behind = min(END, offset + at - base)
    inner = b"".join(made)
    if not codec:
        return inner, behind
    if wrong and dice.random() < 0.3:
        inner = mutated(dice, inner)
    packed = _packed(dice, codec, inner, magic, hostile=wrong and dice.random() < 0.2)
    last = max(offset, behind - 1)
    if wrong and dice.random() < 0.2:
        last = dice.choice((0, *HOSTILE_LONGS))
    attributes = codec | dice.choice((0, 0, 8))
    wrapper = message(
        magic, last, packed, dice.choice((None, None, b"", b"k")), attributes=attributes
    )
    return _hostile_message(dice, wrapper) if wrong and dice.random() < 0.2 else wrapper, behind


def _message(dice: random.Random, magic: int, offset: int, *, hostile: bool) -> bytes:
    time = dice.choice((T0, T0, -1, 0, *HOSTILE_LONGS)) if dice.random() < 0.1 else T0
    attributes = dice.choice((0, 0, 0, 8, 1)) if hostile else dice.choice((0, 0, 0, 8))
    made = message(magic, offset, _or_null(dice), _or_null(dice), time, attributes)
    return _hostile_message(dice, made) if hostile else made


def _hostile_message(dice: random.Random, made: bytes) -> bytes:
    """Change what stands behind the checksum, and put size and checksum right again, mostly."""
    offset, checked = made[:8], bytearray(made[16:])
    key = 2 if checked[0] == 0 else 10
    place = dice.choice((0, 1, key, max(0, len(checked) - 4), dice.randrange(len(checked))))
    if dice.random() < 0.5:
        checked[place : place + 4] = struct.pack(">i", dice.choice(HOSTILE_INTS))
    else:
        checked = bytearray(mutated(dice, bytes(checked)))
    if dice.random() < 0.1:
        offset = struct.pack(">q", dice.choice(HOSTILE_LONGS))
    size = len(checked) + 4 if dice.random() < 0.9 else dice.choice(HOSTILE_INTS)
    return offset + struct.pack(">iI", size, zlib.crc32(checked)) + bytes(checked)
