"""The decoder of record batches, held against batches that are made of any bytes."""

import random
from typing import Final

from tests.unit.adapters.kafka_format.batches import GZIP, Record, raw_batch, raw_record, wrapped

from .inputs import Case, case_from
from .parsers import Parser
from .trial import try_case


class Dice(random.Random):
    """Falls as bytes say, and on zero when they are at their end."""

    def __init__(self, content: bytes) -> None:
        super().__init__(0)
        self._content = content
        self._place = 0

    def random(self) -> float:
        return self._take(1) / 256

    def getrandbits(self, k: int, /) -> int:
        return self._take((k + 7) // 8) & ((1 << k) - 1)

    def _take(self, size: int) -> int:
        taken = self._content[self._place : self._place + size].ljust(size, b"\0")
        self._place += size
        return int.from_bytes(taken)


def _decode(content: bytes) -> None:
    try_case(case_from(Dice(content)))


def warm_up() -> None:
    """Load what cases need."""
    for blob in (bytes(raw_batch(raw_record())), wrapped(1, GZIP, [Record(0)])):
        try_case(Case(blob))


def _valid() -> list[bytes]:
    dice = random.Random(0)  # noqa: S311  # nothing is secret
    return [dice.randbytes(size) for size in (10, 50, 200, 1_000)]


PARSERS: Final = (Parser("batches", _decode, (), _valid()),)
