from __future__ import annotations

import pickle
from typing import Any

import pytest

from pyspark_kafka.domain.reading.read_limits import (
    CompositeReadLimit,
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
    SingleReadLimit,
    default_read_limit,
    limits_of,
)

DELAY_MS = 900_000
MIN = ReadMinRows(15, DELAY_MS)
MAX = ReadMaxRows(20)
BYTES = ReadMaxBytes(1_000_000)


@pytest.mark.parametrize(
    ("min_offsets", "max_offsets", "max_bytes", "limit"),
    [
        (None, None, None, ReadAllAvailable()),
        (None, 20, None, MAX),
        (15, None, None, MIN),
        (15, 20, None, CompositeReadLimit((MIN, MAX))),
        (None, None, 1_000_000, BYTES),
        (None, 20, 1_000_000, CompositeReadLimit((MAX, BYTES))),
        (15, None, 1_000_000, CompositeReadLimit((MIN, BYTES))),
        (15, 20, 1_000_000, CompositeReadLimit((MIN, MAX, BYTES))),
    ],
)
def test_default(
    min_offsets: int | None, max_offsets: int | None, max_bytes: int | None, limit: ReadLimit
) -> None:
    """Each option that is given limits a batch, several do so together, and none reads it all."""
    assert default_read_limit(min_offsets, max_offsets, DELAY_MS, max_bytes) == limit


@pytest.mark.parametrize(
    ("limit", "parts"),
    [
        (ReadAllAvailable(), (ReadAllAvailable(),)),
        (MAX, (MAX,)),
        (CompositeReadLimit((MIN, MAX)), (MIN, MAX)),
    ],
)
def test_limits_of(limit: ReadLimit, parts: tuple[SingleReadLimit, ...]) -> None:
    """A composite is taken apart, and any other limit is its own only part."""
    assert limits_of(limit) == parts


@pytest.mark.parametrize(
    ("kind", "values", "problem"),
    [
        (ReadMaxRows, (0,), "max_rows must be at least 1, got 0"),
        (ReadMaxBytes, (0,), "max_bytes must be at least 1, got 0"),
        (ReadMinRows, (-1, 0), "min_rows must not be negative, got -1"),
        (ReadMinRows, (0, -1), "max_trigger_delay_ms must not be negative, got -1"),
        (CompositeReadLimit, ((),), "a composite limit needs at least one limit"),
        (
            CompositeReadLimit,
            ((MIN, CompositeReadLimit((MAX,))),),
            "a composite limit cannot contain another one",
        ),
    ],
)
def test_refusal(kind: type[Any], values: tuple[object, ...], problem: str) -> None:
    """A limit under which no batch could ever be read, or that means nothing, cannot be built."""
    with pytest.raises(ValueError, match=f"^{problem}$"):
        kind(*values)


def test_smallest() -> None:
    """One row or byte at most, and no row at least, are limits."""
    assert ReadMaxRows(1).max_rows == ReadMaxBytes(1).max_bytes == 1
    assert ReadMinRows(0, 0) == ReadMinRows(min_rows=0, max_trigger_delay_ms=0)


def test_pickle() -> None:
    """A limit survives the pickle between Spark's processes."""
    limit = CompositeReadLimit((MIN, MAX, BYTES, ReadAllAvailable()))
    assert pickle.loads(pickle.dumps(limit)) == limit  # noqa: S301
