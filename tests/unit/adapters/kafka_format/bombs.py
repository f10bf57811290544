"""Batches of some kilobytes that decompress to gigabytes, read in a small address space.

Run as a module, it prints what becomes of each.
"""

import resource
import struct
import sys
from collections.abc import Callable
from typing import Final

from pyspark_kafka.adapters.kafka_format.record_decoder import FetchedRecords, RecordDecoder
from pyspark_kafka.domain.reading.errors import OversizedRecordError
from pyspark_kafka.domain.reading.record_limits import OversizedRecords, RecordLimits
from pyspark_kafka.domain.reading.records import ALL_COLUMNS

from .batches import GZIP, LZ4, SNAPPY, ZSTD, Batch, compress, java_lz4, message, varint
from .reading import END, T

MIB: Final = 1024 * 1024
BYTES: Final = 512 * MIB
ADDRESS_SPACE: Final = 1024 * MIB

RAW_SNAPPY: Final = -SNAPPY
"""A block without a frame, as librdkafka writes it."""

JAVA_LZ4: Final = -LZ4
"""One frame of independent blocks, as Java's client and librdkafka write it."""


def packed(codec: int, head: bytes, size: int, tail: bytes) -> bytes:
    """Compress zeros between a head and a tail; each MiB is a member, a frame or a block."""
    if codec == RAW_SNAPPY:
        return _raw_snappy(head, size, tail)
    if codec == JAVA_LZ4:
        start, zeros, end = (java_lz4(part)[7:-4] for part in (head, bytes(MIB), tail))
        return java_lz4(b"")[:7] + start + zeros * (size // MIB) + end + bytes(4)
    if codec == SNAPPY:
        start = compress(SNAPPY, head)
        blocks = (compress(SNAPPY, part)[16:] for part in (bytes(MIB), tail))
        zeros, end = blocks
        return start + zeros * (size // MIB) + end
    return (
        compress(codec, head)
        + compress(codec, bytes(MIB)) * (size // MIB)
        + (compress(codec, tail) if tail else b"")
    )


def _raw_snappy(head: bytes, size: int, tail: bytes) -> bytes:
    """Write literals, and copies of 64 bytes that refer back by one."""
    parts = [_literal(head), _literal(bytes(64)), b"\xfe\x01\x00" * ((size - 64) // 64)]
    declared = bytearray()
    rest = len(head) + size + len(tail)
    while rest > 127:
        declared.append(rest & 127 | 128)
        rest >>= 7
    return bytes(declared) + bytes([rest]) + b"".join(parts) + (_literal(tail) if tail else b"")


def _literal(data: bytes) -> bytes:
    return bytes([60 << 2, len(data) - 1]) + data


def value_bomb(codec: int, size: int) -> bytes:
    """Return a batch of a record with a value of zeros."""
    head = b"\0\0\0" + varint(-1) + varint(size)
    return _batch(codec, varint(len(head) + size + 1) + head, size, b"\0")


def key_bomb(codec: int, size: int) -> bytes:
    """Return a batch of a record with a key of zeros."""
    head = b"\0\0\0" + varint(size)
    return _batch(codec, varint(len(head) + size + 2) + head, size, varint(-1) + b"\0")


def header_bomb(codec: int, size: int) -> bytes:
    """Return a batch of a record with millions of empty headers."""
    head = b"\0\0\0" + varint(-1) + varint(-1) + varint(size // 2)
    return _batch(codec, varint(len(head) + size) + head, size, b"")


def message_bomb(codec: int, size: int) -> bytes:
    """Return a message of format 1 that holds one with a value of zeros."""
    head = struct.pack(">qiIbbqii", 0, size + 22, 0, 1, 0, -1, -1, size)
    return message(1, 0, packed(codec, head, size, b""), attributes=codec)


def _batch(codec: int, head: bytes, size: int, tail: bytes) -> bytes:
    return Batch(count=1, codec=abs(codec)).with_packed(packed(codec, head, size, tail))


BOMBS: Final[dict[str, Callable[[int, int], bytes]]] = {
    "value": value_bomb,
    "key": key_bomb,
    "headers": header_bomb,
    "message": message_bomb,
}
NAMES: Final = tuple(
    (name, codec)
    for name in BOMBS
    for codec in (GZIP, SNAPPY, RAW_SNAPPY, LZ4, JAVA_LZ4, ZSTD)
    # Format 1 has no other codecs, and one of them is enough for its two passes.
    if name != "message" or codec == GZIP
)


def refusal(fetched: bytes) -> str:
    """Return what a decoder does with a bomb."""
    try:
        read(fetched, OversizedRecords(RecordLimits()))
    except OversizedRecordError as error:
        return f"refused at {error.offset}"
    return "read"


def skipping(fetched: bytes) -> str:
    """Return what a decoder does with a bomb that it may skip."""
    oversized = OversizedRecords(RecordLimits(skips=True))
    rows = read(fetched, oversized)
    return "skipped" if not rows and len(list(oversized.take_skipped())) == 1 else "lost"


def read(fetched: bytes, oversized: OversizedRecords) -> int:
    """Return the number of rows."""
    decoder = RecordDecoder(T, ALL_COLUMNS, oversized=oversized)
    return sum(found.num_rows for found in decoder.decode(FetchedRecords.of(fetched), 0, END))


def main() -> None:
    """Print an outcome for each bomb."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    for name, codec in NAMES:
        fetched = BOMBS[name](codec, BYTES)
        # To skip one, all of it is decompressed: one of each codec is enough.
        skipped = skipping(fetched) if name == "value" else "skipped"
        sys.stdout.write(f"{name} {codec}: {refusal(fetched)}, {skipped}\n")


if __name__ == "__main__":
    main()
