"""Decoding 100 MB of batches in a fresh process.

Run as a module with a codec and the bytes of a batch, it prints the page faults per 100 MB, without
those of the first fetch, and the speed by processor time.
"""

import json
import random
import resource
import sys
import time
import zlib
from typing import Final

import lz4.frame
import pyarrow as pa

from pyspark_kafka.adapters.kafka_format.compression import Codec, Compressor
from pyspark_kafka.adapters.kafka_format.record_decoder import (
    DecoderMemory,
    FetchedRecords,
    RecordDecoder,
)
from pyspark_kafka.domain.reading.records import Projection

from .batches import GZIP, LZ4, SNAPPY, Batch, Record, raw_snappy
from .reading import END, T

MIB: Final = 1024 * 1024
MEASURED: Final = 100_000_000
VALUE_BYTES: Final = 1_000


def packed_by(name: str, plain: bytes) -> tuple[int, bytes]:
    """Return the number of a codec and what it makes of some bytes."""
    match name:
        case "raw snappy":
            return SNAPPY, raw_snappy(plain)
        case "linked lz4":
            return LZ4, lz4.frame.compress(plain)
        case "gzip":
            return GZIP, zlib.compress(plain, 6, 31)
        case _:
            codec = Codec[name.upper()]
            return codec, Compressor(codec).compress(memoryview(plain))


def json_value(dice: random.Random) -> bytes:
    """Return a value of text, which compresses to about a third."""
    words = " ".join(f"word{dice.randrange(2_000)}" for _ in range(VALUE_BYTES // 8))
    return json.dumps({"id": dice.randrange(2**32), "note": words}).encode()[:VALUE_BYTES]


def fetches(name: str, batch_bytes: int) -> list[FetchedRecords]:
    """Return the batches of some fetches, each of about 2 MB of values."""
    dice = random.Random(7)  # noqa: S311  # nothing is secret
    each = max(1, batch_bytes // VALUE_BYTES)
    found = []
    for _ in range(4):
        made = []
        for base in range(0, 2 * MIB // VALUE_BYTES, each):
            batch = Batch.of([Record(base + at, json_value(dice)) for at in range(each)])
            codec, packed = packed_by(name, batch.body)
            made.append(
                Batch(
                    batch.body, each, base, each - 1, codec=codec, max_timestamp=batch.max_timestamp
                ).with_packed(packed)
            )
        found.append(FetchedRecords.of(b"".join(made)))
    return found


def decode(memory: DecoderMemory, fetched: FetchedRecords) -> int:
    """Return the bytes of the values."""
    total = 0
    for batch in RecordDecoder(T, Projection(("value",)), memory).decode(fetched, 0, END):
        values = batch.column(0)
        assert isinstance(values, pa.BinaryArray)
        total += values.nbytes - 4 * (len(values) + 1)
        del batch, values
    return total


def faults_of(printed: str) -> int:
    """Return the page faults that a program printed."""
    return int(printed.split(maxsplit=1)[0])


def main() -> None:
    """Print what it took to decode 100 MB of values."""
    name, batch_bytes = sys.argv[1], int(sys.argv[2])
    fetched = fetches(name, batch_bytes)
    memory = DecoderMemory()
    decode(memory, fetched[0])
    before, start, total, number = _faults(), time.process_time(), 0, 0
    while total < MEASURED:
        total += decode(memory, fetched[number % len(fetched)])
        number += 1
    faults, seconds = _faults() - before, time.process_time() - start
    sys.stdout.write(f"{faults * MEASURED // total} faults, {total / seconds / 1e6:.0f} MB/s\n")


def _faults() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


if __name__ == "__main__":
    main()
