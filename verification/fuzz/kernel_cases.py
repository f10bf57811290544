"""Cases for native kernels: made by chance, from inputs that were kept, and from valid batches."""

import random
import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Final

import crc32c
from kafka.record.util import decode_varint

from tests.unit.adapters.kafka_format.batches import CODECS, Batch, Record, varint

from .batch_parser import Dice
from .corpus import read_covering
from .inputs import HOSTILE_INTS, HOSTILE_VARINTS, Case, case_from, mutated
from .parsers import decode_input
from .trial import try_case

_MADE: Final = 0.4
_KEPT: Final = 0.7
_LENGTH_AT: Final = 8
_MAGIC_AT: Final = 12
_CRC_AT: Final = 17
_CHECKED_AT: Final = 21


def try_batch(seed: int, number: int) -> Counter[str]:
    """Try a case that is made of a seed and a number; return its rows, and its error."""
    dice = random.Random(f"{seed}/{number}")  # noqa: S311  # nothing is secret
    outcome = try_case(kernel_case(dice))
    error = outcome.error.partition(":")[0] if outcome.error else "NONE"
    return Counter({"ROWS": len(outcome.rows), error: 1})


@cache
def _kept_inputs() -> Sequence[bytes]:
    return [decode_input(data)[1] for data in read_covering("decoder")]


def kernel_case(dice: random.Random) -> Case:
    """Return a case of one of the three kinds."""
    kind = dice.random()
    if kind < _MADE:
        return case_from(dice)
    if kind < _KEPT:
        return case_from(Dice(mutated(dice, dice.choice(_kept_inputs()))))
    return replace(case_from(dice), blob=damaged_batch(dice))


def damaged_batch(dice: random.Random) -> bytes:
    """Return a valid batch with some wrong varints, lengths or counts, and a right checksum."""
    batch = Batch.of(_records(dice), codec=dice.choice(CODECS))
    if dice.random() < 0.7:
        batch = replace(batch, body=_with_wrong_varints(dice, batch.body))
    if dice.random() < 0.3:
        batch = replace(batch, count=_wrong(dice, batch.count))
    if dice.random() < 0.1:
        batch = replace(batch, last_delta=_wrong(dice, batch.last_delta))
    blob = bytes(batch)
    if dice.random() < 0.2:
        blob = _with_wrong_length(dice, blob)
    return blob


def _records(dice: random.Random) -> list[Record]:
    offset, records = dice.choice((0, 5, 2**40)), []
    for _ in range(dice.choice((1, 2, 3, 20))):
        names = [f"h{number}" for number in range(dice.choice((0, 0, 1, 3)))]
        headers = tuple((name, _value(dice)) for name in names)
        records.append(Record(offset, _value(dice), _value(dice), headers=headers))
        offset += dice.choice((1, 1, 1, 3))
    return records


def _value(dice: random.Random) -> bytes | None:
    size = dice.choice((-1, 0, 1, 7, 63, 64, 200))
    return None if size < 0 else dice.randbytes(size)


def _with_wrong_varints(dice: random.Random, body: bytes) -> bytes:
    """Change some of the varints, and the length of the record of each, mostly."""
    records = list(_record_tokens(body))
    for _ in range(dice.choice((1, 1, 2))):
        tokens = dice.choice(records)
        place = dice.choice([place for place, token in enumerate(tokens) if isinstance(token, int)])
        number = tokens[place]
        assert isinstance(number, int)
        wrong = (varint(number - 1), varint(number + 1), varint(-number), *HOSTILE_VARINTS)
        tokens[place] = dice.choice(wrong)
    keeps_length = dice.random() < 0.2
    return b"".join(_encoded(tokens, keeps_length=keeps_length) for tokens in records)


def _encoded(tokens: list[int | bytes], *, keeps_length: bool) -> bytes:
    parts = [varint(token) if isinstance(token, int) else token for token in tokens]
    rest = b"".join(parts[1:])
    is_damaged = not isinstance(tokens[0], int)
    return (parts[0] if keeps_length or is_damaged else varint(len(rest))) + rest


def _record_tokens(body: bytes) -> Iterator[list[int | bytes]]:
    """Yield each record in parts: numbers that are varints, and bytes."""
    position = 0
    while position < len(body):
        length, position = decode_varint(body, position)
        yield [length, *_parts(body[position : position + length])]
        position += length


def _parts(record: bytes) -> Iterator[int | bytes]:
    position = 1
    yield record[:1]
    for _ in range(2):  # deltas of the timestamp and of the offset
        number, position = decode_varint(record, position)
        yield number
    for _ in range(2):  # key and value
        parts, position = _sized(record, position)
        yield from parts
    count, position = decode_varint(record, position)
    yield count
    for _ in range(2 * count):
        parts, position = _sized(record, position)
        yield from parts


def _sized(record: bytes, position: int) -> tuple[list[int | bytes], int]:
    size, position = decode_varint(record, position)
    end = position + max(0, size)
    return [size, record[position:end]], end


def _wrong(dice: random.Random, number: int) -> int:
    return dice.choice((max(0, number - 1), number + 1, 2 * number, *HOSTILE_INTS))


def _with_wrong_length(dice: random.Random, blob: bytes) -> bytes:
    """Cut a batch off, or add bytes, which it says that it has."""
    size = len(blob) + dice.choice((-50, -1, 1, 7))
    checked = blob.ljust(size, b"\0")[_CHECKED_AT:size]
    length = struct.pack(">i", _CHECKED_AT + len(checked) - _LENGTH_AT - 4)
    checksum = struct.pack(">I", crc32c.crc32c(checked))
    return blob[:_LENGTH_AT] + length + blob[_MAGIC_AT:_CRC_AT] + checksum + checked
