"""Stretches of a log as brokers, producers and compaction write them, and malformed ones.

Records are encoded by kafka-python; what it has no way to say is put into the headers here.
"""

from __future__ import annotations

import gzip
import struct
import zlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, final

import cramjam
import crc32c
import lz4.frame
import zstandard
from kafka.codec import snappy_encode
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from kafka.record.legacy_records import LegacyRecordBatchBuilder
from kafka.record.util import encode_varint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

NONE: Final = 0
GZIP: Final = 1
SNAPPY: Final = 2
LZ4: Final = 3
ZSTD: Final = 4
CODECS: Final = (NONE, GZIP, SNAPPY, LZ4, ZSTD)

LEGACY: Final = [(magic, codec) for magic in (0, 1) for codec in (NONE, GZIP, SNAPPY, LZ4)]
FORMATS: Final = [*LEGACY, *((2, codec) for codec in CODECS)]
"""Each format that a log may have, and each codec in it."""

APPEND_TIME: Final = 0x08
TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20

ABORT: Final = 0
COMMIT: Final = 1

HEADER: Final = 61
T0: Final = 1_700_000_000_000
"""Some time in 2023, in milliseconds."""

ROOM: Final = 2**31 - 1


class Record(NamedTuple):
    """A record to write."""

    offset: int
    value: bytes | None = b"v"
    key: bytes | None = b"k"
    timestamp: int = T0
    headers: tuple[tuple[str, bytes | None], ...] = ()


def compress(codec: int, body: bytes, magic: int = 2) -> bytes:
    """Compress as the Java producer does, whether it makes the bytes fewer or not."""
    packed = _COMPRESS[codec](body)
    return with_wrong_checksum(packed) if codec == LZ4 and magic == 0 else packed


def with_wrong_checksum(frame: bytes) -> bytes:
    """Return a frame of lz4 with another checksum in its header, as in format 0 (KAFKA-3160)."""
    place = 14 if frame[4] & 0x08 else 6
    return frame[:place] + bytes([frame[place] ^ 0x5A]) + frame[place + 1 :]


def raw_snappy(body: bytes) -> bytes:
    """Compress as librdkafka does: one block without a frame."""
    return bytes(cramjam.snappy.compress_raw(body))


def java_lz4(body: bytes) -> bytes:
    """Compress as Java's client and librdkafka do: independent blocks without checksums."""
    frame: bytes = lz4.frame.compress(body, block_size=4, block_linked=False, store_size=False)
    return frame


def sizeless_zstd(body: bytes) -> bytes:
    """Compress without the content size, as streaming compressors do."""
    packer = zstandard.ZstdCompressor(write_content_size=False).compressobj()
    return packer.compress(body) + packer.flush()


_COMPRESS: Final[dict[int, Callable[[bytes], bytes]]] = {
    NONE: bytes,
    GZIP: lambda body: gzip.compress(body, 1, mtime=0),
    SNAPPY: snappy_encode,
    LZ4: lz4.frame.compress,
    ZSTD: zstandard.ZstdCompressor().compress,
}


@final
@dataclass(frozen=True)
class Batch:
    """A batch of format 2, field by field; its length and its checksum come by themselves."""

    body: bytes = b""
    """The records, not compressed."""

    count: int = 0
    base_offset: int = 0
    last_delta: int = 0
    attributes: int = 0
    base_timestamp: int = T0
    max_timestamp: int = T0
    producer_id: int = -1
    codec: int = NONE
    packer: Callable[[bytes], bytes] | None = field(default=None, compare=False)

    @classmethod
    def of(cls, records: Sequence[Record], codec: int = NONE, **changes: Any) -> Batch:
        """Encode records by kafka-python; the offsets begin with the first one's."""
        base = records[0].offset
        writer = DefaultRecordBatchBuilder(
            magic=2,
            compression_type=0,
            is_transactional=False,
            producer_id=-1,
            producer_epoch=-1,
            base_sequence=-1,
            batch_size=ROOM,
        )
        for offset, value, key, timestamp, headers in records:
            writer.append(offset - base, timestamp, key, value, headers)
        built = bytes(writer.build())
        header = DefaultRecordBatch(built)
        return replace(
            cls(
                built[HEADER:],
                len(records),
                base,
                records[-1].offset - base,
                base_timestamp=header.first_timestamp,
                max_timestamp=header.max_timestamp,
                codec=codec,
            ),
            **changes,
        )

    @classmethod
    def marker(cls, offset: int, producer_id: int, kind: int) -> Batch:
        """Return the control batch that ends a transaction."""
        key, value = struct.pack(">hh", 0, kind), struct.pack(">hi", 0, 0)
        return cls.of(
            [Record(offset, value, key)],
            attributes=TRANSACTIONAL | CONTROL,
            producer_id=producer_id,
        )

    @property
    def packed(self) -> bytes:
        """The records as they stand in the log."""
        return self.packer(self.body) if self.packer else compress(self.codec, self.body)

    def __bytes__(self) -> bytes:
        return self.with_packed(self.packed)

    def with_packed(self, packed: bytes) -> bytes:
        """Return the batch with other bytes instead of its compressed records."""
        checked = (
            struct.pack(
                ">hiqqqhii",
                self.attributes | self.codec,
                self.last_delta,
                self.base_timestamp,
                self.max_timestamp,
                self.producer_id,
                0,
                0,
                self.count,
            )
            + packed
        )
        front = struct.pack(">qiib", self.base_offset, len(checked) + 9, 0, 2)
        return front + struct.pack(">I", crc32c.crc32c(checked)) + checked


def varint(number: int) -> bytes:
    """Encode a number as Kafka does."""
    encoded = bytearray()
    encode_varint(number, encoded.append)
    return bytes(encoded)


def sized(value: bytes | None) -> bytes:
    """Encode bytes behind their length, or null."""
    return varint(-1) if value is None else varint(len(value)) + value


def raw_record(
    offset_delta: int = 0,
    timestamp_delta: int = 0,
    key: bytes | None = b"k",
    value: bytes | None = b"v",
    headers: Iterable[tuple[bytes | None, bytes | None]] = (),
) -> bytes:
    """Encode a record of format 2, with header keys of any bytes."""
    pairs = [sized(header_key) + sized(header_value) for header_key, header_value in headers]
    return sized(
        b"\0"
        + varint(timestamp_delta)
        + varint(offset_delta)
        + sized(key)
        + sized(value)
        + varint(len(pairs))
        + b"".join(pairs)
    )


def raw_batch(*records: bytes, **fields: Any) -> Batch:
    """Return a batch of encoded records."""
    return replace(
        Batch(b"".join(records), len(records), last_delta=max(len(records) - 1, 0)), **fields
    )


def message_set(magic: int, records: Iterable[Record]) -> bytes:
    """Encode messages of format 0 or 1 by kafka-python, one behind the other."""
    messages = []
    for offset, value, key, timestamp, _ in records:
        writer = LegacyRecordBatchBuilder(magic, 0, ROOM)
        writer.append(offset, timestamp, key, value)
        messages.append(bytes(writer.build()))
    return b"".join(messages)


def message(
    magic: int,
    offset: int,
    value: bytes | None,
    key: bytes | None = None,
    timestamp: int = T0,
    attributes: int = 0,
) -> bytes:
    """Encode a message of format 0 or 1 with attributes."""
    checked = struct.pack(">bb", magic, attributes)
    checked += struct.pack(">q", timestamp) if magic else b""
    for part in (key, value):
        checked += struct.pack(">i", -1) if part is None else struct.pack(">i", len(part)) + part
    front = struct.pack(">qiI", offset, len(checked) + 4, zlib.crc32(checked))
    return front + checked


def wrapped(
    magic: int, codec: int, records: Sequence[Record], *, timestamp: int = T0, attributes: int = 0
) -> bytes:
    """Encode messages that one message holds compressed; it has the offset of the last one.

    In format 1 those inside count from the first, and in format 0 each has its own.
    """
    base = records[0].offset if magic == 1 else 0
    inner = message_set(magic, (record._replace(offset=record.offset - base) for record in records))
    return message(
        magic,
        records[-1].offset,
        compress(codec, inner, magic),
        timestamp=timestamp,
        attributes=attributes | codec,
    )


def holding(magic: int, offset: int, inner: bytes) -> bytes:
    """Encode a message that holds these bytes compressed."""
    return message(magic, offset, compress(GZIP, inner), attributes=GZIP)


def encoded(records: Sequence[Record], magic: int = 2, codec: int = NONE) -> bytes:
    """Encode records in a format: as one batch, as messages, or as a message that holds them."""
    if magic == 2:
        return bytes(Batch.of(records, codec))
    return wrapped(magic, codec, records) if codec else message_set(magic, records)


def log(*batches: Batch | bytes) -> bytes:
    """Put batches behind one another."""
    return b"".join(map(bytes, batches))
