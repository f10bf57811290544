"""Record batches that differ in their offsets, times and producers, and are encoded once.

A record is recognized by its timestamp and its value: each batch has its own thousand milliseconds.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

import crc32c

from tests.unit.adapters.kafka_format import batches as encoding
from tests.unit.adapters.kafka_format.batches import CODECS, GZIP, LZ4, NONE, SNAPPY, Record

T0: Final = encoding.T0
ABORT: Final = encoding.ABORT
COMMIT: Final = encoding.COMMIT

_NO_PRODUCER: Final = -1
_BEFORE_CHECKSUM: Final = 21
"""The size of the header before the bytes that the checksum of format 2 covers."""


class Shape(NamedTuple):
    """The offsets of a batch's records, counted from its first, and the sizes of their values."""

    deltas: tuple[int, ...]
    last_delta: int
    value_bytes: int


SHAPES: Final = (
    Shape((0,), 0, 4),
    Shape((0, 1, 2), 2, 4),
    Shape(tuple(range(8)), 7, 8),
    Shape((1, 4), 5, 8),
    Shape((0, 2), 4, 8),
    Shape((), 3, 0),
    Shape((0, 1, 2, 3), 3, 300),
    Shape((0,), 0, 6_000),
    Shape(tuple(range(40)), 39, 30),
)
"""Compaction has left holes in some, also at the end, and nothing in one."""

LEGACY: Final = ((0, NONE), (1, NONE), (0, GZIP), (1, SNAPPY), (1, LZ4))
"""The formats before 2, with some codecs."""


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """A batch in a log, or the messages of one write in formats 0 and 1."""

    number: int
    base_offset: int
    last_offset: int
    data: bytes
    records: tuple[tuple[int, int, bytes], ...]
    """Offsets, timestamps and values."""

    epoch: int = -1
    producer: int = _NO_PRODUCER
    marker: int | None = None

    @property
    def is_marker(self) -> bool:
        return self.marker is not None

    @property
    def is_legacy(self) -> bool:
        return self.epoch < 0

    @property
    def checked_bytes(self) -> range:
        """Return the place of a byte whose change only the checksum shows."""
        return range(_BEFORE_CHECKSUM, len(self.data))


@lru_cache(maxsize=256)
def _body(shape: Shape, codec: int) -> tuple[bytes, tuple[bytes, ...]]:
    """Return compressed records, and their values."""
    values = tuple(bytes([65 + delta % 26]) * shape.value_bytes for delta in shape.deltas)
    if not shape.deltas:
        return b"", ()
    records = [
        Record(delta, value, b"k", T0 + place)
        for place, (delta, value) in enumerate(zip(shape.deltas, values, strict=True))
    ]
    first = encoding.Batch.of(records, codec)
    if first.base_offset:
        # The offsets of records count from the batch's first one, which compaction has removed.
        raw = [
            encoding.raw_record(delta, place, b"k", value)
            for place, (delta, value) in enumerate(zip(shape.deltas, values, strict=True))
        ]
        return encoding.compress(codec, b"".join(raw)), values
    return first.packed, values


def data_batch(
    number: int, base: int, epoch: int, shape: Shape, codec: int, producer: int = _NO_PRODUCER
) -> Batch:
    if not shape.deltas:
        codec = NONE  # as Kafka's cleaner leaves it
    packed, values = _body(shape, codec)
    time = T0 + 1_000 * number
    attributes = (encoding.TRANSACTIONAL if producer >= 0 else 0) | codec
    data = _encoded(
        base,
        epoch,
        attributes,
        shape.last_delta,
        (time, time + max(0, len(values) - 1)),
        producer,
        len(values),
        packed,
    )
    records = tuple(
        (base + delta, time + place, value)
        for place, (delta, value) in enumerate(zip(shape.deltas, values, strict=True))
    )
    return Batch(number, base, base + shape.last_delta, data, records, epoch, producer)


@lru_cache(maxsize=4)
def _marker_body(kind: int) -> bytes:
    return encoding.Batch.marker(0, 0, kind).packed


def marker_batch(number: int, base: int, epoch: int, producer: int, kind: int) -> Batch:
    """Return the batch that ends a transaction."""
    attributes = encoding.TRANSACTIONAL | encoding.CONTROL
    time = T0 + 1_000 * number
    data = _encoded(base, epoch, attributes, 0, (time, time), producer, 1, _marker_body(kind))
    return Batch(number, base, base, data, (), epoch, producer, kind)


def _encoded(
    base: int,
    epoch: int,
    attributes: int,
    last_delta: int,
    times: tuple[int, int],
    producer: int,
    count: int,
    packed: bytes,
) -> bytes:
    checked = (
        struct.pack(">hiqqqhii", attributes, last_delta, *times, producer, 0, 0, count) + packed
    )
    front = struct.pack(">qiib", base, len(checked) + 9, epoch, 2)
    return front + struct.pack(">I", crc32c.crc32c(checked)) + checked


def legacy_batch(number: int, base: int, count: int, magic: int, codec: int) -> Batch:
    """Return messages of format 0 or 1; the first format has no timestamps."""
    time = T0 + 1_000 * number
    values = [b"%d-%d" % (number, place) for place in range(count)]
    records = [
        Record(base + place, value, b"k", time + place) for place, value in enumerate(values)
    ]
    data = encoding.encoded(records, magic, codec)
    known = tuple(
        (each.offset, each.timestamp if magic else -1, each.value or b"") for each in records
    )
    return Batch(number, base, base + count - 1, data, known)


def codecs() -> Sequence[int]:
    return CODECS
