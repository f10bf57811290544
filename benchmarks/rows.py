"""Rows in Parquet files, as input of sinks."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

import pyarrow as pa
import pyarrow.parquet as pq

from .topics import values_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .topics import Shape

FILES: Final = 4
GROUP_ROWS: Final = 50_000


@final
@dataclass(frozen=True, slots=True)
class Rows:
    """Files with the columns ``key``, of 8 bytes, and ``value``."""

    path: Path
    shape: Shape
    count: int


def write_rows(directory: Path, shape: Shape, count: int) -> Rows:
    """Write about ``count`` rows, evenly distributed to uncompressed files."""
    path = directory / shape.topic_name
    path.mkdir()
    each = max(1, count // FILES)
    for number in range(FILES):
        start = number * each
        with pq.ParquetWriter(
            path / f"{number}.parquet", _SCHEMA, compression="none", use_dictionary=False
        ) as writer:
            for batch in batches(shape, start, start + each):
                writer.write_batch(batch)
    return Rows(path, shape, each * FILES)


def batches(shape: Shape, start: int, end: int) -> Iterator[pa.RecordBatch]:
    """Yield batches of rows with the numbers ``[start, end)`` as keys."""
    values = itertools.cycle(values_of(shape))
    for first in range(start, end, GROUP_ROWS):
        numbers = range(first, min(first + GROUP_ROWS, end))
        columns: dict[str, list[Any]] = {
            "key": [b"%08d" % number for number in numbers],
            "value": list(itertools.islice(values, len(numbers))),
        }
        yield pa.RecordBatch.from_pydict(columns, schema=_SCHEMA)


_SCHEMA: Final = pa.schema([("key", pa.binary()), ("value", pa.binary())])
