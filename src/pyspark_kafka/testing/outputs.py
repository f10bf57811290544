"""Batches that suites write, and where Kafka's Java client would write them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from ..ports.reading import TYPES

_HASHES: Final[Mapping[bytes, int]] = {
    b"": 275646681,
    b"k": -1567496736,
    b"21": -973932308,
    b"abc": 479470107,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    "käfer".encode(): -1557269229,
    b"\x80": 857690492,
    b"\xff\x80\x00": -616959190,
    b"\x80\x81\x82\x83": 1420557722,
}
"""What ``Utils.murmur2`` of Kafka's Java client returns."""

KEYS: Final = tuple(_HASHES)
"""Keys of several lengths, with bytes that Java takes for negative ones."""

MIXED_HEADERS: Final[list[dict[str, Any]]] = [
    {"key": "b", "value": b"1"},
    {"key": "a", "value": None},
    {"key": "b", "value": b""},
    {"key": "b", "value": b"1"},
]
"""Headers that do not come back if they are sorted, or kept by their names."""


def batch_of(**columns: list[Any]) -> pa.RecordBatch:
    """Return a batch of the columns of ``RecordWriter.write``, by their names."""
    schema = pa.schema([(name, TYPES[name]) for name in columns])
    return pa.RecordBatch.from_pydict(columns, schema=schema)


def keys_of_partition(number: int, partitions: int) -> list[bytes]:
    """Return the ``KEYS`` that Java's client sends to a partition of so many."""
    # Utils.toPositive clears the sign.
    return [key for key in KEYS if (_HASHES[key] & 0x7FFFFFFF) % partitions == number]
